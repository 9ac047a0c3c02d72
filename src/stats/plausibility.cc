#include "stats/plausibility.h"

#include <algorithm>

namespace unflake {
namespace {

using namespace std::chrono_literals;

// A short look sees less than a day does.
constexpr int busy_factor = 2;
constexpr int overloaded_factor = 10;
constexpr Duration least_busy = 50ms, most_busy = 500ms;
constexpr Duration least_overloaded = 1s, most_overloaded = 3s;

}  // namespace

std::string_view to_string(Plausibility plausibility) {
  switch (plausibility) {
    case Plausibility::flaw:
      return "flaw";
    case Plausibility::risk:
      return "risk";
    case Plausibility::margin:
      return "margin";
  }
  return "?";
}

std::optional<Plausibility> plausibility_from(std::string_view name) {
  for (const auto known : {Plausibility::flaw, Plausibility::risk, Plausibility::margin})
    if (name == to_string(known)) return known;
  return std::nullopt;
}

LatenessLimits limits_of(const MachineLateness& seen) {
  const Duration worst = std::clamp<Duration>(std::max(seen.plain, seen.scarce), 0s, 1h);
  return {std::clamp(busy_factor * worst, least_busy, most_busy),
          std::clamp(overloaded_factor * worst, least_overloaded, most_overloaded)};
}

Plausibility plausibility_of(Duration lateness, const LatenessLimits& limits) {
  if (lateness <= limits.busy) return Plausibility::flaw;
  return lateness <= limits.overloaded ? Plausibility::risk : Plausibility::margin;
}

}  // namespace unflake
