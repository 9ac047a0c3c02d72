#include "cli/ingest_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/options.h"
#include "report/style.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::json;

std::string counts_text(const ResultCounts& counts) {
  std::string text = counted(counts.runs, "result");
  if (counts.failures > 0) text += ", " + counted(counts.failures, "failure");
  if (counts.flaky > 0) text += fmt::format(", {} flaky", counts.flaky);
  if (counts.skips > 0) text += fmt::format(", {} skipped", counts.skips);
  return text;
}

std::vector<std::string> notes_of(const Taken& taken) {
  const ResultCounts& counts = taken.report.counts;
  std::vector<std::string> notes;
  if (counts.cases == 0 && !taken.waits && !taken.error && !taken.report.refused)
    notes.push_back("it has no test case: did the tests run?");
  if (taken.report.is_own)
    notes.push_back("unflake wrote it, of a session that is in this history: nothing counts twice");
  if (counts.odd_times > 0)
    notes.push_back(
        fmt::format("{} times made no sense and count as the nearest that does", counts.odd_times));
  if (counts.packed_outputs > 0)
    notes.push_back(
        fmt::format("the outputs of {} failures are packed and left out; let CTest write them "
                    "plainly: ctest --no-compress-output",
                    counts.packed_outputs));
  return notes;
}

Json error_json(const Error& error) {
  return {{"what", printable(error.what)},
          {"where", printable(error.where)},
          {"next", printable(error.next)}};
}

Json to_json(const Taken& taken) {
  const ResultCounts& counts = taken.report.counts;
  Json json{{"file", printable(taken.file)}, {"results", counts.runs},
            {"passes", counts.passes},       {"failures", counts.failures},
            {"skipped", counts.skips},       {"flaky", counts.flaky},
            {"waits", taken.waits},          {"known", taken.report.was_known},
            {"notes", notes_of(taken)}};
  const auto& problem = taken.error ? taken.error : taken.report.refused;
  json["left_out"] = problem ? error_json(*problem) : Json(nullptr);
  return json;
}

Error in_file(Error error, const std::string& file) {
  error.what = fmt::format("{} {}", file, error.what);
  return error;
}

int64_t known_reports(const IngestOutcome& outcome) {
  return std::ranges::count_if(outcome.reports,
                               [](const Taken& one) { return one.report.was_known; });
}

ResultCounts total_of(const IngestOutcome& outcome) {
  ResultCounts total;
  for (const Taken& taken : outcome.reports) {
    const ResultCounts& counts = taken.report.counts;
    total.runs += counts.runs;
    total.failures += counts.failures;
    total.flaky += counts.flaky;
    total.skips += counts.skips;
    total.passes += counts.passes;
  }
  total.flaky = outcome.flaky.value_or(total.flaky);
  return total;
}

void print_report(const Taken& taken, Page& page) {
  if (taken.waits)
    page.print("{}: waits for the server\n", printable(taken.file));
  else if (!taken.error)
    page.print("{}: {}{}\n", printable(taken.file), counts_text(taken.report.counts),
               taken.report.was_known ? "; already known" : "");
  for (const std::string& note : notes_of(taken)) page.print("  note: {}\n", note);
}

void print_outbox(const IngestOutcome& outcome, int64_t waiting, Page& page) {
  const Outbox::Flushed& flushed = outcome.flushed;
  if (flushed.delivered > 0)
    page.print("{} that waited {} delivered\n", counted(flushed.delivered, "report"),
               flushed.delivered == 1 ? "is" : "are");
  if (flushed.is_busy) page.print("another process is sending the reports that wait\n");
  if (waiting > 0)
    page.print("{} in {}; the next `unflake ingest --server` sends {}\n",
               counted(waiting, "report") + (waiting == 1 ? " waits" : " wait"),
               printable(outcome.outbox_folder), waiting == 1 ? "it" : "them");
}

Json outbox_json(const Outbox::Flushed& flushed) {
  Json rejected = Json::array();
  for (const Error& problem : flushed.problems) rejected.push_back(error_json(problem));
  return {{"delivered", flushed.delivered}, {"left", flushed.left}, {"rejected", rejected}};
}

}  // namespace

bool IngestOutcome::left_something_out() const {
  return !flushed.problems.empty() || std::ranges::any_of(reports, [](const Taken& taken) {
    return taken.error || taken.report.refused;
  });
}

void print(const IngestOutcome& outcome, Page& page) {
  for (const Taken& taken : outcome.reports) print_report(taken, page);
  const int64_t waiting = std::ranges::count(outcome.reports, true, &Taken::waits);
  const int64_t done = static_cast<int64_t>(outcome.reports.size()) - waiting;
  const int64_t known = known_reports(outcome);
  if (done > 1)
    page.print("{}: {}{}\n", counted(done, "report"), counts_text(total_of(outcome)),
               known > 0 ? fmt::format("; {} already known", counted(known, "report")) : "");
  if (outcome.passed_over > 0)
    page.print("passed over, as no test reports: {}\n", counted(outcome.passed_over, "XML file"));
  print_outbox(outcome, waiting + outcome.flushed.left, page);
  page.print("{}", outcome.verdict.text);
}

void complain(const IngestOutcome& outcome) {
  if (outcome.away)
    fmt::print(stderr, "unflake: the server is away: {}\n", printable(to_string(*outcome.away)));
  for (const Taken& taken : outcome.reports) {
    const auto& problem = taken.error ? taken.error : taken.report.refused;
    if (problem) report_error(in_file(*problem, taken.file));
  }
  for (const Error& problem : outcome.flushed.problems) report_error(problem);
}

std::string to_json(const IngestOutcome& outcome) {
  Json files = Json::array();
  for (const Taken& taken : outcome.reports) files.push_back(to_json(taken));
  const ResultCounts sum = total_of(outcome);
  Json json{{"format", 1},
            {"files", files},
            {"results", sum.runs},
            {"failures", sum.failures},
            {"flaky", sum.flaky},
            {"known", known_reports(outcome)},
            {"passed_over", outcome.passed_over},
            {"server_away", outcome.away ? error_json(*outcome.away) : Json(nullptr)},
            {"outbox", outbox_json(outcome.flushed)}};
  for (const std::string& line : outcome.verdict.lines)
    json["gate"].push_back(parse_json_or_throw(line));
  return json_text(json, 2);
}

}  // namespace unflake
