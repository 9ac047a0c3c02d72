#include "app/agent_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "app/listeners.h"
#include "report/layout.h"
#include "report/search_text.h"
#include "report/terminal.h"
#include "report/trace_text.h"
#include "suite/program.h"
#include "trace/code_map.h"
#include "trace/program_code.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr size_t most_output_lines = 20;
constexpr size_t most_named = 5;

Error not_one(const Target& target, const std::vector<std::shared_ptr<const Test>>& tests) {
  std::vector<std::string> some;
  for (const auto& test : tests)
    if (some.size() < most_named) some.push_back(shell_quote(printable(test->id.name)));
  const size_t more = tests.size() - some.size();
  return usage_error(fmt::format("{} tests match, and this command looks into one", tests.size()),
                     target.name,
                     "name one of them: " + join(some, ", ") +
                         (more > 0 ? fmt::format(" and {} more", more) : ""));
}

Tone tone_of(const Outcome& outcome) {
  if (outcome.kind == OutcomeKind::pass) return Tone::good;
  return outcome.failed() ? Tone::bad : Tone::doubtful;
}

std::string excerpt_text(const ProcessResult& process) {
  const Excerpt excerpt = last_lines(process, most_output_lines);
  std::string text;
  if (excerpt.left_out > 0)
    text += detail_line(
        fmt::format("| ... {} before", counted(static_cast<long long>(excerpt.left_out), "line")));
  for (const std::string& line : excerpt.lines) text += detail_line("| " + line);
  return text;
}

}  // namespace

void OneTestOptions::add_to(CommandLine& line) {
  target.include_disabled = true;
  target.add_to(line);
  line.option("--timeout", timeout, "for each run [the suite's own, else 10m]")
      .from_environment("UNFLAKE_TIMEOUT");
  line.option("--group", groups, "only these groups of timing APIs: " + join(timing_groups(), ", "))
      .separated_by(',')
      .one_at_a_time();
  line.option("--no-group", no_groups, "all groups but these").separated_by(',').one_at_a_time();
  line.option("--function", functions, "this function's entry is a site too; may be repeated")
      .one_at_a_time();
  line.flag("--system", system_calls, "also calls that system libraries make for themselves");
  add_recording_to(line);
}

void OneTestOptions::add_recording_to(CommandLine& line) {
  line.option("--color", colour, "auto, always or never").one_of({"auto", "always", "never"});
  history.add_recording_to(line);
  configuration.add_to(line);
}

Result<std::vector<std::string>> OneTestOptions::groups_off() const {
  for (const auto* names : {&groups, &no_groups})
    for (const std::string& name : *names)
      if (const auto known = timing_group(name); !known) return known.error();
  std::vector<std::string> off;
  for (const std::string& name : timing_groups()) {
    const bool chosen = groups.empty() || std::ranges::find(groups, name) != groups.end();
    if (!chosen || std::ranges::find(no_groups, name) != no_groups.end()) off.push_back(name);
  }
  return off;
}

Result<std::unique_ptr<OneTest>> OneTest::find(const OneTestOptions& options, const Words& words,
                                               const Accept& accept) {
  std::unique_ptr<OneTest> one(new OneTest());
  if (auto selected = one->select(options, words, accept); !selected) return selected.error();
  if (one->choices() != 1) return not_one(one->target_, one->selected_);
  one->choose(0);
  return one;
}

Result<std::unique_ptr<OneTest>> OneTest::find_each(const OneTestOptions& options,
                                                    const Words& words) {
  std::unique_ptr<OneTest> one(new OneTest());
  if (auto selected = one->select(options, words, nullptr); !selected) return selected.error();
  return one;
}

void OneTest::choose(size_t number) {
  fixtures_.reset();
  test_ = selected_[number];
  fixtures_ =
      std::make_unique<FixtureRuns>(*executor_, events_, limits_, with_fixtures({test_}, all_));
  runner_ = std::make_unique<TrialRunner>(*executor_, test_, events_);
}

Result<void> OneTest::select(const OneTestOptions& options, const Words& words,
                             const Accept& accept) {
  auto known = options.configuration.find();
  if (!known) return known.error();
  project_ = std::move(known->project);
  const Config& config = known->config;
  history_ = options.history.address(project_, config);
  LocalOptions local;
  local.jobs = options.slots;
  local.grace = config.settings.grace.value_or(local.grace);
  local.project_code = project_code_ =
      config.code.rules(options.code_root.empty() ? project_.root : options.code_root);
  functions_ = options.functions;
  functions_.insert(functions_.end(), config.code.functions.begin(), config.code.functions.end());
  wrappers_ = config.code.wrappers;
  auto executor = LocalExecutor::create(local, interrupts_);
  if (!executor) return executor.error();
  executor_ = std::move(*executor);
  auto tests = select_tests(options.target, words, config.settings.target.value_or(""), project_,
                            find_target_in(history_), *executor_);
  if (!tests) return tests.error();
  if (accept && tests->selected.size() > 1)
    std::erase_if(tests->selected, [&](const auto& test) { return !accept(*test); });
  target_ = tests->target;
  all_ = std::move(tests->all);
  selected_ = std::move(tests->selected);
  limits_ = {options.timeout, config.settings.timeout.value_or(10min)};
  return {};
}

namespace {

Result<ExperimentResult> result_of(std::optional<Observation> seen, const TrialRunner& runner) {
  if (seen) return std::move(seen->result);
  if (runner.error()) return *runner.error();
  return internal_error("the run was stopped");
}

}  // namespace

FixtureRuns::~FixtureRuns() {
  for (const PlannedTest& fixture : planned_)
    if (is_set_up_ && fixture.role == PlannedTest::Role::cleanup) (void)run(fixture);
}

Result<ExperimentResult> FixtureRuns::run(const PlannedTest& fixture) {
  TrialRunner runner(executor_, fixture.test, events_);
  const bool is_setup = fixture.role == PlannedTest::Role::setup;
  const Trial trial{{}, {}, is_setup ? "sets up a fixture" : "cleans up a fixture"};
  TrialLimit limit{limits_.of(*fixture.test)};
  limit.keep_leftovers = is_setup;
  return result_of(runner.run(trial, TrialEnded::Purpose::fixture, limit), runner);
}

Result<void> FixtureRuns::set_up() {
  if (std::exchange(is_set_up_, true)) return {};
  for (const PlannedTest& fixture : planned_) {
    if (fixture.role != PlannedTest::Role::setup) continue;
    const auto result = run(fixture);
    if (!result) return result.error();
    if (result->outcome.failed())
      return usage_error("a fixture that the test needs cannot be set up",
                         to_string(fixture.test->id), failure_headline(result->outcome));
  }
  return {};
}

Result<std::unique_ptr<AgentRun>> OneTest::prepare(const Plan& plan) {
  if (auto done = set_up(); !done) return done.error();
  return executor_->prepare(*test_, plan);
}

Result<ExperimentResult> OneTest::run(const Trial& trial, TrialEnded::Purpose purpose) {
  if (auto done = set_up(); !done) return done.error();
  auto result = result_of(runner_->run(trial, purpose, {timeout()}), *runner_);
  if (result && trial.plan.agent && !has_started(*result))
    return usage_error(result->process.error);
  return result;
}

std::string outcome_line(const Test& test, const ExperimentResult& result, const Style& style) {
  const Outcome& outcome = result.outcome;
  const std::string headline = outcome.failed() ? ": " + failure_headline(outcome) : "";
  return status_line(style, tone_of(outcome), status_word(result), outcome.duration,
                     label_of(test) + headline);
}

std::string outcome_text(const Test& test, const ExperimentResult& result, const Style& style,
                         StackDetail detail) {
  const Outcome& outcome = result.outcome;
  std::string text =
      status_line(style, tone_of(outcome), status_word(result), outcome.duration, label_of(test));
  if (!outcome.failed()) return text;
  text += detail_line(failure_headline(outcome));
  if (result.trace && !deadlock_of(*result.trace).empty())
    text += detail_line(one_line(deadlock_text(*result.trace)));
  for (const std::string& line : timeout_stack_lines(result.process, detail))
    text += detail_line(line);
  return text + excerpt_text(result.process);
}

std::string RunTexts::text_of(const Test& test, const ExperimentResult& result) {
  const bool is_new =
      result.outcome.failed() && (shown_.insert(result.outcome.signature).second || every_);
  std::string text = is_new ? outcome_text(test, result, style_, detail_) +
                                  failures_text(*result.trace, style_, detail_)
                            : outcome_line(test, result, style_);
  const std::string losses = losses_text(*result.trace, style_);
  for (const std::string_view line : split_lines(losses))
    if (!line.empty() && losses_.emplace(line).second) text += std::string(line) + "\n";
  return text;
}

void CodeNotes::on(const Event& event) {
  const auto* trial = std::get_if<TrialEnded>(&event);
  if (trial != nullptr && trial->result.trace) add(*trial->result.trace);
}

void CodeNotes::add(const Trace& trace) {
  for (const CodeNote& note : trace.code_notes)
    if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
}

std::vector<Note> CodeNotes::take() {
  std::vector<Note> notes;
  for (; taken_ < notes_.size(); ++taken_)
    notes.push_back({Note::Level::warning, notes_[taken_].text, notes_[taken_].next});
  return notes;
}

void warn(const std::vector<Note>& notes, const std::string& colour) {
  const Style style(wants_colour(colour, STDERR_FILENO));
  for (const Note& note : notes) fmt::print(stderr, "{}", note_lines(note, style));
}

Style style_for(const std::string& choice) {
  return Style(wants_colour(choice, STDOUT_FILENO));
}

namespace {

Words command_words(const std::string& path, const Repro& repro) {
  Words words;
  words.has_command = true;
  words.command = repro.target_argv.empty() ? std::vector<std::string>{path} : repro.target_argv;
  if (words.command[0].find('/') != std::string::npos) words.command[0] = path;
  return words;
}

}  // namespace

std::string recorded_target(const Project& project, const Repro& repro,
                            const std::string& other_target) {
  if (!other_target.empty()) return absolute_path(other_target);
  if (repro.target_path.empty() || repro.target_path[0] == '/') return repro.target_path;
  return project.root + "/" + repro.target_path;
}

// The words are those with which a user would name the test to another command.
Result<std::unique_ptr<OneTest>> find_recorded_test(const Project& project, const Repro& repro,
                                                    const std::string& other_target,
                                                    OneTestOptions options) {
  const std::string path = recorded_target(project, repro, other_target);
  options.target.include_disabled = true;
  options.target.target_name = repro.test.target;
  if (repro.timeout > Duration::zero()) options.timeout = repro.timeout;
  if (repro.framework == Framework::command)
    return OneTest::find(options, command_words(path, repro));
  std::error_code ignored;
  const bool is_ctest = std::filesystem::is_directory(path, ignored);
  options.target.words = {path, repro.test.name};
  options.target.framework = to_string(is_ctest ? Framework::ctest : repro.framework);
  options.target.open_cases = is_ctest && repro.framework != Framework::ctest;
  if (!is_ctest) options.target.test_args = repro.target_argv;
  return OneTest::find(options, {});
}

Plan profile_plan(const Repro& repro) {
  Plan plan;
  plan.agent = plan.calls = plan.stacks = true;  // the names of sites come from stacks
  plan.system_calls = repro.plan.system_calls;
  plan.groups_off = repro.plan.groups_off;
  return plan;
}

namespace {

constexpr int most_profile_runs = 5;

}  // namespace

Result<LocatedPlan> locate_plan(const Repro& repro, const ProjectCodeRules& rules,
                                const MakeRun& make_run) {
  LocatedPlan located;
  for (int i = 0; i < most_profile_runs; ++i) {
    const auto result = make_run(profile_plan(repro));
    if (!result) return result.error();
    if (!result->trace) return usage_error(result->process.error);
    if (i == 0) {
      located.seen = *result->trace;
      located.code = program_code(located.seen, rules);
    }
    add_names(located.seen, *result->trace);
    located.relocation = relocate(repro, located.seen, located.code);
    if (located.relocation.is_complete()) break;
  }
  Plan& plan = located.relocation.plan;
  plan.agent = true;
  plan.calls = plan.stacks = false;
  plan.extra_functions.clear();  // they would only be counted
  return located;
}

Result<LocatedPlan> locate_plan(OneTest& one, const Repro& repro, const OnTrace& on_trace) {
  bool is_first = true;
  auto located = locate_plan(repro, one.project_code(), [&](const Plan& plan) {
    auto result = one.run({plan, {}, "without interventions"}, TrialEnded::Purpose::profile);
    if (result && result->trace && std::exchange(is_first, false) && on_trace)
      on_trace(*result->trace);
    return result;
  });
  if (one.stop_signal() != 0) return LocatedPlan{};
  return located;
}

std::string gone_from(const Relocation& relocation) {
  std::vector<std::string> gone;
  for (const Relocated& note : relocation.notes)
    if (note.kind == Relocated::Kind::gone) gone.push_back(note.text);
  return join(gone, "; ");
}

std::optional<Error> why_plan_is_gone(const Relocation& relocation, const std::string& path) {
  if (relocation.is_complete()) return std::nullopt;
  return usage_error("the plan cannot be used with this program: " + gone_from(relocation), path,
                     "where the code was rewritten, look for the failure again with `unflake "
                     "reproduce`");
}

void InterventionTotals::add(const ExperimentResult& result) {
  failed_.add(result.outcome.failed());
  bool fired = false;
  const auto& states = result.trace->interventions;
  states_.resize(std::max(states_.size(), states.size()));
  for (size_t i = 0; i < states.size(); ++i) {
    states_[i].visits += states[i].visits;
    states_[i].fired += states[i].fired;
    states_[i].let_go += states[i].let_go;
    states_[i].impossible += states[i].impossible;
    states_[i].added += states[i].added;
    fired = fired || states[i].fired > 0;
  }
  failed_by_itself_ += result.outcome.failed() && !fired;
}

bool InterventionTotals::any_fired(const std::vector<Intervention>& plan) const {
  for (size_t i = 0; i < plan.size() && i < states_.size(); ++i)
    if (plan[i].action != Intervention::Action::watch && states_[i].fired > 0) return true;
  return false;
}

std::string InterventionTotals::table(const std::vector<Intervention>& plan,
                                      const std::vector<std::string>& texts) const {
  if (plan.empty()) return "";
  Table table({"INTERVENTION", "VISITS", "FIRED", "TIME ADDED", "LET GO", "IMPOSSIBLE"});
  for (size_t i = 0; i < plan.size() && i < states_.size(); ++i) {
    const TracedIntervention& state = states_[i];
    const bool is_hold = plan[i].action == Intervention::Action::hold;
    const bool is_watch = plan[i].action == Intervention::Action::watch;
    table.add({(is_watch ? "watch " : "") + texts[i], std::to_string(state.visits),
               is_watch ? "-" : std::to_string(state.fired),
               is_watch ? "-" : format_duration(state.added),
               is_hold ? std::to_string(state.let_go) : "-",
               is_hold ? std::to_string(state.impossible) : "-"});
  }
  return table.text();
}

std::string InterventionTotals::doubts(const std::vector<Intervention>& plan,
                                       const std::vector<std::string>& texts,
                                       const Style& style) const {
  std::string text;
  const auto note = [&](const std::string& words) {
    text += fmt::format("{}: {}\n", style.paint(Tone::doubtful, "note"), words);
  };
  if (failed_by_itself_ > 0 && !plan.empty())
    note(fmt::format("{} failed although nothing had fired: the test fails by itself too",
                     counted(failed_by_itself_, "run")));
  for (size_t i = 0; i < plan.size() && i < states_.size(); ++i) {
    if (states_[i].impossible > 0)
      note(fmt::format("{}: impossible order: nobody was left who could have come first",
                       one_line(texts[i])));
    if (states_[i].fired > 0) continue;
    const std::string why = states_[i].visits > 0 ? "none of its visits was the one asked for"
                                                  : "no such thread came there";
    note(fmt::format("{} never fired: {}", one_line(texts[i]), why));
  }
  return text;
}

}  // namespace unflake
