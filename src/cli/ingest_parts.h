#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "app/gatekeeper.h"
#include "app/options.h"
#include "ingest/ingest.h"
#include "util/result.h"
#include "web/delivery.h"

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

// A report that the user named, or one that was found in a folder that the user named.
struct ReportPath {
  std::string path;  // "-": standard input
  bool was_found = false;
};

// Files, folders (every .xml below) and patterns, in order; each file once.
Result<std::vector<ReportPath>> report_paths(const std::vector<std::string>& words);

// The CMake project whose build folder the file is in; empty: none.
std::string cmake_project_around(const std::string& path);

// What became of one report.
struct Taken {
  std::string file;
  IngestedReport report;
  std::optional<Error> error;  // nothing was ingested
  bool waits = false;          // in the outbox
};

// What became of all reports of a command.
struct IngestOutcome {
  std::vector<Taken> reports;
  int64_t passed_over = 0;       // XML files that are not reports
  std::optional<int64_t> flaky;  // tests of all reports together; none: the server has read them
  std::optional<Error> away;     // the server
  Outbox::Flushed flushed;
  std::string outbox_folder;
  IngestVerdict verdict;  // with --ci

  bool left_something_out() const;
};

// For people; problems go to standard error.
void print(const IngestOutcome& outcome, Page& page);
void complain(const IngestOutcome& outcome);

std::string to_json(const IngestOutcome& outcome);

}  // namespace unflake
