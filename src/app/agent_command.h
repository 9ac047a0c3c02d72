#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/options.h"
#include "model/events.h"
#include "model/plan.h"
#include "model/repro.h"
#include "report/layout.h"
#include "report/trace_text.h"
#include "repro/relocation.h"
#include "run/local_executor.h"
#include "search/session/session.h"
#include "search/trial/trial_runner.h"

namespace unflake {

// What every command takes that looks into a single test.
struct OneTestOptions {
  TargetOptions target;
  StoreOptions history;
  ConfigOptions configuration;
  std::optional<Duration> timeout;
  std::string colour = "auto";
  std::vector<std::string> groups, no_groups;
  std::vector<std::string> functions;
  bool system_calls = false;
  size_t slots = 1;       // runs that may be made at once
  std::string code_root;  // of the sources that the program was built from; empty: the project's

  void add_to(CommandLine& line);
  // Without what selects the test and its sites: for a command that has these from a file.
  void add_recording_to(CommandLine& line);
  // The groups of timing APIs that are left out.
  Result<std::vector<std::string>> groups_off() const;
};

// How long a run of a test may take: as asked for, else as its suite says.
struct TimeLimits {
  std::optional<Duration> chosen;
  Duration usual{};

  Duration of(const Test& test) const { return chosen.value_or(test.timeout.value_or(usual)); }
};

// What a test needs around it. What was set up is cleaned up at the end.
class FixtureRuns {
 public:
  FixtureRuns(Executor& executor, EventStream& events, TimeLimits limits,
              std::vector<PlannedTest> planned)
      : executor_(executor), events_(events), limits_(limits), planned_(std::move(planned)) {}
  FixtureRuns(const FixtureRuns&) = delete;
  FixtureRuns& operator=(const FixtureRuns&) = delete;
  ~FixtureRuns();

  // Once, however often it is asked for.
  Result<void> set_up();

 private:
  Result<ExperimentResult> run(const PlannedTest& fixture);

  Executor& executor_;
  EventStream& events_;
  const TimeLimits limits_;
  const std::vector<PlannedTest> planned_;
  bool is_set_up_ = false;
};

// One test that can be run under the agent again and again, with its fixtures around it.
class OneTest {
 public:
  // With `accept`, of several tests that the words select the one that it accepts.
  using Accept = std::function<bool(const Test&)>;
  static Result<std::unique_ptr<OneTest>> find(const OneTestOptions& options, const Words& words,
                                               const Accept& accept = nullptr);
  // The same for one after the other of the tests that the words select: see choose().
  static Result<std::unique_ptr<OneTest>> find_each(const OneTestOptions& options,
                                                    const Words& words);

  size_t choices() const { return selected_.size(); }
  // Ends the fixtures of the test before.
  void choose(size_t number);

  const Test& test() const { return *test_; }
  const std::shared_ptr<const Test>& shared_test() const { return test_; }
  // Of the target, as it lists them, and those of them that the words select.
  const std::vector<std::shared_ptr<const Test>>& all() const { return all_; }
  const std::vector<std::shared_ptr<const Test>>& selected() const { return selected_; }
  const Target& target() const { return target_; }
  const Project& project() const { return project_; }
  const StoreAddress& history() const { return history_; }
  // For searches, which set their own time limits; after set_up().
  Executor& executor() { return *executor_; }
  // Where every run is told, of the test and of its fixtures.
  EventStream& events() { return events_; }
  Result<void> set_up() { return fixtures_->set_up(); }
  Duration timeout() const { return limits_.of(*test_); }
  // Whose entries are sites too.
  const std::vector<std::string>& functions() const { return functions_; }
  // That only lead to a timing API, as the project says.
  const std::vector<std::string>& wrappers() const { return wrappers_; }
  const std::vector<std::shared_ptr<const Test>>& all_tests() const { return all_; }
  const ProjectCodeRules& project_code() const { return project_code_; }
  // One run, with its fixtures set up. When somebody asked to stop it is an error, and
  // stop_signal() says so.
  Result<ExperimentResult> run(const Trial& trial, TrialEnded::Purpose purpose);
  // A run that somebody else starts, with its fixtures set up: under a debugger.
  Result<std::unique_ptr<AgentRun>> prepare(const Plan& plan);
  Launcher& launcher() { return *executor_; }
  // The signal that asked unflake to stop; 0: none did.
  int stop_signal() const { return interrupts_.stop_signal(); }

 private:
  OneTest() = default;
  Result<void> select(const OneTestOptions& options, const Words& words, const Accept& accept);

  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> executor_;
  Project project_;
  StoreAddress history_;
  Target target_;
  std::vector<std::shared_ptr<const Test>> all_, selected_;
  std::shared_ptr<const Test> test_;
  EventStream events_;
  TimeLimits limits_;
  std::unique_ptr<FixtureRuns> fixtures_;  // of the chosen test
  std::unique_ptr<TrialRunner> runner_;    // of the chosen test
  std::vector<std::string> functions_, wrappers_;
  ProjectCodeRules project_code_;
};

// "PASS [ 12 ms] target:name" and what failed, in one line.
std::string outcome_line(const Test& test, const ExperimentResult& result, const Style& style);
// The same as `unflake run` shows it: with where threads were at a time-out, and the output.
std::string outcome_text(const Test& test, const ExperimentResult& result, const Style& style,
                         StackDetail detail);

// Tells one run after the other: what a failure showed once, then each run in a line.
class RunTexts {
 public:
  // With `every`, what each failing run showed.
  RunTexts(const Style& style, StackDetail detail, bool every)
      : style_(style), detail_(detail), every_(every) {}
  std::string text_of(const Test& test, const ExperimentResult& result);

 private:
  const Style style_;
  const StackDetail detail_;
  const bool every_;
  std::set<std::string> shown_;  // signatures
  std::set<std::string> losses_;
};

// What the traces of a command's runs say about the program's code, each note once.
class CodeNotes : public Consumer {
 public:
  void on(const Event& event) override;
  void add(const Trace& trace);
  const std::vector<CodeNote>& all() const { return notes_; }
  // Those that nobody has taken before, as warnings.
  std::vector<Note> take();

 private:
  std::vector<CodeNote> notes_;
  size_t taken_ = 0;
};

// To standard error, which belongs to nobody else while a command makes its runs.
void warn(const std::vector<Note>& notes, const std::string& colour);

Style style_for(const std::string& choice);

// The test that a repro is about, in the program as it is now. `other_target` takes the place of
// the recorded executable or build folder unless it is empty.
Result<std::unique_ptr<OneTest>> find_recorded_test(const Project& project, const Repro& repro,
                                                    const std::string& other_target,
                                                    OneTestOptions options);

// Where the executable or build folder is that a repro was recorded with, or `other_target`.
std::string recorded_target(const Project& project, const Repro& repro,
                            const std::string& other_target);

// A run without interventions in which everything is recorded that the plan could name.
Plan profile_plan(const Repro& repro);

// A repro's plan for the program as it is now.
struct LocatedPlan {
  Relocation relocation;
  CodeView code;
  Trace seen;  // what runs without interventions have shown
};

// Not every run comes to every call, so a few are made before something counts as gone. `make_run`
// may have an error, and then so does this.
using MakeRun = std::function<Result<ExperimentResult>(const Plan& plan)>;
Result<LocatedPlan> locate_plan(const Repro& repro, const ProjectCodeRules& rules,
                                const MakeRun& make_run);
// The same by runs of the test. When somebody asked to stop, what was found until then.
using OnTrace = std::function<void(const Trace& first)>;
Result<LocatedPlan> locate_plan(OneTest& one, const Repro& repro, const OnTrace& on_trace = {});

// What of it is gone, in words; and as an error, with what to do about it: nothing, when all is
// there.
std::string gone_from(const Relocation& relocation);
std::optional<Error> why_plan_is_gone(const Relocation& relocation, const std::string& path);

// What the interventions of a plan did in all runs under it. Texts are how they are shown, one for
// each intervention.
class InterventionTotals {
 public:
  void add(const ExperimentResult& result);

  const Count& failed() const { return failed_; }
  // Other than watches, which do nothing.
  bool any_fired(const std::vector<Intervention>& plan) const;
  const std::vector<TracedIntervention>& states() const { return states_; }

  std::string table(const std::vector<Intervention>& plan,
                    const std::vector<std::string>& texts) const;
  // A delay that never fired proves nothing, and must not look as if it did.
  std::string doubts(const std::vector<Intervention>& plan, const std::vector<std::string>& texts,
                     const Style& style) const;

 private:
  Count failed_;
  int failed_by_itself_ = 0;  // runs in which nothing fired
  std::vector<TracedIntervention> states_;
};

}  // namespace unflake
