#include "store/lifecycle_event.h"

namespace unflake {

std::string_view to_string(LifecycleEvent::Kind kind) {
  switch (kind) {
    case LifecycleEvent::Kind::quarantined:
      return "quarantined";
    case LifecycleEvent::Kind::lifted:
      return "lifted";
    case LifecycleEvent::Kind::expired:
      return "expired";
    case LifecycleEvent::Kind::report_opened:
      return "report opened";
    case LifecycleEvent::Kind::report_closed:
      return "report closed";
    case LifecycleEvent::Kind::report_reopened:
      return "report reopened";
  }
  return "";
}

}  // namespace unflake
