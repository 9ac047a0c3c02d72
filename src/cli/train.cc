#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "app/agent_command.h"
#include "app/characteristic_file.h"
#include "app/options.h"
#include "app/repro_file.h"
#include "cli/commands.h"
#include "explain/explanation.h"
#include "report/detect_text.h"
#include "search/detect/training.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* train_help =
    R"(Learns which functions set your flaky tests apart from the others: characteristic functions, which
tell `unflake detect` where to look first. Flaky tests are those that the history has seen fail and pass on the
same code; what tests execute comes from `unflake detect` and `unflake trace --functions`.

  unflake train                       learn, show, and write .unflake/learned-functions.toml
  unflake train --dry-run             only show
  unflake train --kind call --kind project --beta 10
  unflake train --all-projects        from every project of the store

Functions are added one by one as long as the F-score becomes higher. A higher --beta wants more of the flaky
tests, and takes more of the others along.

Exit code 0: what was learned is written, or nothing could be learned, which is said; 2: bad usage, or the
history has no traces; 4: unflake itself failed.)";

struct TrainCommand {
  int beta = 5, cause_beta = 24, folds = 5;
  uint64_t seed = 1;
  std::vector<std::string> kinds;
  std::string out;
  bool dry_run = false, json = false, all_projects = false;
  std::string colour = "auto";
  StoreOptions history;
  ConfigOptions configuration;
};

// Explanations are about orders and times, characteristic functions about what code uses.
std::string cause_of_category(std::string_view category) {
  constexpr std::pair<RootCauseKind, const char*> causes[] = {
      {RootCauseKind::async_wait, "async wait"},   {RootCauseKind::ordering, "concurrency"},
      {RootCauseKind::lost_wakeup, "concurrency"}, {RootCauseKind::teardown_race, "concurrency"},
      {RootCauseKind::deadlock, "concurrency"},    {RootCauseKind::process_handover, "concurrency"},
      {RootCauseKind::exact_timing, "time"},       {RootCauseKind::starvation, "time"},
      {RootCauseKind::resource, "resource leak"}};
  for (const auto& [kind, cause] : causes)
    if (to_string(kind) == category) return cause;
  return "";
}

// Root causes by test: what was reported as the cause of its failures, else what its repros tell.
using Labels = std::map<TestId, std::string>;

Result<Labels> labels_of(Store& store, const std::vector<FlakyFailure>& failures,
                         const Labels& of_repros) {
  const auto causes = store.lifecycle().causes();
  if (!causes) return causes.error();
  std::map<std::string, std::string> of_signature;
  for (const CauseRecord& cause : *causes)
    for (const std::string& signature : cause.signatures)
      if (!cause.category.empty()) of_signature[signature] = cause.category;
  Labels labels;
  for (const auto& [test, category] : of_repros) labels[test] = cause_of_category(category);
  for (const FlakyFailure& failure : failures)
    if (const auto found = of_signature.find(failure.signature); found != of_signature.end())
      if (std::string cause = cause_of_category(found->second); !cause.empty())
        labels[failure.test] = std::move(cause);
  return labels;
}

// "Queue" of "Queue.Is_empty/3".
std::string class_of(const TestId& test) {
  return test.target + ":" + test.name.substr(0, test.name.find_first_of("./"));
}

// Gathers what is known of the tests of one project after the other.
class RunGathering {
 public:
  Result<void> add(const StoreAddress& address, const Labels& of_repros) {
    auto store = open_store_to_read(address);
    if (!store) return store.error();
    const auto traces = (*store)->latest_functions("*");
    if (!traces) return traces.error();
    const auto failures = (*store)->lifecycle().flaky_failures({}, SIZE_MAX);
    if (!failures) return failures.error();
    auto labels = labels_of(**store, *failures, of_repros);
    if (!labels) return labels.error();
    std::set<TestId> flaky;
    for (const FlakyFailure& failure : *failures) flaky.insert(failure.test);
    add_tests(*traces, flaky, *labels, address.project);
    return {};
  }

  // The largest kind of group of which there are several.
  TrainingSet take() {
    std::set<std::string> projects, targets;
    for (const Origin& origin : origins_) {
      projects.insert(origin.project);
      targets.insert(origin.test.target);
    }
    groups_ = projects.size() > 1 ? "project" : targets.size() > 1 ? "target" : "class";
    for (size_t i = 0; i < origins_.size(); ++i)
      set_.tests[i].group = projects.size() > 1  ? origins_[i].project
                            : targets.size() > 1 ? origins_[i].test.target
                                                 : class_of(origins_[i].test);
    return std::move(set_);
  }
  const std::string& groups() const { return groups_; }
  int64_t labelled() const { return labelled_; }

 private:
  struct Origin {
    std::string project;
    TestId test;
  };

  void add_tests(const FunctionTraces& traces, const std::set<TestId>& flaky, const Labels& labels,
                 const std::string& project) {
    std::vector<uint32_t> number_of;
    for (const FunctionId& function : traces.functions) {
      const auto [known, is_new] =
          numbers_.try_emplace(function, static_cast<uint32_t>(set_.functions.size()));
      if (is_new) set_.functions.push_back(function);
      number_of.push_back(known->second);
    }
    for (const FunctionTraces::OfTest& traced : traces.tests) {
      TrainingTest test{"", flaky.contains(traced.test)};
      const auto label = labels.find(traced.test);
      if (test.is_flaky && label != labels.end()) test.cause = label->second;
      labelled_ += !test.cause.empty();
      for (const uint32_t number : traced.functions) test.functions.push_back(number_of[number]);
      set_.tests.push_back(std::move(test));
      origins_.push_back({project, traced.test});
    }
  }

  TrainingSet set_;
  std::vector<Origin> origins_;
  std::map<FunctionId, uint32_t> numbers_;
  std::string groups_;
  int64_t labelled_ = 0;
};

Result<std::vector<std::string>> names_of_projects(const TrainCommand& command,
                                                   const StoreAddress& address) {
  if (!command.all_projects) return std::vector<std::string>{address.project};
  auto store = open_store_to_read(address);
  if (!store) return store.error();
  const auto rows = (*store)->lifecycle().prevalence({});
  if (!rows) return rows.error();
  std::vector<std::string> names;
  for (const Prevalence& row : *rows) names.push_back(row.project);
  return names;
}

TrainingOptions options_of(const TrainCommand& command) {
  TrainingOptions options;
  options.beta = command.beta;
  options.cause_beta = command.cause_beta;
  options.folds = static_cast<size_t>(command.folds);
  options.seed = command.seed;
  if (!command.kinds.empty()) options.kinds.clear();
  for (const std::string& kind : command.kinds)
    if (const auto known = function_kind_from(kind)) options.kinds.push_back(*known);
  return options;
}

std::vector<std::string> heading_of(const TrainCommand& command, const TrainingReport& report) {
  std::vector<std::string> lines = {
      "Characteristic functions that `unflake train` has learned from this project's history.",
      fmt::format("{} traced tests, {} of them flaky, {} with a known root cause; beta {}, {} for "
                  "each root cause.",
                  report.known.all, report.known.flaky, report.labelled, command.beta,
                  command.cause_beta)};
  if (!report.validation.folds.empty())
    lines.push_back(fmt::format(
        "{}-fold cross-validation: {} of the flaky tests exposed, and {} of all.",
        report.validation.folds.size(), percent(report.validation.mean(&ExposedShares::of_flaky)),
        percent(report.validation.mean(&ExposedShares::of_all))));
  return lines;
}

Result<std::string> write_learned(const TrainCommand& command, const Project& project,
                                  const TrainingReport& report) {
  const CharacteristicSet learned = learned_set(report);
  if (command.dry_run || learned.empty()) return std::string();
  const std::string path = command.out.empty() ? learned_functions_path(project) : command.out;
  if (command.out.empty()) make_folder(project);
  const auto written = replace_file(path, functions_text(learned, heading_of(command, report)));
  if (!written) return written.error();
  return path;
}

Error no_traces(const StoreAddress& address) {
  return usage_error("the history does not know what any test executes", to_string(address),
                     "`unflake trace --functions TARGET NAME` tells it of a test");
}

Result<int> train_on_history(const TrainCommand& command) {
  const auto project = find_project();
  if (!project) return project.error();
  const auto config = command.configuration.load(*project);
  if (!config) return config.error();
  const auto known = load_functions(*project);
  if (!known) return known.error();
  const StoreAddress address = command.history.address(*project, *config);
  const auto names = names_of_projects(command, address);
  if (!names) return names.error();
  RunGathering gathering;
  for (const std::string& name : *names) {
    const bool is_own = name == address.project;
    const auto added =
        gathering.add({address.url, name}, is_own ? categories_of_repros(*project) : Labels{});
    if (!added) return added.error();
  }
  const TrainingSet training = gathering.take();
  if (training.tests.empty()) return no_traces(address);
  TrainingReport report = train(training, *known, options_of(command));
  report.labelled = gathering.labelled();
  report.groups = gathering.groups();
  const auto path = write_learned(command, *project, report);
  if (!path) return path.error();
  Page page;
  page.print("{}", command.json ? training_json(report)
                                : training_text(report, style_for(command.colour)));
  if (!path->empty() && !command.json)
    page.print("\nWhat is left is in {}\n", printable(path_from_here(*path)));
  return page.write_out();
}

}  // namespace

int train_command(const Words& words) {
  TrainCommand command;
  CommandLine line("train", train_help);
  line.option("--beta", command.beta, "how much more recall counts than precision [5]")
      .between(1, 1000);
  line.option("--cause-beta", command.cause_beta, "the same for flaky tests of one root cause [24]")
      .between(1, 1000);
  line.option("--kind", command.kinds,
              "of functions: call, library, project; repeatable [call, library]")
      .one_of({"call", "library", "project"})
      .one_at_a_time();
  line.option("--folds", command.folds, "of the cross-validation; 0: none [5]").between(0, 100);
  line.option("--seed", command.seed, "deals tests out to the folds [1]");
  line.option("--out", command.out, "write what was learned there").takes("FILE");
  line.flag("--dry-run", command.dry_run, "write nothing");
  line.flag("--all-projects", command.all_projects, "learn from every project of the store");
  line.flag("--json", command.json, "JSON instead of text");
  line.option("--color", command.colour, "auto, always or never")
      .one_of({"auto", "always", "never"});
  command.history.add_to(line);
  command.configuration.add_to(line);
  if (const auto done = line.parse(words)) return *done;
  const auto code = train_on_history(command);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
