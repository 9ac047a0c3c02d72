#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "run/agent_session.h"
#include "run/executor.h"
#include "run/interrupts.h"
#include "run/supervisor.h"
#include "suite/adapter.h"

namespace unflake {

struct LocalOptions {
  size_t jobs = 1;
  Duration grace{std::chrono::seconds(2)};  // between SIGTERM and SIGKILL
  OutputLimits limits;
  bool core_dumps = false;
  ProjectCodeRules project_code;  // for stacks, and for runs under the agent
  bool crash_places = true;       // plain runs report where they crash
};

// Runs experiments on this machine, each slot with its own supervisor.
class LocalExecutor : public Executor, public Launcher {
 public:
  // Supervisors are forked here, so make it before anything starts a thread.
  static Result<std::unique_ptr<LocalExecutor>> create(const LocalOptions& options,
                                                       Interrupts& interrupts);
  ~LocalExecutor() override;

  size_t slots() const override { return options_.jobs; }
  size_t free_slots() const override;
  size_t queue_room() const override;
  Ticket start(const Experiment& experiment) override;
  Wakeup wait(std::optional<Duration> at_most) override;
  void cancel_all() override;
  Duration elapsed() const override;

  ProcessResult launch(const Command& command, Duration timeout) override;

  // A run under the agent that somebody else starts, with what earlier runs here have shown. It is
  // good for one process, as long as the result lives.
  Result<std::unique_ptr<AgentRun>> prepare(const Test& test, const Plan& plan) {
    return agents_.prepare(test, plan);
  }

 private:
  struct Ordered {
    Ticket ticket = 0;
    Experiment experiment;
    bool sent = false;
    std::unique_ptr<AgentRun> agent;  // when the plan has it
  };
  struct Slot {
    size_t number = 0;
    Supervisor supervisor;
    bool for_fixtures = false;    // what its processes leave running lives as long as the executor
    std::deque<Ordered> ordered;  // the first one runs
    bool cancelled = false;       // all of them, including those not sent yet
  };

  LocalExecutor(const LocalOptions& options, Interrupts& interrupts)
      : options_(options), interrupts_(interrupts), agents_(ProjectCode(options.project_code)) {}

  Result<void> add_slot(bool for_fixtures);
  Slot* slot_with(size_t ordered, bool for_fixtures);
  Result<Slot*> slot_for(const Experiment& experiment);
  Launch launch_for(const Slot& slot, const Ordered& ordered);
  void find_crash_library();
  std::string crash_library_for(const Command& command);
  bool can_preload(const Command& command);
  std::string world_library_for(const Command& command);
  void refuse(Ticket ticket, const Experiment& experiment, std::string why, int code);
  std::optional<Wakeup> ready_interrupt();
  void send_next(Slot& slot, size_t position);
  ProcessResult replace_supervisor(Slot& slot);
  void read_trace(const Ordered& done, ExperimentResult& result);
  Wakeup finish(Slot& slot);

  const LocalOptions options_;
  Interrupts& interrupts_;
  const std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Slot>> slots_;
  Ticket last_ticket_ = 0;
  bool stop_told_ = false;
  std::optional<Error> broken_;
  AgentSession agents_;
  std::optional<PreloadedLibrary> crash_library_, world_library_;
  // By program as commands name it, with its folder: whether a library can be loaded into it.
  std::map<std::pair<std::string, std::string>, bool> tells_crashes_;
  std::deque<Finished> refused_;  // could not even be started, and were not reported yet
};

}  // namespace unflake
