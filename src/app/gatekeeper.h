#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/options.h"
#include "lifecycle/gate.h"
#include "lifecycle/owners.h"
#include "model/events.h"
#include "store/store.h"

namespace unflake {

struct GatekeeperOptions {
  std::string quarantine_file;
  bool quarantine_new = false;
  int quarantine_days = 30;
  int warn_days = 7;
  LiftRule lift;
  std::string project_root;
  TimePoint now;
  std::optional<std::vector<std::string>> listed;  // all names of the target, if it listed them all
};

// As a build is configured.
GatekeeperOptions gatekeeper_options(const CiSettings& ci, std::string quarantine_file,
                                     TimePoint now);

// `asked`: what --flaky says, a name that is known.
FlakyResult ci_flaky_result(const std::optional<std::string>& asked, const Config& config);

// Sits between a session and its listeners: what it passes on says of each test, and of the whole
// session, what the gate decided.
class Gatekeeper : public Consumer {
 public:
  // Without a history nothing is said about the past.
  Gatekeeper(Gate gate, GatekeeperOptions options, Store* store, EventStream& listeners);

  void on(const Event& event) override;
  const GateCounts& counts() const { return counts_; }

 private:
  void begin(const SessionStarted& session);
  void take(const RunEnded& run);
  void end(TestEnded test);
  void end(SessionEnded session);
  std::string past_of(const TestId& test, const GateDecision& decision);
  void collect_new(const Test& test, const GateDecision& decision,
                   const std::vector<GateAttempt>& attempts);
  void quarantine_new(const SessionEnded& session);
  void note_in_history();
  void propose_lifts();

  Gate gate_;
  GatekeeperOptions options_;
  Store* store_;
  EventStream& listeners_;
  Owners owners_;
  std::string commit_, target_;
  std::map<TestId, std::vector<GateAttempt>> attempts_;  // of the tests that have not ended
  std::vector<TestId> passed_;                           // that have entries
  std::vector<QuarantineEntry> new_entries_;
  std::optional<std::vector<LifecycleStep>> lifecycle_;  // once somebody asked
  GateCounts counts_;
};

// Without a test that fails the build, flaky ones decide as they are configured to.
ExitCode gate_exit_code(const GateCounts& counts, FlakyResult flaky);

}  // namespace unflake
