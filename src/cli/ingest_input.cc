#include "cli/ingest_parts.h"

#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "app/options.h"
#include "report/layout.h"
#include "suite/frameworks.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

constexpr int most_levels_to_build_folder = 8;
constexpr size_t most_kinds = 4, longest_kind = 20;

std::vector<std::string> matches_of(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

struct FolderContents {
  std::vector<std::string> reports;      // files that may be such
  std::map<std::string, size_t> others;  // how many files of which kind: ".json"
  std::error_code failed;                // the folder itself cannot be read
};

// Folders below that cannot be read are skipped, as `find` does.
FolderContents look_into(const std::string& folder) {
  FolderContents contents;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied,
                                      contents.failed);
  if (!contents.failed && ::access(folder.c_str(), R_OK | X_OK) != 0)
    contents.failed = std::error_code(errno, std::generic_category());
  std::error_code broken = contents.failed;
  for (; !broken && at != fs::recursive_directory_iterator(); at.increment(broken)) {
    std::error_code ignored;
    if (!at->is_regular_file(ignored)) continue;
    if (at->path().extension() == ".xml")
      contents.reports.push_back(at->path().string());
    else
      ++contents.others[at->path().extension().string()];
  }
  std::ranges::sort(contents.reports);
  return contents;
}

// "7 .json, 2 .log, 3 others": most frequent first.
std::string kinds_text(const std::map<std::string, size_t>& kinds) {
  std::vector<std::pair<size_t, std::string>> order;
  size_t rest = 0;
  for (const auto& [kind, files] : kinds)
    if (kind.empty())
      rest += files;
    else
      order.emplace_back(files, kind);
  std::ranges::stable_sort(order, std::ranges::greater(), &std::pair<size_t, std::string>::first);
  std::vector<std::string> parts;
  for (const auto& [files, kind] : order)
    if (parts.size() < most_kinds)
      parts.push_back(fmt::format("{} {}", files, printable(shorten(kind, longest_kind))));
    else
      rest += files;
  if (rest > 0)
    parts.push_back(parts.empty() ? fmt::format("{} without an ending", rest)
                                  : fmt::format("{} other", rest));
  return join(parts, ", ");
}

Error no_reports_in(const std::string& folder, const FolderContents& contents) {
  if (contents.failed)
    return usage_error(fmt::format("the folder '{}' cannot be read: {}", printable(folder),
                                   contents.failed.message()),
                       "", "check its rights");
  const std::string seen =
      contents.others.empty() ? "has no files" : "has other files: " + kinds_text(contents.others);
  return usage_error(
      fmt::format("no file in the folder '{}' or below it ends in .xml; it {}", printable(folder),
                  seen),
      "",
      "let the test runner write JUnit XML there (GoogleTest: --gtest_output=xml:FOLDER/, CTest: "
      "--output-junit FILE, pytest: --junitxml FILE), or name the folder that has it");
}

class Paths {
 public:
  Result<void> add(const std::string& word) {
    std::error_code ignored;
    if (word == "-" || (fs::exists(word, ignored) && !fs::is_directory(word, ignored)))
      return take(word, false), Result<void>();
    if (fs::is_directory(word, ignored)) return add_folder(word);
    const auto paths = matches_of(word);
    if (paths.empty())
      return usage_error(fmt::format("there is no report '{}'", printable(word)), "",
                         "name XML files, folders with such, or `-` for standard input");
    for (const std::string& path : paths) take(path, false);
    return {};
  }

  std::vector<ReportPath> all;

 private:
  Result<void> add_folder(const std::string& folder) {
    const FolderContents contents = look_into(folder);
    if (contents.reports.empty()) return no_reports_in(folder, contents);
    for (const std::string& path : contents.reports) take(path, true);
    return {};
  }

  void take(const std::string& path, bool was_found) {
    std::error_code ignored;
    const std::string real = fs::weakly_canonical(path, ignored).string();
    if (known_.insert(path == "-" ? path : real).second) all.push_back({path, was_found});
  }
  std::set<std::string> known_;
};

}  // namespace

Result<std::vector<ReportPath>> report_paths(const std::vector<std::string>& words) {
  Paths paths;
  for (const std::string& word : words)
    if (const auto added = paths.add(word); !added) return added.error();
  return std::move(paths.all);
}

std::string cmake_project_around(const std::string& path) {
  std::error_code failed;
  fs::path folder = fs::absolute(path, failed).lexically_normal().parent_path();
  for (int i = 0; i < most_levels_to_build_folder && folder.has_relative_path(); ++i) {
    if (fs::exists(folder / "CMakeCache.txt", failed)) return ctest_target_name(folder.string());
    folder = folder.parent_path();
  }
  return "";
}

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
    page.print("skipped, because they are not test reports: {}\n",
               counted(outcome.passed_over, "XML file"));
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
