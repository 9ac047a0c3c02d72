#include "run/executor.h"

namespace unflake {

Result<ExperimentResult> Executor::run(const Experiment& experiment) {
  const Ticket ticket = start(experiment);
  for (;;) {
    Wakeup wakeup = wait();
    if (auto* finished = std::get_if<Finished>(&wakeup); finished && finished->ticket == ticket)
      return std::move(finished->result);
    if (const auto* broken = std::get_if<Broken>(&wakeup)) return broken->error;
    if (std::holds_alternative<Stopped>(wakeup)) cancel_all();
  }
}

}  // namespace unflake
