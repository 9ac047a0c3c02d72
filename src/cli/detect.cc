#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "app/agent_command.h"
#include "app/characteristic_file.h"
#include "app/listeners.h"
#include "app/project.h"
#include "app/repro_file.h"
#include "cli/commands.h"
#include "cli/detect_bisect.h"
#include "report/detect_text.h"
#include "search/detect/characteristic.h"
#include "search/detect/detection.h"
#include "search/detect/order_search.h"
#include "search/detect/suite_orders.h"
#include "store/values.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr const char* detect_help =
    R"(Finds the flaky tests of a suite for a part of what reruns take: one plain run of each test, one
look at its threads and waits, a few orders of the suite, then schedules and delays for those that
have any, and plain runs where they most likely show something, until the time is over or nothing
is worth a run. What was seen flaky and no lateness explains is tried in other surroundings.

  unflake detect ./server_test                          ten minutes, all tests
  unflake detect build --budget 1h --html flaky.html    a CTest build folder
  unflake detect ./server_test 'Net*' --changed-since origin/main
  unflake detect ./server_test --policy round-robin --no-perturb     what rerunning everything finds
  unflake detect ./server_test Server.Push --bisect v1.2..HEAD       which commit made it flaky

Three kinds of answer, never mixed: seen flaky in plain runs; fails when so late, or in this order
(short slack first); no sign, and the failure rate that the plain runs leave open. Plain runs go
into the history as such, all others as trials. Ctrl-C ends the search and tells what was found.

Exit code 0: no sign in any test; 1: nothing flaky was found, but a test failed in all of its runs, or
could not be run; 2: bad usage; 3: a test was seen flaky, or fails when late or in another order;
4: unflake itself failed; 128 + N: stopped by signal N.

With --bisect, one test is built at commits between two, in a copy of the sources: the failure is
hunted for at the bad end, and what brings it about there is done again in every other build. Exit
code 0: the commit is named; 1: it is not, and the report says why.)";

constexpr double seen_before = 10;  // times as suspect: it failed and passed in earlier sessions

constexpr int64_t enough_runs = 100;  // of a test, to tell its rate
constexpr size_t enough_to_learn_from = 50;
constexpr int orders_of_a_look = 4;  // shuffled; `unflake orders` makes more

struct DetectCommand {
  OneTestOptions one;
  std::optional<Duration> budget;
  std::string changed_since, policy = "likeliest", rate = "0.3%";
  std::string junit, html;
  uint64_t seed = 1;
  bool no_perturb = false, no_orders = false, no_factors = false, json = false;
  BisectCommand bisect;
};

Result<double> parse_rate(std::string text) {
  const bool is_percent = text.ends_with('%');
  if (is_percent) text.pop_back();
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const double rate = is_percent ? number / 100 : number;
  if (text.empty() || *end != '\0' || !(rate > 0 && rate < 1))
    return usage_error("cannot read the rate " + shell_quote(text), "--rate",
                       "give a share of runs, such as 0.3% or 0.003");
  return rate;
}

bool is_source(const std::string& file) {
  static const std::set<std::string> endings{".c",  ".cc",  ".cpp", ".cxx", ".h",
                                             ".hh", ".hpp", ".hxx", ".inl", ".ipp"};
  return endings.contains(lower_case(std::filesystem::path(file).extension().string()));
}

class Detecting {
 public:
  Detecting(DetectCommand& command, const Words& words)
      : command_(command),
        words_(words),
        sink_(command.json ? STDERR_FILENO : STDOUT_FILENO),
        progress_(sink_,
                  wants_colour(command.one.colour, command.json ? STDERR_FILENO : STDOUT_FILENO),
                  can_be_live(command.json ? STDERR_FILENO : STDOUT_FILENO),
                  [this] { return time_over(); }) {}

  Result<int> operator()() {
    auto options = detect_options();
    if (!options) return options.error();
    for (const std::string* file : {&command_.junit, &command_.html})
      if (!file->empty())
        if (auto ready = prepare_output_file(*file); !ready) return ready.error();
    auto one = OneTest::find_each(command_.one, words_);
    if (!one) return one.error();
    one_ = std::move(*one);
    recall();
    auto inputs = select();
    if (!inputs) return inputs.error();
    if (auto used = use_history(*inputs, *options); !used) return used.error();
    budget_ = options->budget;
    options->hunt.extra_functions = one_->functions();
    history_.open(command_.one.history, *one_, command_line_of("detect", words_),
                  [this](const Note& note) { progress_.on(note); });
    one_->events().add(progress_);
    begun_ = std::chrono::steady_clock::now();
    return detect(*inputs, *options);
  }

 private:
  Result<DetectOptions> detect_options() {
    DetectOptions options;
    const auto rate = parse_rate(command_.rate);
    if (!rate) return rate.error();
    auto off = command_.one.groups_off();
    if (!off) return off.error();
    options.budget = command_.budget.value_or(options.budget);
    if (options.budget <= Duration::zero())
      return usage_error("there is no time for a run", "--budget", "give more, such as 10m");
    options.perturb = !command_.no_perturb;
    options.rerun.good_enough = *rate;
    options.rerun.policy = command_.policy == "round-robin"      ? RerunPolicy::round_robin
                           : command_.policy == "size-threshold" ? RerunPolicy::size_threshold
                                                                 : RerunPolicy::likeliest;
    options.hunt.groups_off = std::move(*off);
    options.hunt.system_calls = command_.one.system_calls;
    options.hunt.seed = command_.seed;
    options.hunt.measure_lateness = [this] { return lateness(); };
    options.choose = [this](size_t test) { return choose(test); };
    if (!command_.no_orders)
      options.look_for_orders = [this](Duration most) { return look_for_orders(most); };
    if (!command_.no_factors) options.factors = factor_levels(facts_of_machine());
    options.keep_factor = [this](const FactorFinding& finding) {
      return kept(repro_of(finding, *one_));
    };
    options.keep = [this](size_t, Hunt& hunt, const Found& found) { return keep(hunt, found); };
    return options;
  }

  // The machine is asked once for all tests.
  std::optional<MachineLateness> lateness() {
    if (!std::exchange(asked_machine_, true)) machine_ = machine_lateness();
    return machine_;
  }

  Result<std::vector<DetectInput>> select() {
    std::vector<std::shared_ptr<const Test>> tests;
    for (size_t i = 0; i < one_->choices(); ++i) {
      one_->choose(i);
      tests.push_back(one_->shared_test());
    }
    std::set<TestId> wanted;
    if (!command_.changed_since.empty()) {
      auto changed = changed_ones(tests);
      if (!changed) return changed.error();
      wanted = std::move(*changed);
    }
    std::vector<DetectInput> inputs;
    for (size_t i = 0; i < tests.size(); ++i) {
      if (!command_.changed_since.empty() && !wanted.contains(tests[i]->id)) continue;
      one_->choose(i);
      inputs.push_back({tests[i], one_->timeout()});
      numbers_.push_back(i);
    }
    return inputs;
  }

  // Those that executed code which changed, as far as traces in the history tell; else those whose
  // own lines changed. Code outside of the tests may then be run by any of them.
  Result<std::set<TestId>> changed_ones(const std::vector<std::shared_ptr<const Test>>& tests) {
    const auto changes = changes_since(command_.changed_since, one_->project(), one_->launcher());
    if (!changes) return changes.error();
    const ChangedTests found = changed_tests(tests, *changes);
    std::set<TestId> wanted = found.changed;
    const std::string since = "changed since " + printable(command_.changed_since);
    const auto of_all = [&](size_t number) {
      return fmt::format("{} of {}", number, counted(static_cast<long long>(tests.size()), "test"));
    };
    if (!traces_.tests.empty()) {
      const std::set<TestId> untraced =
          add_touched(tests, {changes->lines, changes->new_files}, wanted);
      selection_ = fmt::format(
          "{}: code that they executed, or their own lines, {}; {} of them were "
          "never traced",
          of_all(wanted.size()), since, untraced.size());
      return wanted;
    }
    wanted.insert(found.undecided.begin(), found.undecided.end());
    const std::vector<std::string> elsewhere = sources_without_tests(tests, *changes);
    if (elsewhere.empty()) {
      selection_ = of_all(wanted.size()) + ": their own lines " + since +
                   ", or nothing tells where they are written";
      return wanted;
    }
    selection_ = fmt::format("all tests: {} {}, and no traces tell which tests run it",
                             printable(elsewhere.front()), since);
    for (const auto& test : tests) wanted.insert(test->id);
    return wanted;
  }

  // Those that were never traced are wanted too, and given back.
  std::set<TestId> add_touched(const std::vector<std::shared_ptr<const Test>>& tests,
                               const EditedCode& edited, std::set<TestId>& wanted) const {
    std::set<TestId> untraced;
    for (const auto& test : tests) untraced.insert(test->id);
    for (const FunctionTraces::OfTest& traced : traces_.tests) {
      if (untraced.erase(traced.test) == 0) continue;
      std::vector<FunctionId> executed;
      for (const uint32_t number : traced.functions) executed.push_back(traces_.functions[number]);
      if (!touched_functions(executed, edited).empty()) wanted.insert(traced.test);
    }
    wanted.insert(untraced.begin(), untraced.end());
    return untraced;
  }

  static std::vector<std::string> sources_without_tests(
      const std::vector<std::shared_ptr<const Test>>& tests, const Changes& changes) {
    std::set<std::string> files = changes.new_files, of_tests;
    for (const auto& [file, lines] : changes.lines) files.insert(file);
    for (const auto& test : tests) of_tests.insert(test->file);
    std::vector<std::string> elsewhere;
    for (const std::string& file : files)
      if (is_source(file) && std::ranges::none_of(of_tests, [&](const std::string& known) {
            return known == file || known.ends_with("/" + file) || file.ends_with("/" + known);
          }))
        elsewhere.push_back(file);
    return elsewhere;
  }

  Result<void> choose(size_t test) {
    if (chosen_ != numbers_[test]) one_->choose(numbers_[test]);
    chosen_ = numbers_[test];
    return one_->set_up();
  }

  // What the history knows. There may be none yet.
  void recall() {
    if (command_.one.history.no_history) return;
    auto store = open_store_to_read(one_->history());
    if (!store) return;
    store_ = std::move(*store);
    if (auto traces = store_->latest_functions("*")) traces_ = std::move(*traces);
  }

  // How long tests take, which were flaky before, and what this project's tests are like. What it
  // says of the past is no evidence: the code may have changed.
  Result<void> use_history(std::vector<DetectInput>& inputs, DetectOptions& options) const {
    auto functions = load_functions(one_->project());
    if (!functions) return functions.error();
    options.functions = std::move(*functions);
    if (!store_) return {};
    std::vector<TestId> ids;
    for (const DetectInput& input : inputs) ids.push_back(input.test->id);
    const auto known = store_->summarise_tests(ids);
    if (!known) return known.error();
    std::map<TestId, const TestSummary*> by_id;
    for (const TestSummary& summary : *known) by_id[summary.test] = &summary;
    if (const auto rated = rated_often(*known); rated.size() >= enough_to_learn_from)
      options.prior = RerunPrior::learned({rated});
    for (DetectInput& input : inputs)
      if (const auto found = by_id.find(input.test->id); found != by_id.end())
        describe_past(*found->second, input);
    add_known(by_id, options);
    return {};
  }

  static void describe_past(const TestSummary& summary, DetectInput& input) {
    if (summary.pass_durations.runs > 0)
      input.seconds = std::chrono::duration<double>(summary.pass_durations.median).count();
    if (summary.passes > 0 && summary.failures > 0) input.suspicion = seen_before;
    for (const SignatureSummary& one : summary.signatures)
      input.known_signatures.insert(one.signature);
  }

  // Which of the project's functions went with flaky tests.
  void add_known(const std::map<TestId, const TestSummary*>& by_id, DetectOptions& options) const {
    const auto exposed = exposures(options.functions, traces_);
    for (size_t i = 0; i < traces_.tests.size(); ++i) {
      const auto found = by_id.find(traces_.tests[i].test);
      if (found == by_id.end()) continue;
      const bool is_flaky = found->second->passes > 0 && found->second->failures > 0;
      if (is_flaky || found->second->passes >= enough_runs)
        options.known.push_back({exposed[i], is_flaky});
    }
  }

  static std::vector<RatedTest> rated_often(const std::vector<TestSummary>& tests) {
    std::vector<RatedTest> rated;
    for (const TestSummary& test : tests)
      if (const int64_t runs = test.passes + test.failures; runs >= enough_runs)
        rated.push_back({static_cast<double>(test.failures) / static_cast<double>(runs),
                         std::chrono::duration<double>(test.pass_durations.median).count()});
    return rated;
  }

  Result<DetectOptions::Kept> kept(Repro repro) const {
    auto saved = save_repro(one_->project(), repro);
    if (!saved) return saved.error();
    return DetectOptions::Kept{std::move(repro), path_from_here(saved->path)};
  }

  // A few orders of each program's tests in one process; what they show is made small.
  Result<DetectOptions::Ordered> look_for_orders(Duration most) {
    DetectOptions::Ordered all;
    std::map<std::string, Tests> programs;
    for (const size_t number : numbers_) {  // entries of CTest share files instead of a process
      const auto& test = one_->selected()[number];
      programs[shares_process(*test) ? test->command.argv.front() : ""].push_back(test);
    }
    std::erase_if(programs, [](const auto& program) { return program.second.size() < 2; });
    for (const auto& [program, tests] : programs) {
      SuiteOrderLimits limits;
      limits.budget = most / static_cast<int64_t>(programs.size());
      limits.timeout = std::min(limits.timeout, limits.budget);
      limits.conditions.private_files = true;
      SuiteOrders suite(one_->executor(), tests, one_->all(), limits);
      OrderOptions options;
      options.least_orders = options.most_orders = orders_of_a_look;
      const OrderReport report = look_for_order_dependence(suite, suite.tests(), options);
      if (suite.error()) return *suite.error();
      all.test_runs += static_cast<int>(report.test_runs);
      for (const std::string& note : suite.notes())
        all.notes.push_back(fmt::format("orders of {}: {}", name_of_suite(program), note));
      if (auto added = add_relations(report, suite.conditions(), all); !added) return added.error();
      all.stopped = suite.stopped();
      if (all.stopped) break;
    }
    return all;
  }

  static std::string name_of_suite(const std::string& program) {
    if (program.empty()) return "entries of CTest";
    return printable(std::filesystem::path(program).filename().string());
  }

  Result<void> add_relations(const OrderReport& report, const Conditions& conditions,
                             DetectOptions::Ordered& all) {
    std::set<TestId> told;  // the first of a test is its smallest
    for (const OrderRelation& relation : report.relations) {
      if (!told.insert(relation.test->id).second) continue;
      auto one = kept(repro_of(relation, conditions, *one_));
      if (!one) return one.error();
      all.found.push_back(std::move(*one));
    }
    if (!report.is_complete)
      all.notes.push_back("there was no time for all orders; `unflake orders` looks for longer");
    return {};
  }

  Result<DetectOptions::Kept> keep(Hunt& hunt, const Found& found) {
    Repro repro = repro_of(found, *one_, command_.seed);
    describe(repro, hunt.profile(), *one_);
    if (repro.is_margin()) return DetectOptions::Kept{std::move(repro), ""};
    return kept(std::move(repro));
  }

  Result<int> detect(const std::vector<DetectInput>& inputs, const DetectOptions& options) {
    const Surroundings here = survey(one_->project(), one_->launcher());
    one_->events().emit(started(inputs, here));
    Detection detection(one_->executor(), one_->events(), inputs, options);
    const auto done = detection();
    DetectReport report = detection.report();
    report.target = one_->target().name;
    report.selection = selection_;
    report.commit = here.commit;
    SessionEnded ended;
    ended.elapsed = report.elapsed;
    ended.interrupted = report.stopped;
    ended.not_run = static_cast<int>(report.count(DetectedTest::Answer::not_run));
    one_->events().emit(ended);
    const auto told = tell(report);
    note_findings(report);
    if (!done) return done.error();
    if (!told) return told.error();
    if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
    return static_cast<int>(exit_code_of(report));
  }

  // What a later `unflake history` tells. Runs are in the history already; this says what came of
  // them, so that it is worth no more than a warning when it cannot be written.
  void note_findings(const DetectReport& report) const {
    using Answer = DetectedTest::Answer;
    if (command_.one.history.no_history ||
        report.count(Answer::seen_flaky) + report.count(Answer::fails_perturbed) == 0)
      return;
    auto store = open_store(one_->history());
    for (const DetectedTest& test : report.tests) {
      if (!store) return;
      if (test.answer != Answer::seen_flaky && test.answer != Answer::fails_perturbed) continue;
      LifecycleStep step;
      step.kind = LifecycleStep::Kind::detected;
      step.test = test.id;
      step.signature = test.perturbed ? test.perturbed->signature : test.signature;
      step.at = std::chrono::system_clock::now();
      step.commit = report.commit;
      step.reason = finding_words(test);
      step.url = test.repro_file;
      if (auto noted = (*store)->lifecycle().note(step); !noted)
        return (void)report_error(noted.error());
    }
  }

  SessionStarted started(const std::vector<DetectInput>& inputs, const Surroundings& here) const {
    SessionStarted session;
    session.at = std::chrono::system_clock::now();
    session.command_line = command_line_of("detect", words_);
    session.surroundings = here;
    if (std::string& build = session.surroundings.build; build.empty())
      build = std::string(local_build) + make_session_uuid();
    session.target = one_->target().name;
    for (const DetectInput& input : inputs) session.tests.push_back(input.test);
    return session;
  }

  Result<void> tell(const DetectReport& report) {
    if (!command_.junit.empty())
      if (auto done = replace_file(command_.junit, detect_junit(report)); !done) return done;
    if (!command_.html.empty())
      if (auto done = replace_file(command_.html, detect_html(report)); !done) return done;
    Page page;
    page.print("{}", command_.json ? detect_json(report)
                                   : detect_text(report, style_for(command_.one.colour)));
    if (page.write_out() != 0) return internal_error("the report could not be written");
    return {};
  }

  static ExitCode exit_code_of(const DetectReport& report) {
    using Answer = DetectedTest::Answer;
    if (report.count(Answer::seen_flaky) + report.count(Answer::fails_perturbed) > 0)
      return ExitCode::flaky_only;
    const bool all_ran = report.count(Answer::not_run) == 0;
    return report.count(Answer::always_fails) > 0 || !all_ran ? ExitCode::test_failed
                                                              : ExitCode::success;
  }

  std::string time_over() const {
    return fmt::format("{} of {}",
                       format_duration(std::chrono::duration_cast<Duration>(
                           std::chrono::steady_clock::now() - begun_)),
                       format_duration(budget_));
  }

  DetectCommand& command_;
  const Words& words_;
  std::chrono::steady_clock::time_point begun_;
  Duration budget_{};
  FdSink sink_;
  DetectProgress progress_;
  TrialHistory history_;
  std::unique_ptr<OneTest> one_;
  std::vector<size_t> numbers_;  // of the tests that are looked at, among those selected
  std::optional<size_t> chosen_;
  std::string selection_;
  std::unique_ptr<Store> store_;  // to read
  FunctionTraces traces_;
  bool asked_machine_ = false;
  std::optional<MachineLateness> machine_;
};

}  // namespace

int detect_command(const Words& words) {
  DetectCommand command;
  CommandLine line("detect", detect_help);
  command.one.add_to(line);
  command.one.target.include_disabled = false;
  line.option("--budget", command.budget, "for everything [10m]");
  line.option("--changed-since", command.changed_since,
              "only tests that changed since this revision, as far as can be told")
      .takes("REV");
  line.option("--policy", command.policy,
              "which test runs next: likeliest, round-robin or size-threshold")
      .one_of({"likeliest", "round-robin", "size-threshold"});
  line.option("--rate", command.rate,
              "a test is left alone when more than this is ruled out at 95 % [0.3%]");
  line.flag("--no-perturb", command.no_perturb,
            "plain runs only: no schedules, no delays, no orders, no factors");
  line.flag("--no-orders", command.no_orders, "run the tests in no other order");
  line.flag("--no-factors", command.no_factors, "change no surroundings of what was seen flaky");
  line.option("--seed", command.seed, "for what is random");
  command.bisect.add_to(line);
  line.flag("--json", command.json, "JSON instead of text");
  line.option("--junit", command.junit, "write the answers as JUnit XML").takes("FILE");
  line.option("--html", command.html, "write the answers as a page").takes("FILE");
  if (const auto done = line.parse(words)) return *done;
  const auto code =
      command.bisect.revisions.empty()
          ? Detecting(command, words)()
          : bisect(command.bisect, command.one, words, command.budget, command.seed, command.json);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
