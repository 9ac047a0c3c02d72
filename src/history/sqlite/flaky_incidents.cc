#include "history/sqlite/flaky_incidents.h"

#include "history/codes.h"
#include "history/values.h"

namespace unflake {

void for_each_flaky_incident(Database& database, int64_t project, const Window& window,
                             const std::function<void(const FlakyIncident&)>& take) {
  Statement incidents(database, R"sql(
      SELECT incidents.session, test, signature, outcome, failures, first_us, last_us, wasted_us,
             build, EXISTS (SELECT 1 FROM suppressions AS s WHERE
                            (s.session, s.test, s.signature)
                            = (incidents.session, incidents.test, incidents.signature))
      FROM sessions CROSS JOIN incidents ON incidents.session = sessions.id
      WHERE project = ? AND sessions.started_us >= ? AND sessions.started_us < ? AND flaky = 1
        AND NOT EXISTS (SELECT 1 FROM signatures AS s WHERE s.id = incidents.signature AND kind = ?)
      )sql");
  Numbering builds;
  for (Query query(incidents, project, to_microseconds(window.from), to_microseconds(window.until),
                   code_of(FailureKind::not_started));
       query.next();)
    take({.session = query.integer(0),
          .test = query.integer(1),
          .signature = query.integer(2),
          .outcome = query.integer(3),
          .failures = query.integer(4),
          .first_us = query.integer(5),
          .last_us = query.integer(6),
          .wasted_us = query.integer(7),
          .build = builds.of(query.text(8)),
          .in_build = !query.text(8).starts_with(local_build),
          .suppressed = query.integer(9) != 0});
}

}  // namespace unflake
