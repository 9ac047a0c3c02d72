#include "model/repair.h"

namespace unflake {

std::string_view to_string(RepairIdiom idiom) {
  switch (idiom) {
    case RepairIdiom::join:
      return "join";
    case RepairIdiom::notify:
      return "notify";
    case RepairIdiom::poll:
      return "poll";
    case RepairIdiom::hand_over:
      return "hand-over";
    case RepairIdiom::bound:
      return "bound";
    case RepairIdiom::reset:
      return "reset";
    case RepairIdiom::delay:
      return "delay";
  }
  return "?";
}

}  // namespace unflake
