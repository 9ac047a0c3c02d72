#include <fmt/format.h>

#include "cli/agent_command.h"
#include "cli/commands.h"
#include "cli/inject_words.h"
#include "cli/intervention_totals.h"
#include "cli/page.h"

namespace unflake {
namespace {

constexpr const char* help =
    R"(Makes threads of one test late at sites that `unflake trace` shows, and tells what came of
it. The first run goes without interventions, to learn the names; then come the runs with them.

  unflake inject ./server_test Server.Accepts --delay 'queue.cc:57:pthread_cond_wait@main=200ms'
  unflake inject ./server_test Server.Accepts --delay 'queue.cc:57=50ms' -n 20
  unflake inject ./server_test Server.Accepts --hold 'Queue::pop()@pool.cc:31#* until Queue::push()'

A site is a call (FILE:LINE:API), a line (FILE:LINE) or a function's entry (FUNCTION()); behind it
  :after         on the other side of the call: of a wait, when the thread was woken
  :start         of a creation (pthread_create, fork): in the new thread, before its first line
  @THREAD        only in this thread: main, pool.cc:31#2, or pool.cc:31#* for all that line started
A duration has a unit: 80us, 50ms, 1.5s. Behind a delay's duration
  at visit N     only the N-th time that such a thread comes there
  from visit N   from then on
  halving        every time, half as long at each further visit of a thread
  once SITE      visits count from when that site (with @THREAD, if wanted) was reached
Behind a hold's second site
  x N            until it was reached N times
  for DURATION   at most this long [5s]

Exit code 0: all runs passed; 1: all failed; 2: bad usage; 3: some failed; 4: unflake itself failed;
128 + N: stopped by signal N.)";

struct InjectCommand {
  OneTestOptions one;
  InjectWords words;
  int runs = 1;
  bool full = false;
};

class Injection {
 public:
  explicit Injection(const InjectCommand& command)
      : command_(command),
        style_(style_for(command.one.colour)),
        texts_(style_, command.full ? StackDetail::full : StackDetail::project, command.full) {}

  Result<int> operator()(const Words& words) {
    auto plan = base_plan();
    if (!plan) return plan.error();
    if (auto checked = check_interventions(command_.words); !checked) return checked.error();
    auto one = OneTest::find(command_.one, words);
    if (!one) return one.error();
    one_ = std::move(*one);
    const auto profile = one_->run(*plan);
    if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
    if (!profile) return profile.error();
    auto interventions = parse_interventions(command_.words, *profile->trace);
    if (!interventions) return interventions.error();
    tell("without interventions:\n" + outcome_line(one_->test(), *profile, style_));
    CodeNotes notes;
    notes.add(*profile->trace);
    warn(notes.take(), command_.one.colour);
    for (const NamedIntervention& named : *interventions)
      plan->interventions.push_back(named.intervention);
    return run_all(*plan, *interventions);
  }

 private:
  Result<Plan> base_plan() const {
    if (command_.words.delays.empty() && command_.words.holds.empty() &&
        command_.words.set_times.empty() && command_.words.scale_times.empty() &&
        command_.words.watches.empty())
      return usage_error(
          "there is nothing to inject", "",
          "give --delay, --hold, --set-time, --scale-time or --watch; `unflake trace` shows sites");
    auto off = command_.one.groups_off();
    if (!off) return off.error();
    Plan plan;
    plan.agent = true;
    plan.events = plan.stacks = true;  // the names of sites come from stacks
    plan.system_calls = command_.one.system_calls;
    plan.groups_off = std::move(*off);
    return plan;
  }

  Result<int> run_all(Plan plan, const std::vector<NamedIntervention>& interventions) {
    plan.events = plan.stacks = false;  // recording them would make the threads later than asked
    InterventionTotals totals;
    std::vector<std::string> texts;
    for (const NamedIntervention& named : interventions) texts.push_back(named.text);
    for (int i = 0; i < command_.runs; ++i) {
      const auto result = one_->run(plan);
      if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
      if (!result) return result.error();
      if (i == 0) tell("with interventions:\n");
      totals.add(*result);
      tell(texts_.text_of(one_->test(), *result));
    }
    tell("\n" + totals.table(plan.interventions, texts) +
         fmt::format("\n{} of {} failed\n", totals.failed(), counted(totals.runs(), "run")) +
         totals.doubts(plan.interventions, texts, style_));
    if (totals.failed() == 0) return static_cast<int>(ExitCode::success);
    return static_cast<int>(totals.failed() == totals.runs() ? ExitCode::test_failed
                                                             : ExitCode::flaky_only);
  }

  static void tell(const std::string& text) {
    Page page;
    page.print("{}", text);
    (void)page.write_out();
  }

  const InjectCommand& command_;
  const Style style_;
  RunTexts texts_;
  std::unique_ptr<OneTest> one_;
};

}  // namespace

int inject_command(const Words& words) {
  InjectCommand command;
  CommandLine line("inject", help);
  command.one.add_to(line);
  const auto add_list = [&](const char* name, std::vector<std::string>& list, const char* text) {
    line.option(name, list, text).one_at_a_time().takes("TEXT");
  };
  add_list("--delay", command.words.delays, "SITE[@THREAD]=DURATION: be late there");
  add_list("--hold", command.words.holds, "SITE[@THREAD] until SITE[@THREAD]: wait for the other");
  add_list("--set-time", command.words.set_times,
           "SITE[@THREAD]=DURATION: sleep or wait this long");
  add_list("--scale-time", command.words.scale_times,
           "SITE[@THREAD]=FACTOR: the same in proportion, as 0.5 or 50%");
  add_list("--watch", command.words.watches, "SITE[@THREAD]: only count who comes there");
  line.option("-n,--repeat", command.runs, "runs with the interventions [1]").between(1, 1'000'000);
  line.flag("--full", command.full, "what each failing run showed, with the frames of libraries");
  if (const auto done = line.parse(words)) return *done;
  const auto code = Injection(command)(words);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
