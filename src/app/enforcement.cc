#include "app/enforcement.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/repro_file.h"
#include "report/layout.h"
#include "report/repair_text.h"
#include "util/text.h"

namespace unflake {

Result<void> Enforcement::add(const Project& project, const std::string& file,
                              const ProjectCodeRules& rules, std::vector<PlannedTest>& tests,
                              Executor& executor) {
  const auto fix = load_fix(project, file);
  if (!fix) return fix.error();
  const auto planned = std::ranges::find_if(
      tests, [&](const PlannedTest& one) { return one.test->id == fix->repro.test; });
  if (planned == tests.end())
    return usage_error(
        fmt::format("{} is not among the tests that are to run", to_string(fix->repro.test)), file,
        "name the test that the fix is for");
  if (!planned->plan.interventions.empty())
    return usage_error(fmt::format("{} has two fixes", to_string(fix->repro.test)), file,
                       "enforce one of them");
  auto located = locate_plan(fix->repro, rules, [&](const Plan& plan) {
    Experiment experiment{planned->test, plan, planned->timeout};
    return executor.run(experiment);
  });
  if (!located) return located.error();
  if (auto gone = why_plan_is_gone(located->relocation, file)) return *gone;
  planned->plan = located->relocation.plan;
  planned->plan.id = "enforced: " + file;
  planned->fork_server = false;
  for (const Relocated& note : located->relocation.notes)
    before_.push_back({Note::Level::info, note.text, ""});
  std::vector<std::string> orders;
  for (const HandOver& one : fix->hand_overs) orders.push_back(hand_over_words(one));
  before_.push_back({Note::Level::warning,
                     fmt::format("{} runs with an order enforced: {}", to_string(fix->repro.test),
                                 join(orders, "; and ")),
                     "these runs are trials in the history: they say nothing about the test as it "
                     "is"});
  all_.push_back({fix->repro.test, file});
  return {};
}

void Enforcement::on(const Event& event) {
  const auto* run = std::get_if<RunEnded>(&event);
  if (run == nullptr || run->plan.interventions.empty()) return;
  for (Enforced& one : all_)
    if (one.test == run->test->id) count(one, *run);
}

void Enforcement::count(Enforced& enforced, const RunEnded& run) const {
  ++enforced.runs;
  if (!run.result.trace) return;
  const auto& states = run.result.trace->interventions;
  Duration waited{};
  for (size_t i = 0; i < run.plan.interventions.size() && i < states.size(); ++i) {
    if (run.plan.interventions[i].action != Intervention::Action::hold) continue;
    enforced.waits += states[i].fired;
    enforced.let_go += states[i].let_go;
    enforced.impossible += states[i].impossible;
    waited += states[i].added;
  }
  constexpr Duration no_wait = std::chrono::milliseconds(1);  // the probe itself takes some time
  enforced.waiting_runs += waited > no_wait;
  enforced.waited += waited;
}

std::vector<Note> Enforcement::after() const {
  std::vector<Note> notes;
  for (const Enforced& one : all_) {
    if (one.runs == 0) continue;
    const std::string average =
        format_duration(one.waited / static_cast<int64_t>(std::max<size_t>(1, one.waiting_runs)));
    std::string text =
        fmt::format("{} was enforced: the test had to wait in {} of {}, {} on average", one.file,
                    one.waiting_runs, counted(static_cast<long long>(one.runs), "run"), average);
    const bool in_vain = one.let_go + one.impossible > 0;
    if (in_vain)
      text +=
          fmt::format("; {} ended in vain ({} at the bound, {} because nobody could come first)",
                      counted(static_cast<long long>(one.let_go + one.impossible), "wait"),
                      one.let_go, one.impossible);
    notes.push_back({in_vain ? Note::Level::warning : Note::Level::info, text,
                     in_vain ? "the code has changed since: `unflake repair` looks again" : ""});
  }
  return notes;
}

}  // namespace unflake
