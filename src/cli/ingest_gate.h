#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "app/gatekeeper.h"
#include "ingest/ingest.h"

namespace unflake {

// What the gate says about a build whose results came from reports.
struct IngestVerdict {
  std::string text;                // as `unflake run --ci` ends
  std::vector<std::string> lines;  // the notes, tests and sums as `unflake run --json` has them
  ExitCode code = ExitCode::success;
};

// The gate of `unflake run --ci` for results that others made, of all reports of a command: a test
// that failed in one and passed in another is flaky.
class IngestGate {
 public:
  struct Options {
    GatekeeperOptions keeper;
    FlakyResult flaky = FlakyResult::tell;
    std::string commit;
    bool colour = false;
  };

  IngestGate(Quarantine quarantine, Options options);

  // For ingest().
  void see(SessionId session, std::span<const RunRecord> runs) { results_.add(session, runs); }

  // Once everything was seen. Failures that quarantine keeps from failing the build are noted in
  // the history, when there is one.
  IngestVerdict decide(Store* store) const;

 private:
  void tell_test(const TestId& test, Consumer& keeper) const;
  bool is_empty() const;
  void tell_bounds(Consumer& keeper) const;
  SessionStarted started() const;
  SessionEnded ended() const;

  Gate gate_;
  Options options_;
  BuildResults results_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace unflake
