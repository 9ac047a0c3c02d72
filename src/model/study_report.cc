#include "model/study_report.h"

namespace unflake {

std::string_view to_string(FixPlace place) {
  switch (place) {
    case FixPlace::source:
      return "source only";
    case FixPlace::test:
      return "test only";
    case FixPlace::both:
      return "test and source";
    case FixPlace::other:
      break;
  }
  return "other";
}

std::string_view to_string(FixKind kind) {
  switch (kind) {
    case FixKind::longer_wait:
      return "longer wait or time-out";
    case FixKind::callback:
      return "callback or condition";
    case FixKind::polling:
      return "polling";
    case FixKind::removal:
      return "code removed";
    case FixKind::mocking:
      return "mocking";
    case FixKind::hard_to_say:
      break;
  }
  return "hard to say";
}

std::string_view to_string(ClaimedFix::Verdict verdict) {
  switch (verdict) {
    case ClaimedFix::Verdict::lower:
      return "lower";
    case ClaimedFix::Verdict::not_lower:
      return "not lower";
    case ClaimedFix::Verdict::too_few_runs:
      return "too few runs to tell";
    case ClaimedFix::Verdict::nothing_to_compare:
      break;
  }
  return "nothing to compare";
}

}  // namespace unflake
