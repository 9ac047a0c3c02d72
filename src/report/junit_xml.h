#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/events.h"

namespace unflake {

// A failing run as it is kept for the report: safe text, bounded.
struct JunitFailure {
  int attempt = 1;
  OutcomeKind kind = OutcomeKind::fail;
  std::string type;
  std::string message;
  std::string details;
  std::string output;
};

struct JunitCase {
  std::shared_ptr<const Test> test;
  Verdict verdict = Verdict::not_run;
  Tally tally;
  Duration total_time{};
  std::string reason;
  std::optional<GateDecision> gate = std::nullopt;
  std::vector<JunitFailure> failures = {};  // the first ones; the tally knows how many there were
};

struct JunitSession {
  SessionStarted started;
  SessionEnded ended;
  std::vector<JunitCase> cases;
  std::string uuid = {};  // by which the history knows it; empty: it does not
};

// The report in the dialect of Maven Surefire, which most CI systems read.
std::string junit_xml(const JunitSession& session, bool flaky_fails);

}  // namespace unflake
