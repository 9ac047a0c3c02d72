#pragma once

#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "app/agent_command.h"
#include "app/command_line.h"
#include "app/listeners.h"
#include "report/search_text.h"

namespace unflake {

// What every command takes that runs one test under many schedules.
struct ScheduleSearchOptions {
  OneTestOptions one;
  std::optional<Duration> budget;
  uint64_t seed = 1;
  bool json = false;
};

// Runs such a search: finds its test, keeps the history and shows how it goes on.
class ScheduleSearchCommand {
 public:
  ScheduleSearchCommand(std::string name, ScheduleSearchOptions& command)
      : name_(std::move(name)),
        command_(command),
        sink_(STDOUT_FILENO),
        progress_(sink_, wants_colour(command.one.colour, STDOUT_FILENO),
                  can_be_live(STDOUT_FILENO)) {
    if (!command.json) events_.add(progress_);
  }

  // `options` are the search's own, of which this sets what all searches have. `search` makes the
  // report, and `tell` prints it and gives the exit code.
  template <class Options, class Search, class Tell>
  Result<int> operator()(const Words& words, Options options, Search search, Tell tell) {
    if (auto ready = prepare(words, options); !ready) return ready.error();
    TrialRunner runner(one_->executor(), one_->shared_test(), one_->events());
    runner.teller().begin(name_);
    const auto report = search(runner, options);
    if (!report) return report.error();
    Page page;
    const ExitCode code = tell(page, *report);
    if (const int failed = page.write_out(); failed != 0) return failed;
    if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
    return static_cast<int>(code);
  }

 private:
  template <class Options>
  Result<void> prepare(const Words& words, Options& options) {
    auto off = command_.one.groups_off();
    if (!off) return off.error();
    auto one = OneTest::find(command_.one, words);
    if (!one) return one.error();
    one_ = std::move(*one);
    options.plan.groups_off = std::move(*off);
    options.plan.system_calls = command_.one.system_calls;
    options.plan.extra_functions = one_->functions();
    options.seed = command_.seed;
    options.limits.budget = command_.budget.value_or(options.limits.budget);
    options.limits.timeout = one_->timeout();
    if (auto done = one_->set_up(); !done) return done.error();
    history_.open(command_.one.history, *one_, command_line_of(name_, words),
                  [this](const Note& note) { events_.emit(note); });
    one_->events().add(events_);
    return {};
  }

  const std::string name_;
  ScheduleSearchOptions& command_;
  FdSink sink_;
  SearchReport progress_;
  EventStream events_;
  TrialHistory history_;
  std::unique_ptr<OneTest> one_;
};

}  // namespace unflake
