#include "history/sqlite/run_row.h"

namespace unflake {

RunRow read_run(const Query& query) {
  return {.test = query.integer(0),
          .started_us = query.integer(1),
          .session = query.integer(2),
          .attempt = query.integer(3),
          .duration_us = query.integer(4),
          .outcome = query.integer(5),
          .signature = query.integer(6),
          .plan = query.integer(7)};
}

}  // namespace unflake
