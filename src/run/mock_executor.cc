#include "run/mock_executor.h"

#include <algorithm>

namespace unflake {

Ticket MockExecutor::start(const Experiment& experiment) {
  started_.push_back(experiment);
  ExperimentResult result;
  result.outcome = truth_(experiment, static_cast<int>(started_.size()));
  running_.push_back({++last_ticket_, now_ + result.outcome.duration, std::move(result)});
  most_at_once_ = std::max(most_at_once_, running_.size());
  return last_ticket_;
}

Wakeup MockExecutor::wait(std::optional<Duration> at_most) {
  if (!interrupts_.empty() && interrupts_.front().waits-- == 0) {
    Wakeup wakeup = interrupts_.front().wakeup;
    interrupts_.pop_front();
    return wakeup;
  }
  const auto first = std::ranges::min_element(running_, {}, &Running::ends);
  if (first == running_.end() || (at_most && first->ends > now_ + *at_most)) {
    now_ += at_most.value_or(Duration::zero());
    return Tick{};
  }
  now_ = std::max(now_, first->ends);
  Finished finished{first->ticket, std::move(first->result)};
  running_.erase(first);
  return finished;
}

void MockExecutor::cancel_all() {
  for (Running& run : running_) {
    run.ends = now_;
    run.result.process.end = ProcessResult::End::cancelled;
  }
}

}  // namespace unflake
