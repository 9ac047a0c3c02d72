#include "store/last_failures.h"

namespace unflake {

bool LastFailuresReader::take(const SessionTests& session) {
  if (session.tests.empty()) return true;  // stopped before its first run was over
  if (target_.empty()) target_ = session.tests.front().test.target;
  if (session.tests.front().test.target != target_) return true;
  if (!found_) found_ = {session.started, session.command_line, session.finished, target_, {}};
  for (const SessionTests::Ran& ran : session.tests)
    if (seen_.insert(ran.test).second && ran.failed) found_->failed.push_back(ran.test);
  return !session.finished;
}

}  // namespace unflake
