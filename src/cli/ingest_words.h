#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/ingest_gate.h"
#include "cli/page.h"
#include "web/outbox.h"

namespace unflake {

// What became of one report.
struct Taken {
  std::string file;
  IngestedReport report;
  std::optional<Error> error;  // nothing was taken
  bool waits = false;          // in the outbox
};

// What became of all reports of a command.
struct IngestOutcome {
  std::vector<Taken> reports;
  int64_t passed_over = 0;       // XML files that are no reports
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
