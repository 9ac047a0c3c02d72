#include "store/lifecycle_step.h"

namespace unflake {

std::string_view to_string(LifecycleStep::Kind kind) {
  switch (kind) {
    case LifecycleStep::Kind::quarantined:
      return "quarantined";
    case LifecycleStep::Kind::lifted:
      return "lifted";
    case LifecycleStep::Kind::expired:
      return "expired";
    case LifecycleStep::Kind::report_opened:
      return "report opened";
    case LifecycleStep::Kind::report_closed:
      return "report closed";
    case LifecycleStep::Kind::report_reopened:
      return "report reopened";
  }
  return "";
}

}  // namespace unflake
