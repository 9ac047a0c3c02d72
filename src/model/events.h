#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/plan.h"
#include "model/repro.h"

namespace unflake {

// What all runs of one test in one session say together.
enum class Verdict { passed, failed, flaky, skipped, not_run };

std::string_view to_string(Verdict verdict);

struct Tally {
  int passes = 0;
  int failures = 0;  // fail, crash and timeout
  int skips = 0;

  int runs() const { return passes + failures + skips; }

  void add(const Outcome& outcome);
  Tally& operator+=(const Tally& other);
};

Verdict verdict_of(const Tally& tally);

// Where and from what a session's runs are made; history keeps it with every run.
struct Surroundings {
  std::string commit;
  std::string branch;
  bool dirty = false;  // the work tree differs from the commit
  std::string machine;
  std::string unflake_version;
  std::string build =
      "";  // what CI calls the build that this is a part of; empty: a build of its own
};

struct SessionStarted {
  std::chrono::system_clock::time_point at;
  std::string command_line;
  Surroundings surroundings;
  std::string target;
  std::vector<std::shared_ptr<const Test>> tests;
  int repeat = 1;             // runs wanted of every test; 0: until the session's time is up
  int retries = 0;            // more tries for a test that fails
  std::set<TestId> repeated;  // that have more runs than the others
  std::string why_repeated;   // in plain words
  bool until_fail = false;
  std::optional<Duration> duration;
  std::optional<uint64_t> seed;  // when shuffled
  size_t jobs = 1;
};

struct RunStarted {
  std::shared_ptr<const Test> test;
  int attempt = 1;
};

// A run goes on for longer than most do; repeated after each multiple of that time.
struct RunSlow {
  std::shared_ptr<const Test> test;
  int attempt = 1;
  Duration after{};  // it has run at least this long
};

struct RunEnded {
  std::shared_ptr<const Test> test;
  int attempt = 1;  // counts from 1 for each test
  Plan plan;
  ExperimentResult result;
  bool will_retry = false;
};

// What a build's gate makes of a test's runs, in the light of the quarantine.
enum class GateKind {
  passed,
  skipped,
  not_run,
  flaky_new,        // failed and passed, with a failure that is not in quarantine
  flaky_known,      // failed and passed, with failures that are
  quarantined,      // always failed, with failures that are
  failed,           // always failed
  other_signature,  // is in quarantine for a different failure
  expired,          // its time in quarantine is over
};

std::string_view to_string(GateKind kind);

// These fail a build, whatever the rule for flaky tests.
bool fails_build(GateKind kind);

struct GateDecision {
  GateKind kind = GateKind::passed;
  std::string text;                  // why, in plain words; empty: nothing to add to the verdict
  std::vector<std::string> next;     // commands to run next
  std::vector<std::string> unknown;  // signatures that are not in quarantine
  std::vector<std::string> known;    // signatures that are, and so did not fail the build
  std::string past;                  // when it was in quarantine before, and how that ended
  std::string until, owner, issue;   // of the entry that decided
  bool sanitizer = false;            // a sanitizer reported a failure: a defect, not a flake
};

struct GateCounts {
  int flaky_new = 0;
  int flaky_known = 0;
  int quarantined = 0;
  int failed = 0;
  int other_signature = 0;
  int expired = 0;

  void add(GateKind kind);
  int failing() const { return failed + other_signature + expired; }
};

struct TestEnded {
  std::shared_ptr<const Test> test;
  Verdict verdict = Verdict::not_run;
  Tally tally;
  std::string reason;  // why it was skipped, not run, or not run as often as was wanted
  std::optional<GateDecision> gate = std::nullopt;  // where a gate decides
};

// Something that the user should know and that is not a run: what happened and what to do next.
struct Note {
  enum class Level { info, warning, error };
  Level level = Level::info;
  std::string text;
  std::string next;
};

std::string_view to_string(Note::Level level);

struct StatusRequested {};  // SIGUSR1
struct Ticked {};           // time has passed; a live display may refresh

struct SlowTest {
  std::shared_ptr<const Test> test;
  Duration duration{};  // of its longest run
};

struct SessionEnded {
  Duration elapsed{};
  bool interrupted = false;
  int passed = 0;
  int failed = 0;
  int flaky = 0;
  int skipped = 0;
  int not_run = 0;
  Tally runs;
  bool mass_failure = false;       // so much failed that nothing more was retried
  std::optional<GateCounts> gate;  // where a gate decides
  std::vector<SlowTest> slowest;   // as many as were asked for, slowest first
};

// A search for a plan under which a test fails.
struct SearchStarted {
  std::chrono::system_clock::time_point at;
  std::shared_ptr<const Test> test;
  std::string wanted;  // the failure's headline; empty: any
  std::string signature;
  Duration budget{};
};

// What is tried next, and why.
struct SearchStep {
  std::string strategy;
  std::string text;
};

struct TrialEnded {
  enum class Purpose {
    profile,    // what the test does when nobody interferes
    candidate,  // of a search
    confirm,
    baseline,  // how often it fails without a plan
    dose,
    look,     // for a strategy's own information
    setting,  // with other time values
    inject,
    replay,
    trace,
    explain,
    fixture,  // sets up, or cleans up, what the test needs
  };
  std::shared_ptr<const Test> test;
  Purpose purpose = Purpose::candidate;
  std::string strategy;
  int number = 0;  // of its purpose, from 1
  std::string why;
  Plan plan;
  Conditions conditions;
  ExperimentResult result;
  bool hit = false;         // it showed what the search is looking for
  bool fired = false;       // an intervention has happened
  bool wants_pass = false;  // the search is for a plan under which the test passes
};

std::string_view to_string(TrialEnded::Purpose purpose);

// Emitted when a failure was confirmed, and its file, if any, written.
struct FailureReproduced {
  Repro repro;
  std::string file;
};

struct SearchEnded {
  Duration elapsed{};
  bool interrupted = false;
  int runs = 0;
  int reproduced = 0;  // different failures, without the margins
  int margins = 0;
};

using Event = std::variant<SessionStarted, RunStarted, RunSlow, RunEnded, TestEnded, Note,
                           StatusRequested, Ticked, SessionEnded, SearchStarted, SearchStep,
                           TrialEnded, FailureReproduced, SearchEnded>;

class Consumer {
 public:
  virtual ~Consumer() = default;
  virtual void on(const Event& event) = 0;
};

// The one stream: everything that a session has to tell goes to every consumer, in order.
class EventStream : public Consumer {
 public:
  void add(Consumer& consumer) { consumers_.push_back(&consumer); }
  void emit(const Event& event) {
    for (Consumer* consumer : consumers_) consumer->on(event);
  }
  // A stream may flow into another one.
  void on(const Event& event) override { emit(event); }

 private:
  std::vector<Consumer*> consumers_;
};

}  // namespace unflake
