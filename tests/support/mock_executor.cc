#include "support/mock_executor.h"

#include <algorithm>

namespace unflake {

MockExecutor::MockExecutor(Truth truth, size_t slots)
    : MockExecutor(FullTruth([truth = std::move(truth)](const Experiment& experiment, int nth) {
                     ExperimentResult result;
                     result.outcome = truth(experiment, nth);
                     return result;
                   }),
                   slots) {}

Ticket MockExecutor::start(const Experiment& experiment) {
  started_.push_back(experiment);
  ExperimentResult result = truth_(experiment, static_cast<int>(started_.size()));
  const Duration duration = result.outcome.duration;
  if (free_slots() == 0)
    queued_.push_back({++last_ticket_, duration, std::move(result)});
  else
    running_.push_back({++last_ticket_, now_ + duration, std::move(result)});
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
  Finished finished{first->ticket, std::move(first->result), 0};
  running_.erase(first);
  if (queued_.empty()) return finished;
  running_.push_back(std::move(queued_.front()));
  queued_.pop_front();
  running_.back().ends += now_;
  finished.next = running_.back().ticket;
  return finished;
}

void MockExecutor::cancel_all() {
  for (Running& run : running_) {
    run.ends = now_;
    run.result.process.end = ProcessResult::End::cancelled;
  }
  for (Running& run : queued_) {
    run.ends = Duration::zero();
    run.result.process.end = ProcessResult::End::cancelled;
  }
}

}  // namespace unflake
