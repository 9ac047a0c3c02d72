#include "ingest/report_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>

#include "output/ci_log/ci_log.h"
#include "output/output_parsers.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t longest_id_part = 1000;
constexpr std::string_view nameless = "junit";

// Names that people and tools give to reports of any program.
constexpr std::string_view common_names[] = {
    "test", "tests",  "test_detail", "testresults", "testreport", "result",       "results",
    "out",  "report", "reports",     "output",      "junit",      "testsuites",   "unittests",
    "xml",  "gtest",  "catch2",      "ctest",       "boost",      "junitresults", "junitreport"};

const ReportedSuite* outermost(const CaseContext& context) {
  return context.suites.empty() ? nullptr : &context.suites.front();
}

// Letters and digits of a name, in lower case: "Test-Results" and "test_results" are one.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const unsigned char c : name)
    if (std::isalnum(c) || c == '_') letters += static_cast<char>(std::tolower(c));
  return letters;
}

bool is_common(std::string_view stem) {
  std::string letters = letters_of(stem);
  if (letters == "test_detail") return true;
  std::erase(letters, '_');
  return letters.empty() || std::ranges::find(common_names, letters) != std::end(common_names);
}

// bazel-testlogs/server/server_test/shard_1_of_4/test.xml -> server/server_test
std::string target_from_bazel(std::string_view path) {
  const auto parts = split_at(path, "testlogs/");
  if (!parts) return "";
  std::string target;
  for (const std::string& part : split(parts->after, '/')) {
    if (part.ends_with(".xml") || part.starts_with("shard_") || part.starts_with("run_") ||
        part == "test_attempts")
      break;
    target += (target.empty() ? "" : "/") + part;
  }
  return target;
}

std::string first_of(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (!name.empty()) return std::string(name);
  return std::string(nameless);
}

// "prog.global", "prog.Fixture"
std::string_view catch2_program(std::string_view classname) {
  std::string_view program = classname;
  if (!consume_end(program, ".global")) program = program.substr(0, program.find('.'));
  return program;
}

std::string target_of(const ReportedCase& reported, const CaseContext& context, CaseDialect dialect,
                      const ReportOrigin& origin, std::string_view file) {
  const ReportedSuite* around = outermost(context);
  const std::string_view suite = around ? std::string_view(around->name) : "";
  switch (dialect) {
    case CaseDialect::catch2:
      return first_of({suite, catch2_program(reported.classname), file});
    case CaseDialect::doctest:
      return first_of({base_name(suite), file});
    case CaseDialect::gtest:
      return first_of({file});  // its outer names are "AllTests" and the suite's
    case CaseDialect::boost_test:
      return first_of({file, suite});
    case CaseDialect::ctest:
      return first_of({origin.cmake_project, file, "ctest"});
    default:
      return first_of({suite, context.root_name, file});
  }
}

// Suites within suites are part of the name where no class says more.
std::string inner_suites(const CaseContext& context) {
  std::string path;
  for (size_t i = 1; i < context.suites.size(); ++i)
    path += (path.empty() ? "" : "/") + context.suites[i].name;
  return path;
}

std::string unflake_name(const ReportedCase& reported, const std::string& target) {
  if (!reported.full_name.empty()) return reported.full_name;
  std::string_view suite = reported.classname;
  if (consume(suite, target)) consume(suite, ".");
  return suite.empty() ? reported.name : fmt::format("{}.{}", suite, reported.name);
}

std::string name_of(const ReportedCase& reported, const CaseContext& context, CaseDialect dialect,
                    const std::string& target) {
  switch (dialect) {
    case CaseDialect::unflake:
      return unflake_name(reported, target);
    case CaseDialect::catch2:
      return case_name(reported.classname, reported.name, Framework::catch2);
    case CaseDialect::doctest:
      return case_name(reported.classname, reported.name, Framework::doctest);
    case CaseDialect::boost_test:
      return case_name(reported.classname, reported.name, Framework::boost_test);
    default:
      break;
  }
  std::string classname = reported.classname;
  if (classname.empty()) classname = inner_suites(context);
  if (classname == target) classname.clear();
  return case_name(classname, reported.name, Framework::gtest);
}

// Two long names that differ at their ends stay two.
std::string bounded_part(std::string text) {
  if (text.size() <= longest_id_part) return text;
  return fmt::format("{} #{:016x}", shorten(text, longest_id_part - 20), fnv1a(text));
}

}  // namespace

CaseDialect dialect_of(const ReportedCase& reported, const CaseContext& context) {
  const ReportedSuite* suite = outermost(context);
  if (context.root_name == "unflake") return CaseDialect::unflake;
  if (suite && suite->of_doctest) return CaseDialect::doctest;
  if (suite && suite->of_catch2) return CaseDialect::catch2;
  if (reported.has_result || context.root_name == "AllTests") return CaseDialect::gtest;
  if (reported.has_assertions && suite && suite->has_id) return CaseDialect::boost_test;
  if (reported.of_ctest) return CaseDialect::ctest;
  if (suite && suite->name == reported.name && reported.classname.empty())
    return CaseDialect::bazel;
  return CaseDialect::other;
}

std::string target_from_path(const std::string& path) {
  if (const std::string bazel = target_from_bazel(path); !bazel.empty()) return bazel;
  std::string_view stem = base_name(path);
  if (!consume_end(stem, ".xml")) consume_end(stem, ".XML");
  return is_common(stem) ? "" : std::string(stem);
}

TestId identity_of(const ReportedCase& reported, const CaseContext& context, CaseDialect dialect,
                   const ReportOrigin& origin, std::string_view file_target) {
  const std::string target = target_of(reported, context, dialect, origin, file_target);
  std::string name = name_of(reported, context, dialect, target);
  if (name.empty()) name = "(no name)";
  return {bounded_part(origin.target.empty() ? target : origin.target),
          bounded_part(std::move(name))};
}

namespace {

using Run = ReportedFailure::Run;

struct Judged {
  OutcomeKind outcome = OutcomeKind::fail;
  Failure failure;
};

OutcomeKind outcome_of(const Failure& failure) {
  if (failure.kind == FailureKind::signal) return OutcomeKind::crash;
  if (failure.kind == FailureKind::timeout) return OutcomeKind::timeout;
  return OutcomeKind::fail;
}

std::vector<FailureElement> elements_of(const std::vector<const ReportedFailure*>& failures) {
  std::vector<FailureElement> elements;
  for (const ReportedFailure* failure : failures)
    elements.push_back({failure->is_error, failure->message, failure->text.text()});
  return elements;
}

// The whole output of a program is in the case.
bool is_program(CaseDialect dialect) {
  return dialect == CaseDialect::ctest || dialect == CaseDialect::unflake ||
         dialect == CaseDialect::bazel;
}

std::optional<Judged> judge_program(std::vector<FailureElement> elements,
                                    const std::string& output) {
  for (FailureElement& element : elements)
    if (element.message == "Failed") element.message.clear();  // CTest's word for any status
  CiLog log;
  read_case_output("", elements, output, log);
  if (log.failures.empty() || log.failures.front().failures.empty()) return std::nullopt;
  const Failure& failure = log.failures.front().failures.front();
  return Judged{outcome_of(failure), failure};
}

// What unflake wrote names the kind of a failure in its own words.
bool tells_more(const Judged& judged, CaseDialect dialect) {
  return dialect != CaseDialect::unflake || judged.failure.kind != FailureKind::exit_status;
}

Judged timeout() {
  Judged judged;
  judged.outcome = OutcomeKind::timeout;
  judged.failure.kind = FailureKind::timeout;
  return judged;
}

// Of unflake's own reports the kind is known where the output says nothing.
void take_kind(const std::string& type, Judged& judged) {
  for (const FailureKind kind : {FailureKind::signal, FailureKind::exit_status,
                                 FailureKind::not_started, FailureKind::exception})
    if (type == to_string(kind)) judged.failure.kind = kind;
  judged.failure.expression.clear();
  judged.outcome = outcome_of(judged.failure);
}

Judged judge(const std::vector<const ReportedFailure*>& failures, const std::string& output,
             const ReportedCase& reported, CaseDialect dialect) {
  const auto elements = elements_of(failures);
  if (auto read = dialect_failures(elements))
    return {outcome_of(read->failures.front()), std::move(read->failures.front())};
  if (std::ranges::any_of(failures, [](const auto* one) { return tells_timeout(*one); }))
    return timeout();
  if (is_program(dialect))
    if (auto judged = judge_program(elements, output); judged && tells_more(*judged, dialect))
      return *judged;
  Judged judged;
  judged.failure = read_language_failure(*failures.front(), reported.classname, output);
  if (dialect == CaseDialect::unflake) take_kind(failures.front()->type, judged);
  return judged;
}

RunRecord failing(const std::vector<const ReportedFailure*>& failures, const KeptText& case_output,
                  const ReportedCase& reported, CaseDialect dialect) {
  RunRecord run;
  std::string output;
  for (const ReportedFailure* failure : failures) output += failure->output.text();
  output += case_output.text();
  const Judged judged = judge(failures, output, reported, dialect);
  run.outcome = judged.outcome;
  run.failure = judged.failure;
  run.signature = signature_of(judged.failure);
  for (const ReportedFailure* failure : failures) run.output += failure->text.text() + "\n";
  run.output = cut_middle(run.output + output, longest_kept_output);
  return run;
}

void add_tried(Run when, const ReportedCase& reported, CaseDialect dialect,
               std::vector<RunRecord>& runs) {
  static const KeptText no_output;
  for (const ReportedFailure& failure : reported.failures) {
    if (failure.run != when) continue;
    RunRecord run = failing({&failure}, no_output, reported, dialect);
    run.duration = failure.time ? failure.time->duration : unknown_duration;
    if (failure.timestamp) run.started = *failure.timestamp;
    runs.push_back(std::move(run));
  }
}

// CTest reports what it could not start as skipped, and still fails.
struct Obstacle {
  std::string_view words, what;
};
constexpr std::array obstacles{
    Obstacle{"Unable to find executable", "not built"},
    Obstacle{"Required Files Missing", "its required file is missing"},
    Obstacle{"Failed to change working directory", "the working directory cannot be entered"},
    Obstacle{"Missing Configuration", "not a test of this configuration"},
};

std::optional<RunRecord> not_started(const ReportedCase& reported) {
  const auto found = std::ranges::find(obstacles, reported.why_not_run, &Obstacle::words);
  if (found == obstacles.end()) return std::nullopt;
  RunRecord run;
  run.outcome = OutcomeKind::fail;
  run.output = reported.output.text();
  Failure failure;
  failure.kind = FailureKind::not_started;
  failure.message = found->what;
  if (const std::string_view path = trim(run.output); !path.empty())
    failure.message += fmt::format(": {}", path);
  run.failure = bounded(std::move(failure));
  run.signature = signature_of(*run.failure);
  return run;
}

// A failure next to <skipped> is one that the test is allowed to have.
void add_own(const ReportedCase& reported, CaseDialect dialect, std::vector<RunRecord>& runs) {
  if (auto run = not_started(reported)) return runs.push_back(std::move(*run));
  const bool is_failed = reported.status == ReportedCase::Status::failed;
  std::vector<const ReportedFailure*> own;
  for (const ReportedFailure& failure : reported.failures)
    if (failure.run == Run::last && !reported.is_skipped) own.push_back(&failure);
  static const ReportedFailure no_words;
  if (own.empty() && is_failed && !reported.is_skipped) own.push_back(&no_words);
  RunRecord run;
  if (!own.empty()) run = failing(own, reported.output, reported, dialect);
  const bool is_skipped = reported.is_skipped || reported.status == ReportedCase::Status::not_run;
  if (own.empty() && is_skipped) run.outcome = OutcomeKind::skipped;
  run.duration = reported.time.duration;
  runs.push_back(std::move(run));
}

// A case of unflake's covers all runs of a test, of which those that passed are only counted.
void add_counted_passes(const ReportedCase& reported, std::vector<RunRecord>& runs) {
  const auto listed = std::ranges::count(runs, OutcomeKind::pass, &RunRecord::outcome);
  RunRecord pass;
  pass.duration = reported.time.duration;
  for (int64_t i = listed; i < reported.runs - reported.failed_runs; ++i) runs.push_back(pass);
}

}  // namespace

void runs_of_case(const ReportedCase& reported, CaseDialect dialect, std::vector<RunRecord>& runs) {
  runs.clear();
  add_tried(Run::before, reported, dialect, runs);
  add_own(reported, dialect, runs);
  add_tried(Run::after, reported, dialect, runs);
  if (dialect == CaseDialect::unflake) add_counted_passes(reported, runs);
  for (size_t i = 0; i < runs.size(); ++i) runs[i].attempt = static_cast<int>(i) + 1;
}

}  // namespace unflake
