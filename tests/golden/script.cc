#include "golden/script.h"

#include <fmt/format.h>

#include "golden/make_events.h"

namespace unflake::golden {
namespace {

const std::string hostile_name =
    "name\x1b[2J\nwith ]]> & <tags> \"quotes\" \xff\xfe \xEF\xBF\xBF größe 試験";

TestPtr located(TestPtr test, std::string file, int line) {
  Test copy = *test;
  copy.file = std::move(file);
  copy.line = line;
  return std::make_shared<const Test>(std::move(copy));
}

// Writes a session as its runner would: every run is started before it ends, and what a test's
// runs say together is counted.
class Script {
 public:
  explicit Script(SessionStarted session) { events_.push_back(std::move(session)); }

  void run(RunEnded run) {
    events_.push_back(RunStarted{run.test, run.attempt});
    tally_.add(run.result.outcome);
    events_.push_back(std::move(run));
  }

  void end(TestPtr test, std::string reason = "", std::optional<GateDecision> gate = {}) {
    const Verdict verdict = verdict_of(tally_);
    if (gate) counts_.add(gate->kind);
    all_.passed += verdict == Verdict::passed;
    all_.failed += verdict == Verdict::failed;
    all_.flaky += verdict == Verdict::flaky;
    all_.skipped += verdict == Verdict::skipped;
    all_.not_run += verdict == Verdict::not_run;
    events_.push_back(
        TestEnded{std::move(test), verdict, tally_, std::move(reason), std::move(gate)});
    all_.runs += tally_;
    tally_ = {};
  }

  void add(Event event) { events_.push_back(std::move(event)); }

  std::vector<Event> finish_gated(Duration elapsed) {
    all_.gate = counts_;
    return finish(elapsed, false);
  }

  std::vector<Event> finish(Duration elapsed, bool interrupted) {
    all_.elapsed = elapsed;
    all_.interrupted = interrupted;
    events_.push_back(all_);
    return std::move(events_);
  }

 private:
  std::vector<Event> events_;
  Tally tally_;
  SessionEnded all_;
  GateCounts counts_;
};

SessionStarted session_of(std::vector<TestPtr> tests) {
  SessionStarted session;
  session.at = std::chrono::system_clock::time_point(1'772'366'400s);  // 2026-03-01 12:00
  session.command_line = "unflake run server_test";
  session.surroundings = {"0123456789abcdef", "main", true, "builder-1", "0.1.0"};
  session.target = "server_test";
  session.tests = std::move(tests);
  session.jobs = 2;
  return session;
}

RunEnded retried(RunEnded run) {
  run.will_retry = true;
  return run;
}

RunEnded timed_out(TestPtr test) {
  RunEnded run = make_run(std::move(test), 1, OutcomeKind::timeout, 60s);
  run.result.process.end = ProcessResult::End::timed_out;
  run.result.process.leftovers = 2;
  Failure failure;
  failure.kind = FailureKind::timeout;
  failure.message = "no end after 60.0 s";
  run.result.outcome.failures = {std::move(failure)};
  run.result.outcome.signature = "0000000000000060";
  return run;
}

RunEnded reporting(TestPtr test) {
  RunEnded run = passing(std::move(test), 1, 8'900us);
  Failure report = assertion("pool.cc", 7, "");
  report.kind = FailureKind::thread_sanitizer;
  report.function = "Pool::grow";
  report.message = "data race";
  run.result.outcome.failures = {std::move(report)};
  return run;
}

RunEnded skipping(TestPtr test) {
  RunEnded run = make_run(std::move(test), 1, OutcomeKind::skipped, 400us);
  run.result.outcome.reason = "needs a network";
  return run;
}

std::string many_lines() {
  std::string text;
  for (int i = 1; i <= 50; ++i) text += fmt::format("line {}\n", i);
  return text + "server_test.cc:42: Failure\n\x1b[0;31mExpected equality\x1b[m\n";
}

Failure push_failure() {
  return assertion("server_test.cc", 42, "EXPECT_EQ(queue.size(), 1)");
}

void script_outcomes(Script& script, const TestPtr& push, const TestPtr& never) {
  script.run(retried(failing(push, 1, push_failure(), "1111111111111111", many_lines())));
  script.run(passing(push, 2));
  script.end(push);
  script.run(retried(
      failing(never, 1, assertion("server_test.cc", 50, "ok"), "2222222222222222", "never ok\n")));
  script.run(retried(crashing(never, 2, SIGSEGV)));
  script.run(
      failing(never, 3, assertion("server_test.cc", 50, "ok"), "2222222222222222", "never ok\n"));
  script.end(never);
}

void script_hostile(Script& script, const TestPtr& hostile) {
  Failure failure = assertion("\x1b[31mfile.cc", 1, "]]> & \xff");
  failure.message = "first\nsecond \x1b[2J <b>";
  script.run(failing(hostile, 1, failure, "3333333333333333", "]]>\x1b[2J\x07 \xff\xEF\xBF\xBF\n"));
  script.end(hostile);
}

}  // namespace

std::vector<Event> session_with_retries() {
  const TestPtr first = make_test("server_test", "Server.Start");
  const TestPtr push = located(make_test("server_test", "Server.Push"), "server_test.cc", 40);
  const TestPtr never = make_test("server_test", "Server.Never");
  const TestPtr crash = make_test("server_test", "Server.Crash");
  const TestPtr slow = make_test("server_test", "Server.Slow");
  const TestPtr racy = make_test("server_test", "Pool.Grow");
  const TestPtr skip = make_test("server_test", "Server.Network");
  const TestPtr disabled = make_test("server_test", "Server.DISABLED_Later");
  const TestPtr hostile = make_test("hostile_test", hostile_name, Framework::catch2);
  const TestPtr late = make_test("server_test", "Server.Late");
  SessionStarted session =
      session_of({first, push, never, crash, slow, racy, skip, disabled, hostile, late});
  session.retries = 2;
  session.seed = 42;
  Script script(session);
  script.run(passing(first, 1, 840us));
  script.end(first);
  script.add(Note{Note::Level::info, "no history yet", ""});
  script_outcomes(script, push, never);
  script.run(crashing(crash, 1, SIGSEGV));
  script.end(crash);
  script.add(Note{Note::Level::warning, "the machine is busy: load 37 on 2 processors",
                  "use --jobs 1 or wait"});
  script.run(timed_out(slow));
  script.end(slow);
  script.run(reporting(racy));
  script.end(racy);
  script.run(skipping(skip));
  script.end(skip, "needs a network");
  script.end(disabled, "disabled in the source");
  script_hostile(script, hostile);
  script.add(RunStarted{late, 1});
  script.add(Ticked{});
  script.add(StatusRequested{});
  script.end(late, "interrupted");
  return script.finish(73'400ms, true);
}

std::vector<Event> session_with_repeats() {
  const TestPtr steady = make_test("server_test", "Server.Start");
  const TestPtr push = make_test("server_test", "Server.Push");
  const TestPtr never = make_test("server_test", "Server.Never");
  SessionStarted session = session_of({steady, push, never});
  session.repeat = 100;
  Script script(session);
  for (int i = 1; i <= 100; ++i) script.run(passing(steady, i));
  script.end(steady);
  for (int i = 1; i <= 100; ++i) {
    if (i == 37 || i == 61)
      script.run(failing(push, i, push_failure(), "1111111111111111", many_lines()));
    else if (i == 80)
      script.run(crashing(push, i, SIGABRT));
    else
      script.run(passing(push, i));
  }
  script.end(push);
  for (int i = 1; i <= 3; ++i)
    script.run(
        failing(never, i, assertion("server_test.cc", 50, "ok"), "2222222222222222", "no\n"));
  script.end(never);
  return script.finish(4'200ms, false);
}

std::vector<Event> session_with_gate() {
  const auto named = [](const char* name) { return make_test("server_test", name); };
  const std::string known(16, '1'), other(16, '2');
  SessionStarted session = session_of({});
  session.retries = 1;
  session.repeated = {{"server_test", "Server.New"}};
  session.why_repeated = "1 test since main: 1 new, 3 runs each";
  Script script(session);
  const auto fail_twice = [&](const TestPtr& test, const std::string& signature) {
    script.run(retried(failing(test, 1, push_failure(), signature, "no\n")));
    script.run(failing(test, 2, push_failure(), signature, "no\n"));
  };
  const auto decision = [&](GateKind kind, std::string text) {
    GateDecision gate;
    gate.kind = kind;
    gate.text = std::move(text);
    return gate;
  };
  for (int i = 1; i <= 3; ++i) script.run(passing(named("Server.New"), i));
  script.end(named("Server.New"), "", decision(GateKind::passed, ""));

  fail_twice(named("Server.Broken"), other);
  script.end(named("Server.Broken"), "", decision(GateKind::failed, "failed in all of 2 runs"));

  script.run(retried(failing(named("Server.Flaky"), 1, push_failure(), other, "no\n")));
  script.run(passing(named("Server.Flaky"), 2));
  GateDecision flaky = decision(GateKind::flaky_new, "failed in 1 of 2 runs");
  flaky.unknown = {other};
  flaky.next = {"unflake quarantine add server_test:Server.Flaky --signature " + other};
  flaky.past = "was quarantined 2026-01-01..2026-01-20, lifted as fixed by abc123";
  script.end(named("Server.Flaky"), "", flaky);

  fail_twice(named("Server.Known"), known);
  GateDecision in = decision(GateKind::quarantined,
                             "failed in all of 2 runs; in quarantine until 2026-03-31 (30 days "
                             "left), owner @net, https://example.com/7");
  in.known = {known};
  in.until = "2026-03-31";
  in.owner = "@net";
  in.issue = "https://example.com/7";
  script.end(named("Server.Known"), "", in);

  fail_twice(named("Server.Other"), other);
  script.end(
      named("Server.Other"), "",
      decision(GateKind::other_signature,
               "failed in all of 2 runs; it is in quarantine for " + known + ", not for " + other));
  return script.finish_gated(1'200ms);
}

}  // namespace unflake::golden
