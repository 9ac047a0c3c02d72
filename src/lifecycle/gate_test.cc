#include "lifecycle/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const TestId quarantined_push{"server_test", "Server.Push"};
const std::string known_failure(16, '1'), other_failure(16, '2');

Day day(const char* text) {
  return *parse_day(text);
}

QuarantineEntry gate_entry(const char* expires = "2026-03-31") {
  QuarantineEntry one;
  one.test = quarantined_push;
  one.signature = known_failure;
  one.failure = "server_test.cc:42: a == b";
  one.owner = "@net";
  one.issue = "https://example.com/7";
  one.since = day("2026-03-01");
  one.expires = day(expires);
  return one;
}

GateAttempt passed() {
  return {};
}

GateAttempt failed(const std::string& signature, bool sanitizer = false) {
  return {OutcomeKind::fail, signature, "server_test.cc:50: c == d", sanitizer};
}

GateDecision decide(const std::vector<GateAttempt>& attempts,
                    const std::vector<QuarantineEntry>& entries = {gate_entry()},
                    const char* today = "2026-03-11") {
  return Gate(Quarantine(entries), day(today)).decide(quarantined_push, attempts);
}

TEST(Gate, Lets_pass_what_passed_or_was_skipped) {
  EXPECT_EQ(decide({passed()}).kind, GateKind::passed);
  EXPECT_EQ(decide({{OutcomeKind::skipped, "", "", false}}).kind, GateKind::skipped);
  EXPECT_EQ(decide({}).kind, GateKind::not_run);
}

TEST(Gate, Calls_a_test_that_failed_always_failed) {
  const GateDecision decision = decide({failed(other_failure), failed(other_failure)}, {});
  EXPECT_EQ(decision.kind, GateKind::failed);
  EXPECT_THAT(decision.text, HasSubstr("failed in all of 2 runs"));
  EXPECT_THAT(decision.next, IsEmpty());
}

TEST(Gate, Calls_an_unknown_failure_of_a_test_that_also_passed_new) {
  const GateDecision decision = decide({failed(other_failure), passed()}, {});
  EXPECT_EQ(decision.kind, GateKind::flaky_new);
  EXPECT_THAT(decision.unknown, ElementsAre(other_failure));
  EXPECT_THAT(
      decision.next,
      ElementsAre("unflake quarantine add server_test:Server.Push --signature " + other_failure,
                  "unflake reproduce server_test:Server.Push --failure " + other_failure));
}

TEST(Gate, Does_not_propose_to_reproduce_what_was_not_run_here) {
  const Gate gate(Quarantine({gate_entry()}), day("2026-04-11"), RunsMade::elsewhere);
  EXPECT_THAT(gate.decide(quarantined_push, std::vector{failed(known_failure), passed()}).next,
              ElementsAre(HasSubstr("unflake quarantine add")));
  const Gate early(Quarantine({gate_entry()}), day("2026-03-11"), RunsMade::elsewhere);
  EXPECT_THAT(early.decide(quarantined_push, std::vector{failed(other_failure), passed()}).next,
              IsEmpty());
}

TEST(Gate, Counts_the_runs_that_an_attempt_stands_for) {
  GateAttempt passes = passed(), failures = failed(other_failure);
  passes.runs = 40;
  failures.runs = 2;
  EXPECT_THAT(decide({passes, failures}, {}).text, HasSubstr("failed in 2 of 42 runs"));
}

TEST(Gate, Lets_a_known_failure_pass_and_says_until_when_and_whose_it_is) {
  const GateDecision decision = decide({failed(known_failure), passed()});
  EXPECT_EQ(decision.kind, GateKind::flaky_known);
  EXPECT_THAT(decision.known, ElementsAre(known_failure));
  EXPECT_EQ(decision.text,
            "failed in 1 of 2 runs; in quarantine until 2026-03-31 (20 days left), owner @net, "
            "https://example.com/7");
  EXPECT_EQ(decide({failed(known_failure), failed(known_failure)}).kind, GateKind::quarantined);
}

TEST(Gate, Fails_a_quarantined_test_that_fails_in_another_way_and_names_both) {
  for (const auto& attempts :
       std::vector<std::vector<GateAttempt>>{{failed(other_failure)},
                                             {failed(known_failure), failed(other_failure)},
                                             {failed(other_failure), passed()}}) {
    const GateDecision decision = decide(attempts);
    EXPECT_EQ(decision.kind, GateKind::other_signature);
    EXPECT_TRUE(fails_build(decision.kind));
    EXPECT_THAT(decision.text, HasSubstr(known_failure + " (server_test.cc:42: a == b)"));
    EXPECT_THAT(decision.text, HasSubstr(other_failure + " (server_test.cc:50: c == d)"));
  }
}

TEST(Gate, Fails_what_has_expired_and_says_what_to_do) {
  const GateDecision decision =
      decide({failed(known_failure), passed()}, {gate_entry()}, "2026-04-01");
  EXPECT_EQ(decision.kind, GateKind::expired);
  EXPECT_THAT(decision.text, HasSubstr("began 2026-03-01 and expired after 2026-03-31"));
  EXPECT_THAT(decision.next.back(), HasSubstr("--days 30"));
  EXPECT_THAT(decision.known, IsEmpty());
}

TEST(Gate, Holds_on_the_last_day) {
  EXPECT_EQ(decide({failed(known_failure), passed()}, {gate_entry()}, "2026-03-31").kind,
            GateKind::flaky_known);
}

TEST(Gate, An_expired_entry_does_not_matter_to_a_test_that_passes) {
  EXPECT_EQ(decide({passed()}, {gate_entry()}, "2026-05-01").kind, GateKind::passed);
}

TEST(Gate, Another_failure_beside_an_expired_entry_is_new_flakiness) {
  EXPECT_EQ(decide({failed(other_failure), passed()}, {gate_entry()}, "2026-05-01").kind,
            GateKind::flaky_new);
}

TEST(Gate, A_sanitizers_report_is_a_defect_though_other_runs_passed) {
  const GateDecision decision = decide({failed(other_failure, true), passed()}, {});
  EXPECT_EQ(decision.kind, GateKind::failed);
  EXPECT_TRUE(decision.sanitizer);
  EXPECT_THAT(decision.text, HasSubstr("a defect, not a flake"));
}

TEST(Gate, Knows_each_failure_of_a_test_for_itself) {
  QuarantineEntry second = gate_entry("2026-03-20");
  second.signature = other_failure;
  const GateDecision decision =
      decide({failed(known_failure), failed(other_failure)}, {gate_entry(), second});
  EXPECT_EQ(decision.kind, GateKind::quarantined);
  EXPECT_THAT(decision.known, ElementsAre(known_failure, other_failure));
  EXPECT_EQ(decision.until, "2026-03-20");
}

TEST(Gate, Reads_attempts_from_outcomes) {
  Outcome outcome;
  outcome.kind = OutcomeKind::crash;
  outcome.signature = known_failure;
  outcome.failures.resize(2);
  outcome.failures[1].kind = FailureKind::thread_sanitizer;
  const GateAttempt attempt = gate_attempt_of(outcome);
  EXPECT_EQ(attempt.signature, known_failure);
  EXPECT_TRUE(attempt.sanitizer);
}

TEST(QuarantineCare, Warns_before_and_after_an_entry_expires) {
  const Quarantine quarantine({gate_entry()});
  EXPECT_THAT(expiry_warnings(quarantine, day("2026-03-23"), ""), IsEmpty());
  EXPECT_THAT(expiry_warnings(quarantine, day("2026-03-24"), "")[0].text,
              HasSubstr("expires in 7 days (2026-03-31)"));
  EXPECT_THAT(expiry_warnings(quarantine, day("2026-03-31"), "server_test")[0].text,
              HasSubstr("expires today"));
  EXPECT_THAT(expiry_warnings(quarantine, day("2026-04-01"), "")[0].text,
              HasSubstr("expired after 2026-03-31"));
  EXPECT_THAT(expiry_warnings(quarantine, day("2026-04-01"), "client_test"), IsEmpty());
}

TEST(QuarantineCare, Finds_entries_whose_test_is_gone) {
  const Quarantine quarantine({gate_entry()});
  const auto gone = [&](const std::string& target, std::vector<std::string> listed) {
    return !gone_entries(quarantine, target, listed).empty();
  };
  EXPECT_TRUE(gone("server_test", {"Server.Start", "Server.PushBack"}));
  EXPECT_FALSE(gone("server_test", {"Server.Push"}));
  EXPECT_FALSE(gone("server_test", {"Server.Push/0"}));
  EXPECT_FALSE(gone("server_test", {"Server"}));
  EXPECT_FALSE(gone("client_test", {}));
}

TEST(QuarantineCare, Proposes_to_lift_only_what_the_clean_runs_tell_from_the_earlier_rate) {
  EXPECT_TRUE(may_be_lifted({300, 5, 100}));    // below 1.0 %, before 5 %
  EXPECT_FALSE(may_be_lifted({300, 2, 100}));   // before 2 %
  EXPECT_FALSE(may_be_lifted({99, 50, 100}));   // too few runs
  EXPECT_FALSE(may_be_lifted({1000, 0, 100}));  // no earlier rate
  EXPECT_TRUE(may_be_lifted({20, 50, 100}, {20, 3}));
  EXPECT_FALSE(may_be_lifted({20, 50, 100}, {20, 10}));
}

TEST(QuarantineCare, Says_what_clean_runs_prove) {
  EXPECT_EQ(clean_runs_text({300, 5, 100}),
            "0 of 300 runs failed: rate below 0.99 % at 95 % confidence; before, 5 of 100 did "
            "(5.0 %)");
  EXPECT_EQ(clean_runs_text({}), "no run since it was last seen");
}

LifecycleStep step(LifecycleStep::Kind kind, const char* at, const char* commit = "") {
  LifecycleStep one;
  one.kind = kind;
  one.test = quarantined_push;
  one.signature = known_failure;
  one.at = day(at);
  one.commit = commit;
  return one;
}

TEST(QuarantineCare, Tells_the_past_of_a_failure_that_comes_back) {
  using Kind = LifecycleStep::Kind;
  const std::vector<LifecycleStep> steps = {step(Kind::lifted, "2026-03-20", "abc123"),
                                            step(Kind::quarantined, "2026-03-01"),
                                            step(Kind::report_opened, "2026-03-02")};
  EXPECT_EQ(past_quarantine(steps, quarantined_push, known_failure),
            "was quarantined 2026-03-01..2026-03-20, lifted as fixed by abc123");
  EXPECT_EQ(past_quarantine(steps, quarantined_push, other_failure), "");
  EXPECT_EQ(past_quarantine(steps, {"server_test", "x"}, known_failure), "");
  EXPECT_EQ(past_quarantine(std::span(steps).subspan(1), quarantined_push, known_failure), "");
}

}  // namespace
}  // namespace unflake
