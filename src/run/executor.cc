#include "run/executor.h"

namespace unflake {

Result<ExperimentResult> Executor::run(const Experiment& experiment) {
  const Ticket ticket = start(experiment);
  bool stopped = false;
  for (;;) {
    Wakeup wakeup = wait();
    if (auto* finished = std::get_if<Finished>(&wakeup); finished && finished->ticket == ticket) {
      // It may have ended by itself just then, and the caller has no other way to hear of the stop.
      if (stopped) finished->result.process.end = ProcessResult::End::cancelled;
      return std::move(finished->result);
    }
    if (const auto* broken = std::get_if<Broken>(&wakeup)) return broken->error;
    if (!std::holds_alternative<Stopped>(wakeup)) continue;
    stopped = true;
    cancel_all();
  }
}

}  // namespace unflake
