#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "app/options.h"
#include "cli/commands.h"
#include "report/layout.h"
#include "stats/rates.h"
#include "store/store.h"
#include "suite/program.h"
#include "util/json.h"
#include "util/text.h"
#include "util/time.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* history_help =
    R"(Tells what the recorded runs say about a test, or about all tests, least reliable first.

  unflake history                            every test
  unflake history ./server_test 'Server.*'   those of a target that match
  unflake history 'server_test:Server.*'     the same, by id
  unflake history server_test:Server.Push    one test: rate, durations, failures
  unflake history Server.Push --all          and the runs that searches made, with their plans
  unflake history Server.Push --purpose confirm    those that were made for this purpose
  unflake history export FILE                every run that is kept, for another store
  unflake history import FILE                take in an export, or runs that could not be recorded
  unflake history prune                      forget runs that are older than is worth keeping

Rates come with an exact 95 % interval (Clopper and Pearson), and are of plain runs alone: what a test
does in `reproduce`, `balance`, `inject`, `replay`, `trace` and `explain` says nothing of what it does by itself.)";

struct HistoryCommand {
  std::vector<std::string> words;
  bool json = false;
  size_t most = 50;
  size_t recent = 10;
  std::string output_of;
  bool all = false;
  std::string purpose;

  bool wants_trials() const { return all || !purpose.empty(); }
};

// What plain runs are for.
constexpr const char* plain_purpose = "run";

int64_t decided_runs(const TestSummary& test) {
  return test.passes + test.failures;
}

std::string short_commit(const std::string& commit) {
  return commit.empty() ? "(no commit)" : printable(commit.substr(0, 10));
}

void print_durations(Page& page, const char* title, const DurationSummary& durations) {
  if (durations.runs == 0) return;
  const char* about = durations.approximate ? "~" : "";
  page.print("  {:<8} median {}{}, 95th percentile {}{}, {} .. {}, mean {} ({} runs)\n", title,
             about, format_duration(durations.median), about, format_duration(durations.p95),
             format_duration(durations.min), format_duration(durations.max),
             format_duration(durations.mean), durations.runs);
}

void print_signature(Page& page, const SignatureSummary& one) {
  page.print("  {} {:>6}x {:<8} {}\n", one.signature, one.runs, to_string(one.outcome),
             headline(one.failure));
  page.print("  {:16} {:>7} first {} at {}, last {} at {}\n", "", "",
             timestamp_in_minutes(one.first), short_commit(one.first_commit),
             timestamp_in_minutes(one.last), short_commit(one.last_commit));
}

void print_recent(Page& page, const std::vector<RecentRun>& runs) {
  if (runs.empty()) return;
  page.print("\nlast runs (UTC)\n");
  for (const RecentRun& run : runs)
    page.print("  {}  {:<8} {:>9}  {:<16}  {} {} {}\n", timestamp_in_minutes(run.started),
               to_string(run.outcome), format_known_duration(run.duration), run.signature,
               short_commit(run.commit), printable(run.branch), printable(run.machine));
}

std::string purpose_of(const RecentRun& run) {
  if (!run.purpose.empty()) return printable(run.purpose);
  return run.plan.empty() ? plain_purpose : "-";
}

void print_with_trials(Page& page, const std::vector<RecentRun>& runs) {
  page.print("\n");
  if (runs.empty()) page.print("no such run is kept\n");
  if (runs.empty()) return;
  Table table({"STARTED (UTC)", "PURPOSE", "OUTCOME", "DURATION", "SIGNATURE", "PLAN"});
  for (const RecentRun& run : runs)
    table.add({timestamp_in_minutes(run.started), purpose_of(run),
               std::string(to_string(run.outcome)), format_known_duration(run.duration),
               run.signature.empty() ? "-" : printable(run.signature),
               run.plan.empty() ? "-" : printable(run.plan)});
  page.print("{}", table.text());
}

void print_summary(Page& page, const TestSummary& test) {
  page.print("{}\n", printable(to_string(test.test)));
  if (test.runs() == 0) return page.print("  no plain run of it is recorded\n");
  page.print("  {}\n", rate_text(test.failures, decided_runs(test)));
  if (test.skips > 0) page.print("  {} runs were skipped\n", test.skips);
  page.print("  first run {}, last run {} (UTC)\n", timestamp_in_minutes(test.first),
             timestamp_in_minutes(test.last));
  page.print("\ndurations\n");
  print_durations(page, "passing", test.pass_durations);
  print_durations(page, "failing", test.fail_durations);
  if (!test.signatures.empty()) page.print("\nfailures\n");
  for (const SignatureSummary& signature : test.signatures) print_signature(page, signature);
  if (const size_t all = static_cast<size_t>(test.signature_count); all > test.signatures.size())
    page.print("  and {} rarer ones\n", all - test.signatures.size());
}

// A test that was always skipped has no rate.
constexpr const char* no_figure = "-";

std::string rate_of(const TestSummary& test) {
  const int64_t runs = decided_runs(test);
  if (runs == 0) return no_figure;
  return percent(static_cast<double>(test.failures) / static_cast<double>(runs));
}

std::string interval_of(const TestSummary& test) {
  const int64_t runs = decided_runs(test);
  return runs == 0 ? no_figure : interval_text(exact_interval(test.failures, runs));
}

void print_table(Page& page, const std::vector<TestSummary>& tests) {
  page.print("{:>8}  {:<20} {:>9} {:>7} {:>6}  {}\n", "rate", "95 % interval", "runs", "failed",
             "kinds", "test");
  for (const TestSummary& test : tests) {
    const int64_t runs = decided_runs(test);
    page.print("{:>8}  {:<20} {:>9} {:>7} {:>6}  {}\n", rate_of(test), interval_of(test), runs,
               test.failures, test.signature_count, printable(to_string(test.test)));
  }
}

Json json_of(const DurationSummary& durations) {
  return {{"runs", durations.runs},
          {"min_us", durations.min.count()},
          {"median_us", durations.median.count()},
          {"p95_us", durations.p95.count()},
          {"max_us", durations.max.count()},
          {"mean_us", durations.mean.count()},
          {"approximate", durations.approximate}};
}

Json json_of(const SignatureSummary& one) {
  return {{"signature", one.signature},
          {"outcome", to_string(one.outcome)},
          {"kind", to_string(one.failure.kind)},
          {"file", printable(one.failure.file)},
          {"line", one.failure.line},
          {"expression", printable(one.failure.expression)},
          {"message", printable(one.failure.message, LineFeeds::keep)},
          {"runs", one.runs},
          {"first", timestamp_in_seconds(one.first)},
          {"last", timestamp_in_seconds(one.last)},
          {"first_commit", printable(one.first_commit)},
          {"last_commit", printable(one.last_commit)}};
}

Json json_of(const TestSummary& test) {
  const int64_t runs = decided_runs(test);
  const Interval interval = exact_interval(test.failures, runs);
  Json signatures = Json::array();
  for (const SignatureSummary& one : test.signatures) signatures.push_back(json_of(one));
  return {
      {"test", printable(to_string(test.test))},
      {"passes", test.passes},
      {"failures", test.failures},
      {"skips", test.skips},
      {"failure_rate",
       runs == 0 ? Json() : Json(static_cast<double>(test.failures) / static_cast<double>(runs))},
      {"interval_95", runs == 0 ? Json() : Json{interval.low, interval.high}},
      {"pass_durations", json_of(test.pass_durations)},
      {"fail_durations", json_of(test.fail_durations)},
      {"signatures", signatures}};
}

Json json_of(const RecentRun& run) {
  return {{"started", timestamp_in_seconds(run.started)},
          {"purpose", purpose_of(run)},
          {"plan", printable(run.plan)},
          {"outcome", to_string(run.outcome)},
          {"duration_us", run.duration.count()},
          {"signature", printable(run.signature)},
          {"commit", printable(run.commit)},
          {"branch", printable(run.branch)},
          {"machine", printable(run.machine)}};
}

void print_json(Page& page, Json tests) {
  const Json whole = {{"format", 1}, {"tests", std::move(tests)}};
  page.print("{}\n", json_text(whole, 2));
}

Json json_of(const std::vector<TestSummary>& tests) {
  Json all = Json::array();
  for (const TestSummary& test : tests) all.push_back(json_of(test));
  return all;
}

// Plain runs and trials together, newest first, as far as they are asked for.
Result<std::vector<RecentRun>> runs_of(Store& store, const TestId& test,
                                       const HistoryCommand& command) {
  std::vector<RecentRun> runs;
  if (command.purpose.empty() || command.purpose == plain_purpose) {
    auto plain = store.recent_runs(test, command.recent);
    if (!plain) return plain.error();
    runs = std::move(*plain);
  }
  if (command.wants_trials() && command.purpose != plain_purpose) {
    auto trials = store.recent_trials(test, command.purpose, command.recent);
    if (!trials) return trials.error();
    runs.insert(runs.end(), trials->begin(), trials->end());
  }
  std::ranges::stable_sort(runs, std::greater(), &RecentRun::started);
  if (runs.size() > command.recent) runs.resize(command.recent);
  return runs;
}

// What detection and bisection have found out about it, oldest first.
Result<std::vector<LifecycleStep>> findings_about(Store& store, const TestId& test) {
  auto steps = store.lifecycle().steps({});
  if (!steps) return steps.error();
  std::erase_if(*steps, [&](const auto& step) { return !is_finding(step) || step.test != test; });
  std::ranges::stable_sort(*steps, {}, &LifecycleStep::at);
  return steps;
}

void print_findings(Page& page, const std::vector<LifecycleStep>& findings) {
  if (!findings.empty()) page.print("\nfound out (UTC)\n");
  for (const LifecycleStep& step : findings) {
    const bool is_beginning = step.kind == LifecycleStep::Kind::introduced;
    page.print("  {}  {} {}: {}\n", timestamp_in_minutes(step.at),
               is_beginning ? "introduced by" : "detected at", short_commit(step.commit),
               printable(step.reason));
    if (!step.url.empty()) page.print("  {:16}  {}\n", "", printable(step.url));
  }
}

Json json_of(const LifecycleStep& step) {
  return {{"kind", to_string(step.kind)},     {"at", timestamp_in_seconds(step.at)},
          {"commit", printable(step.commit)}, {"signature", printable(step.signature)},
          {"reason", printable(step.reason)}, {"repro", printable(step.url)}};
}

Result<void> show_one(Page& page, Store& store, const TestSummary& test,
                      const HistoryCommand& command) {
  if (!command.output_of.empty()) {
    auto output = store.latest_output(test.test, command.output_of);
    if (!output) return output.error();
    if (!*output)
      return usage_error(
          fmt::format("no output is kept for signature '{}'", printable(command.output_of)),
          printable(to_string(test.test)), "`unflake history TEST` lists the signatures");
    page.print("{}", printable(**output, LineFeeds::keep));
    return {};
  }
  const auto runs = runs_of(store, test.test, command);
  if (!runs) return runs.error();
  const auto findings = findings_about(store, test.test);
  if (!findings) return findings.error();
  if (command.json) {
    Json all = json_of(std::vector{test});
    for (const LifecycleStep& step : *findings) all[0]["findings"].push_back(json_of(step));
    if (command.wants_trials())
      for (const RecentRun& run : *runs) all[0]["runs"].push_back(json_of(run));
    print_json(page, std::move(all));
    return {};
  }
  print_summary(page, test);
  print_findings(page, *findings);
  command.wants_trials() ? print_with_trials(page, *runs) : print_recent(page, *runs);
  return {};
}

// Globs over `target:name` for the words that every command takes.
Result<std::vector<std::string>> patterns_of(const HistoryCommand& command, const Words& words,
                                             const Project& project) {
  if (words.has_command)
    return std::vector<std::string>{"command:" + command_name(words.command, project.root)};
  std::error_code failed;
  const bool names_a_file = !command.words.empty() && fs::exists(command.words[0], failed);
  if (!names_a_file) return command.words.empty() ? std::vector<std::string>{"*"} : command.words;
  TargetWords target_words;
  target_words.words = command.words;
  auto selection = resolve(target_words, [](const std::string&) { return std::nullopt; });
  if (!selection) return selection.error();
  std::vector<std::string> patterns;
  for (const std::string& name : selection->patterns)
    patterns.push_back(selection->target.name + ":" + name);
  if (patterns.empty()) patterns.push_back(selection->target.name + ":*");
  return patterns;
}

// A bare name is enough when only one target has such a test.
Result<std::vector<TestSummary>> find_plain(Store& store, const std::string& pattern, size_t most) {
  if (const size_t colon = pattern.find(':'); colon != std::string::npos) {
    auto exact = store.summarise_test({pattern.substr(0, colon), pattern.substr(colon + 1)});
    if (!exact) return exact.error();
    if (*exact) return std::vector<TestSummary>{**exact};
  }
  auto tests = store.summarise(pattern, most);
  if (tests && tests->empty()) tests = store.summarise("*:" + pattern, most);
  return tests;
}

// Tests of which nothing but trials is known.
Result<std::vector<TestSummary>> find_tried(Store& store, const std::string& pattern, size_t most) {
  auto ids = store.find_tests(pattern, most);
  if (ids && ids->empty()) ids = store.find_tests("*:" + pattern, most);
  if (!ids) return ids.error();
  std::vector<TestSummary> tests;
  for (TestId& id : *ids) tests.emplace_back().test = std::move(id);
  return tests;
}

Result<std::vector<TestSummary>> find(Store& store, const std::string& pattern, size_t most,
                                      bool with_trials) {
  auto tests = find_plain(store, pattern, most);
  if (with_trials && tests && tests->empty()) tests = find_tried(store, pattern, most);
  if (tests && tests->empty() && !with_trials)
    if (const auto tried = find_tried(store, pattern, 1); tried && !tried->empty())
      return usage_error(
          fmt::format("no plain run of a test that matches '{}' is recorded", printable(pattern)),
          "", "`unflake history TEST --all` shows the runs that searches made");
  if (tests && tests->empty())
    return usage_error(fmt::format("no recorded test matches '{}'", printable(pattern)), "",
                       "`unflake history` lists the recorded tests");
  return tests;
}

Result<void> show(Page& page, Store& store, const HistoryCommand& command,
                  const std::vector<std::string>& patterns) {
  std::vector<TestSummary> tests;
  for (const std::string& pattern : patterns) {
    auto found = find(store, pattern, command.most + 1, command.wants_trials());
    if (!found) return found.error();
    tests.insert(tests.end(), found->begin(), found->end());
  }
  if (tests.size() == 1 && patterns.front() != "*") {
    auto full = store.summarise_test(tests.front().test);
    if (!full) return full.error();
    return show_one(page, store, full->value_or(tests.front()), command);
  }
  if (!command.output_of.empty())
    return usage_error("--output needs one test", "", "name the test whose output it is");
  if (command.wants_trials())
    return usage_error("--all and --purpose need one test", "", "name the test whose runs to show");
  const bool more = tests.size() > command.most;
  if (more) tests.resize(command.most);
  if (command.json) {
    print_json(page, json_of(tests));
    return {};
  }
  print_table(page, tests);
  if (more) page.print("(the {} least reliable; --most N shows more)\n", command.most);
  return {};
}

struct HistoryPart {
  const char* name;
  int (*run)(const Words& words);
};

constexpr HistoryPart parts[] = {{"export", history_export_command},
                                 {"import", history_import_command},
                                 {"prune", history_prune_command}};

std::optional<int> run_history_part(const Words& words) {
  for (const HistoryPart& part : parts) {
    if (words.options.empty() || words.options.front() != part.name) continue;
    Words rest = words;
    rest.options.erase(rest.options.begin());
    return part.run(rest);
  }
  return std::nullopt;
}

Result<void> show_what(Page& page, Store& store, const HistoryCommand& command, const Words& words,
                       const Project& project) {
  const auto patterns = patterns_of(command, words, project);
  if (!patterns) return patterns.error();
  return show(page, store, command, *patterns);
}

}  // namespace

int history_command(const Words& words) {
  if (const auto code = run_history_part(words)) return *code;
  HistoryCommand command;
  CommandLine line("history", history_help);
  line.option("test", command.words,
              "TARGET [NAME-OR-GLOB...], ids or globs over ids; or: export, import, prune");
  line.flag("--json", command.json, "JSON instead of text");
  line.option("--most", command.most, "how many tests to list").between(1, 1'000'000);
  line.option("--recent", command.recent, "how many of a test's last runs to show");
  line.flag("--all", command.all, "show trials too: the runs that searches made, with their plans");
  line.option("--purpose", command.purpose,
              "only trials for this: profile, candidate, confirm, baseline, dose, look, setting, "
              "inject, replay, trace, explain; or `run`: only plain runs")
      .takes("WORD");
  line.option("--output", command.output_of, "print the kept output of this signature");
  return act_on_history(line, words, [&](const auto& known, const auto& address) -> Result<int> {
    const auto store = open_store_to_read(address);
    if (!store) return store.error();
    Page page;
    const auto shown = show_what(page, **store, command, words, known.project);
    const int written = page.write_out();
    if (!shown) return shown.error();
    return written;
  });
}

}  // namespace unflake
