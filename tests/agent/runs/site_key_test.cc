#include <gtest/gtest.h>

#include <set>

#include "agent/hash.h"

namespace unflake {
namespace {

TEST(SiteKey, Neighbouring_calls_of_different_apis_are_different_sites) {
  std::set<uint64_t> keys;
  for (uint64_t address = 0x2000; address < 0x2400; ++address)
    for (uint16_t api = 0; api < 140; ++api) keys.insert(agent::site_key(address, api));
  EXPECT_EQ(keys.size(), 0x400u * 140);
}

}  // namespace
}  // namespace unflake
