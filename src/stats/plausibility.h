#pragma once

#include <optional>
#include <string_view>

#include "util/time.h"

namespace unflake {

// What has to happen to a machine before a test fails on it.
enum class Plausibility {
  flaw,    // to be busy: it will fail some day
  risk,    // to be badly overloaded
  margin,  // to stand still: the test bounds its patience, as tests should, and that is not a flaw
};

std::string_view to_string(Plausibility plausibility);
std::optional<Plausibility> plausibility_from(std::string_view name);

// The longest that a machine was seen to be late: as it is, and while it was made scarce.
struct MachineLateness {
  Duration plain{};
  Duration scarce{};
  bool operator==(const MachineLateness&) const = default;
};

// How late a thread may be because a machine is busy, and because it is badly overloaded.
struct LatenessLimits {
  Duration busy{};
  Duration overloaded{};
};

// Never less than what CI machines are known for, however quiet this one is: the test will run
// on others. Never more than this much either: one that is later now is itself the exception.
LatenessLimits limits_of(const MachineLateness& seen);

// For a failure that takes this much lateness.
Plausibility plausibility_of(Duration lateness, const LatenessLimits& limits);

}  // namespace unflake
