#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "app/agent_command.h"
#include "app/listeners.h"
#include "app/options.h"
#include "app/proving.h"
#include "app/repro_file.h"
#include "cli/commands.h"
#include "output/output_parsers.h"
#include "report/detect_text.h"
#include "report/explanation_pages.h"
#include "report/trace_json.h"
#include "repro/relocation.h"
#include "search/explain/cause_experiments.h"
#include "search/explain/decisive_pair.h"
#include "search/explain/free_lateness.h"
#include "search/reproduce/candidates.h"
#include "search/reproduce/shrink.h"
#include "trace/program_code.h"
#include "util/files.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* explain_help =
    R"(Says why a test is flaky: which thread has to come where before which other one, what the
test relies on instead of waiting for it, and what kind of repair helps. It compares a passing run
with one that fails under the plan of a repro file, which `unflake reproduce` has written.
Experiments, for at most the time of two hundred runs (10 seconds at least, 60 at most), then
show which order decides: it is kept while a thread is late, and turned round while nobody is.

  unflake explain server_test_Server.Accepts-8c7b35ab
  unflake explain FILE --html why.html       where to write the page with both timelines
  unflake explain FILE --chrome both.json    every call of both runs, for ui.perfetto.dev

Exit code 0: explained; 1: one of the two runs could not be made, and the explanation is what the
file and the other run tell, or nothing can be told of the cause, because the code that matters has
neither debug information nor names; 2: bad usage; 4: unflake itself failed; 128 + N: stopped by
signal N.)";

using namespace std::chrono_literals;

// Of the experiments: two hundred runs, within bounds.
constexpr Duration least_budget = 10s, largest_budget = 60s;
constexpr int runs_in_budget = 200;
constexpr int gentle_tries = 2;

struct ExplainCommand {
  std::string file, target;
  std::string html, chrome;
  bool json = false;
  int tries = 20;
  OneTestOptions one;
};

class StringSink : public Sink {
 public:
  void write(std::string_view bytes) override { text += bytes; }
  std::string text;
};

ObservedRun observed(ExperimentResult result) {
  add_printed_failure(result);
  ObservedRun run;
  if (result.trace) run.trace = *result.trace;
  run.outcome = result.outcome;
  run.thread_stacks = result.process.thread_stacks;
  if (result.outcome.failed()) run.memory = memory_history(whole_output(result.process));
  return run;
}

class Explaining {
 public:
  explicit Explaining(ExplainCommand& command) : command_(command) {}

  Result<int> operator()(const Words& words) {
    if (auto loaded = load(); !loaded) return loaded.error();
    if (repro_.is_plain()) return tell_plain_cause();
    if (auto ready = prepare_files(); !ready) return ready.error();
    if (auto made = make_runs(words); !made) return made.error();
    if (one_ && one_->stop_signal() == 0 && passing_ && failing_) make_experiments();
    if (one_ && one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
    return report();
  }

 private:
  Result<void> load() {
    auto found = find_named_repro(command_.file);
    if (!found) return found.error();
    project_ = std::move(found->project);
    repro_ = std::move(found->repro);
    if (repro_.is_under_control()) notes_.push_back("under control it fails when " + repro_.reason);
    name_ = std::filesystem::path(found->path).stem().string();
    if (!command_.html.empty() || command_.json) return {};
    command_.html = project_.path("explain/" + name_ + ".html");
    make_folder(project_);
    return {};
  }

  // It was found by experiment, so that there is nothing to compare.
  int tell_plain_cause() const {
    Page page;
    page.print("{}", command_.json ? plain_cause_json(repro_) : plain_cause_text(repro_));
    const int failed = page.write_out();
    return failed != 0 ? failed : static_cast<int>(ExitCode::success);
  }

  Result<void> prepare_files() const {
    for (const std::string& path : {command_.html, command_.chrome})
      if (!path.empty())
        if (auto ready = prepare_output_file(path); !ready) return ready.error();
    return {};
  }

  // A test that cannot be run any more is still explained, with what the file knows.
  Result<void> make_runs(const Words& words) {
    auto one = find_recorded_test(project_, repro_, command_.target, command_.one);
    if (!one) {
      notes_.push_back("the test cannot be run: " + to_string(one.error()));
      return {};
    }
    one_ = std::move(*one);
    options_.wrappers = one_->wrappers();
    history_.open(command_.one, *one_, command_line_of("explain", words));
    if (auto made = run_without_plan(); !made || one_->stop_signal() != 0) return made;
    if (!relocation_.is_complete()) {
      for (const Relocated& note : relocation_.notes) notes_.push_back(note.text);
      return {};
    }
    repro_.plan.interventions = relocation_.plan.interventions;
    if (auto made = run_gently(); !made || with_plan() || one_->stop_signal() != 0) return made;
    if (auto made = run_with_plan(relocation_.plan, true, command_.tries);
        !made || with_plan() || one_->stop_signal() != 0)
      return made;
    if (auto made = run_with_plan(relocation_.plan, false, command_.tries); !made) return made;
    if (with_plan())
      notes_.push_back(
          "with stacks recorded the run under the plan ends differently: this one was "
          "made without them");
    else
      tell_missing(repro_.passes_under_plan ? "pass" : "fail as recorded", "under the plan");
    return {};
  }

  void tell_missing(const std::string& what, const std::string& how) {
    notes_.push_back(
        fmt::format("the test did not {} in {} {}", what, counted(command_.tries, "run"), how));
  }

  std::optional<ObservedRun>& with_plan() { return repro_.passes_under_plan ? passing_ : failing_; }
  std::optional<ObservedRun>& without_plan() {
    return repro_.passes_under_plan ? failing_ : passing_;
  }

  bool is_wanted(const ExperimentResult& result, bool failing) const {
    return failing ? is_same_failure(repro_, result.outcome, code_)
                   : result.outcome.kind == OutcomeKind::pass;
  }

  // The same runs teach where the plan's sites and threads are now.
  Result<void> run_without_plan() {
    Trace seen;
    Plan plan = profile_plan(repro_);
    for (int i = 0; i < command_.tries; ++i) {
      const auto result = one_->run({plan, {}, "without the plan"}, TrialEnded::Purpose::explain);
      if (one_->stop_signal() != 0) return {};
      if (!result) return result.error();
      if (i == 0) {
        seen = *result->trace;
        code_ = program_code(seen, one_->project_code());
        for (const CodeNote& note : seen.code_notes)
          notes_.push_back(fmt::format("{}: {}", note.text, note.next));
      }
      add_names(seen, *result->trace);
      relocation_ = relocate(repro_, seen, code_);
      if (!without_plan() && is_wanted(*result, repro_.passes_under_plan))
        without_plan() = observed(*result);
      if (!relocation_.is_complete()) continue;
      if (without_plan() && !watches_more_lines(plan)) return {};
      if (i + 1 < command_.tries) without_plan().reset();
    }
    if (!without_plan())
      tell_missing(repro_.passes_under_plan ? "fail as recorded" : "pass", "without the plan");
    return {};
  }

  // A line or a function shows in a trace only where somebody asks for it.
  bool watches_more_lines(Plan& plan) const {
    if (!plan.interventions.empty()) return false;
    for (Intervention one : relocation_.plan.interventions) {
      if (!one.site.api.empty()) continue;
      one.action = Intervention::Action::watch;
      one.anchor.reset();
      plan.interventions.push_back(std::move(one));
    }
    return !plan.interventions.empty();
  }

  // A delay that is far longer than it has to be changes more than what makes the test fail.
  Result<void> run_gently() {
    const auto& all = relocation_.plan.interventions;
    const bool has_hold = std::ranges::any_of(
        all, [](const Intervention& one) { return one.action != Intervention::Action::delay; });
    if (!repro_.slack || repro_.passes_under_plan || all.empty() || has_hold) return {};
    const Duration little = repro_.slack->fails + repro_.slack->fails / 4 + 5ms;
    if (longest_delay(relocation_.plan) <= little) return {};
    Plan gentle = with_longest_delay(relocation_.plan, little);
    for (int i = 0; i < gentle_tries; ++i) {
      with_plan().reset();
      if (auto made = run_with_plan(gentle, true, 1); !made || !with_plan()) return made;
    }
    gentle_ = gentle.interventions;
    return {};
  }

  Result<void> run_with_plan(Plan plan, bool stacks, int tries) {
    plan.agent = plan.calls = true;
    plan.stacks = stacks;
    plan.extra_functions.clear();
    for (int i = 0; i < tries && !with_plan(); ++i) {
      const auto result =
          one_->run({plan, repro_.conditions, "with the plan"}, TrialEnded::Purpose::explain);
      if (one_->stop_signal() != 0) return {};
      if (!result) return result.error();
      if (is_wanted(*result, !repro_.passes_under_plan)) with_plan() = observed(*result);
    }
    return {};
  }

  FailingTest failing_test() const {
    FailingTest test;
    Plan plain = repro_.plan;
    plain.interventions.clear();
    plain.schedule.reset();
    Trial with_plan{repro_.plan, repro_.conditions, "made late"};
    if (!gentle_.empty()) with_plan.plan.interventions = gentle_;
    const Trial without{plain, {}, "without the plan"};
    test.failing = repro_.passes_under_plan ? without : with_plan;
    test.passing = repro_.passes_under_plan ? with_plan : without;
    test.is_same = [this](const Outcome& outcome) {
      return is_same_mistake(repro_, outcome, code_);
    };
    test.by_itself = repro_.without_plan;
    test.timeout = repro_.timeout > Duration{} ? repro_.timeout : one_->timeout();
    test.lines = code_.lines;
    test.printed_at = line_of_printed_failure(repro_.failure, repro_.framework);
    return test;
  }

  Duration budget() const {
    return std::clamp(runs_in_budget * passing_->outcome.duration, least_budget, largest_budget);
  }

  // What two runs look like only suggests what decides; experiments show it.
  void make_experiments() {
    TrialRunner runner(one_->executor(), one_->shared_test(), one_->events(), budget());
    RepairRuns runs(runner, failing_test());
    if (!take_lateness(runs)) return;
    shown_ = find_decisive_pair(runs);
    options_.other_way = shown_.other_way;
    options_.experiments.insert(options_.experiments.end(), shown_.tried.begin(),
                                shown_.tried.end());
    if (shown_.late_there) {
      if (!recorded_plan_) recorded_plan_ = repro_.plan;
      repro_.plan = *shown_.late_there;
      options_.is_place_chosen = true;
    }
    if (recorded_plan_ && shown_.passing && shown_.failing) {
      passing_ = observed(*shown_.passing);
      failing_ = observed(*shown_.failing);
    }
    if (!shown_.critical) return;
    options_.shown =
        ShownPair{shown_.critical->step.call, std::nullopt, shown_.kept, shown_.reversed};
    if (shown_.barrier) options_.shown->barrier = shown_.barrier->call;
    if (shown_.gap_from) options_.shown->gap_from = shown_.gap_from->call;
    for (const auto& named : {shown_.own_way, shown_.hand_over})
      if (named) std::tie(options_.shown->critical, options_.shown->barrier) = *named;
    passing_ = observed(*shown_.passing);
    failing_ = observed(*shown_.failing);
    test_causes(runs);
  }

  // What the runs suggest is asked for what would contradict it.
  void test_causes(RepairRuns& runs) {
    const Explanation suspected = explain(explained(), &*passing_, &*failing_, options_);
    const CauseExperiments asked = ask_for_cause(runs, shown_, suspected_causes(suspected));
    options_.facts = asked.facts;
    options_.experiments.insert(options_.experiments.end(), asked.tried.begin(), asked.tried.end());
  }

  // A schedule or an order says who comes first, and not who is late.
  bool take_lateness(RepairRuns& runs) {
    const auto is_hold = [](const Intervention& one) {
      return one.action == Intervention::Action::hold;
    };
    const bool says_who_is_late =
        !repro_.is_under_control() && std::ranges::none_of(repro_.plan.interventions, is_hold);
    if (says_who_is_late && !repro_.passes_under_plan) return true;
    auto late = says_who_is_late
                    ? std::nullopt
                    : as_lateness(runs, repro_.plan, failing_ ? &failing_->trace : nullptr);
    if (!late) {
      runs.test().passing.plan.schedule.reset();
      late = late_from_its_start(runs);
    }
    options_.experiments.push_back(late ? "the same failure comes when " + to_string(late->plan, {})
                                   : runs.is_over()
                                       ? "no time was left to look for lateness that does the same"
                                       : "no lateness of a thread was found that does the same");
    if (!late) return false;
    recorded_plan_ = repro_.plan;
    runs.test().failing = *late;
    runs.test().passing.plan.schedule.reset();
    repro_.plan = late->plan;
    is_made_to_fail_ = true;
    return true;
  }

  // With the plan under which the runs that are shown were made.
  Repro explained() const {
    Repro repro = repro_;
    if (is_made_to_fail_) repro.passes_under_plan = false;
    return repro;
  }

  std::string source_line(const std::string& file, int line) const {
    if (!code_.source || line <= 0) return "";
    const CodeView::Lines& lines = code_.source(file);
    return static_cast<size_t>(line) <= lines.size() ? lines[static_cast<size_t>(line) - 1] : "";
  }

  Result<int> report() {
    const ObservedRun* passing = passing_ ? &*passing_ : nullptr;
    const ObservedRun* failing = failing_ ? &*failing_ : nullptr;
    const Explanation explanation = explain(explained(), passing, failing, options_);
    const ExplanationReport report{
        repro_,
        explanation,
        passing,
        failing,
        notes_,
        [this](const std::string& file, int line) { return source_line(file, line); },
        proposed_patch(project_, name_),
        recorded_plan_};
    if (auto written = write_files(report); !written) return written.error();
    Page page;
    page.print("{}", command_.json ? explanation_json(report)
                                   : explanation_text(report, style_for(command_.one.colour)));
    if (!command_.json) page.print("\nBoth timelines are in {}\n", printable(command_.html));
    if (const int failed = page.write_out(); failed != 0) return failed;
    const bool is_explained = passing && failing && explanation.unseen.empty();
    return static_cast<int>(is_explained ? ExitCode::success : ExitCode::test_failed);
  }

  Result<void> write_files(const ExplanationReport& report) const {
    if (!command_.html.empty())
      if (auto written = replace_file(command_.html, explanation_html(report)); !written)
        return written;
    if (command_.chrome.empty()) return {};
    std::vector<NamedTrace> runs;
    if (report.passing) runs.push_back({"passing run", &report.passing->trace});
    if (report.failing) runs.push_back({"failing run", &report.failing->trace});
    StringSink sink;
    write_chrome_traces(runs, sink);
    return replace_file(command_.chrome, sink.text);
  }

  ExplainCommand& command_;
  Project project_;
  std::string name_;  // of the repro's file
  Repro repro_;
  TrialHistory history_;
  std::unique_ptr<OneTest> one_;
  CodeView code_;
  Relocation relocation_;
  std::vector<Intervention> gentle_;  // no longer than it takes; empty: as recorded
  std::optional<ObservedRun> passing_, failing_;
  DecisivePair shown_;
  bool is_made_to_fail_ = false;       // although the plan of the file makes it pass
  std::optional<Plan> recorded_plan_;  // where it was replaced by one with lateness
  ExplainOptions options_;
  std::vector<std::string> notes_;
};

}  // namespace

int explain_command(const Words& words) {
  ExplainCommand command;
  CommandLine line("explain", explain_help);
  line.option("file", command.file, "the repro's file, or its name in .unflake/repro")
      .required()
      .takes("FILE");
  line.option("--html", command.html, "where to write the page [.unflake/explain/NAME.html]")
      .takes("OUT");
  line.option("--chrome", command.chrome, "write both runs as a Chrome trace").takes("OUT");
  line.flag("--json", command.json, "JSON instead of text");
  line.option("-n,--tries", command.tries, "runs to make until one passes, or fails [20]")
      .between(1, 100'000);
  line.option("--target", command.target, "another executable or build folder with the test")
      .takes("PATH");
  command.one.add_recording_to(line);
  if (const auto done = line.parse(words)) return *done;
  const auto code = Explaining(command)(words);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
