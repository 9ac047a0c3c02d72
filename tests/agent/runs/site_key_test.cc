#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "agent/hash.h"

namespace unflake {
namespace {

TEST(SiteKey, Neighbouring_calls_of_different_apis_are_different_sites) {
  std::set<uint64_t> keys;
  for (uint64_t address = 0x2000; address < 0x2400; ++address)
    for (uint16_t api = 0; api < 140; ++api) keys.insert(agent::site_key(address, api));
  EXPECT_EQ(keys.size(), 0x400u * 140);
}

// As in a program with thousands of places, a few bytes apart.
TEST(SiteKey, No_place_is_turned_away_while_a_quarter_of_the_table_is_free) {
  constexpr uint32_t size = 16384;
  for (const uint64_t stride : {5, 16, 33, 64}) {
    std::vector<bool> taken(size);
    for (uint32_t i = 0; i < size / 4 * 3; ++i) {
      const uint64_t hash = agent::site_key(0x1000 + i / 2 * stride, i % 2) >> 13;
      uint32_t tries = 0;
      while (tries < agent::most_tries && taken[agent::place_of(hash, tries, size)]) ++tries;
      ASSERT_LT(tries, agent::most_tries) << i << " places " << stride << " bytes apart";
      taken[agent::place_of(hash, tries, size)] = true;
    }
  }
}

}  // namespace
}  // namespace unflake
