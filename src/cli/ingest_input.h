#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "cli/ingest_gate.h"
#include "util/result.h"
#include "web/delivery.h"

namespace unflake {

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
