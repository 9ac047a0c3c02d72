// Fills a store with a generated history: generate_history URL RUNS [SEED]. Done again, it adds
// nothing: the same runs are known.

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "generated_history.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: generate_history URL RUNS [SEED]\n");
    return 2;
  }
  const auto store = unflake::open_store({argv[1]});
  const unflake::GeneratedHistory history(std::atoll(argv[2]),
                                          argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
  const auto begin = Clock::now();
  int64_t told = 0;
  const auto progress = [&](int64_t runs) {
    if (runs / 1'000'000 == told) return;
    told = runs / 1'000'000;
    fmt::print(stderr, "{} million runs, {:.0f} a second\n", told,
               static_cast<double>(runs) / seconds_since(begin));
  };
  const auto recorded = store ? record_generated(**store, history, 0, 1, progress) : store.error();
  if (!recorded) {
    fmt::print(stderr, "generate_history: {}\n", to_string(recorded.error()));
    return 1;
  }
  fmt::print("{} runs in {:.1f} s\n", *recorded, seconds_since(begin));
  return 0;
}
