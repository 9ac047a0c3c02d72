#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "model/plan.h"

namespace unflake {

using Ticket = uint64_t;

struct Finished {
  Ticket ticket = 0;
  ExperimentResult result;
  Ticket next = 0;  // the queued run that has begun in its place; 0: none
};
struct Stopped {};      // somebody asked to stop (Ctrl-C, SIGTERM)
struct StatusAsked {};  // somebody wants to see the live state (SIGUSR1)
struct Tick {};         // nothing happened for as long as the caller wanted to wait
struct Broken {         // no more runs can be made
  Error error;
};

using Wakeup = std::variant<Finished, Stopped, StatusAsked, Tick, Broken>;

// Runs experiments. A search's only door to the world: it has no other process, file or
// clock.
class Executor {
 public:
  virtual ~Executor() = default;

  virtual size_t slots() const = 0;
  virtual size_t free_slots() const = 0;
  virtual Ticket start(
      const Experiment& experiment) = 0;  // needs a free slot, or room in the queue
  // Runs that may be queued after the ones that run, to begin without a pause when these end.
  virtual size_t queue_room() const { return 0; }
  virtual Wakeup wait(std::optional<Duration> at_most = std::nullopt) = 0;
  virtual void cancel_all() = 0;  // what runs ends as `cancelled` and is still reported by wait()
  virtual Duration elapsed() const = 0;  // since this executor was made

  // For callers that run one experiment at a time. When somebody asks to stop meanwhile, the run
  // has the end `cancelled`, even if it was already over.
  Result<ExperimentResult> run(const Experiment& experiment);
};

inline Result<ExperimentResult> Executor::run(const Experiment& experiment) {
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
