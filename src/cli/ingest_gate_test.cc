#include "cli/ingest_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_store.h"

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string known(16, '1'), other(16, '2');
const TestId push{"server_test", "Server.Push"};

RunRecord run_of(const std::string& signature) {
  RunRecord run;
  run.test = push;
  run.signature = signature;
  if (signature.empty()) return run;
  run.outcome = OutcomeKind::fail;
  run.failure.emplace();
  return run;
}

class IngestGateTest : public testing::Test {
 protected:
  IngestGateTest() : gate_(Quarantine({entry()}), options()) {}

  static QuarantineEntry entry() {
    QuarantineEntry entry;
    entry.test = push;
    entry.signature = known;
    entry.since = *parse_day("2026-03-01");
    entry.expires = *parse_day("2026-03-31");
    return entry;
  }

  static IngestGate::Options options() {
    IngestGate::Options options;
    options.keeper.now = std::chrono::sys_days(*parse_day("2026-03-11"));
    return options;
  }

  void see(SessionId session, const std::string& signature = "") {
    const RunRecord run = run_of(signature);
    gate_.see(session, {&run, 1});
  }

  FakeStore store_;
  IngestGate gate_;
};

TEST_F(IngestGateTest, Does_not_let_a_build_pass_of_which_nothing_was_tested) {
  const IngestVerdict verdict = gate_.decide(&store_);
  EXPECT_EQ(verdict.code, ExitCode::test_failed);
  EXPECT_THAT(verdict.text, HasSubstr("there is no test case in what was taken in"));
}

TEST_F(IngestGateTest, Notes_in_each_session_what_quarantine_kept_from_failing_the_build) {
  see(1, known);
  see(2);
  see(3, known);
  const IngestVerdict verdict = gate_.decide(&store_);
  EXPECT_EQ(verdict.code, ExitCode::success);
  EXPECT_THAT(verdict.text, HasSubstr("1 test, 3 runs: 1 known to be flaky"));
  EXPECT_THAT(store_.suppressed,
              ElementsAre(std::tuple(1, push, known), std::tuple(3, push, known)));
}

TEST_F(IngestGateTest, Notes_nothing_of_a_test_that_fails_the_build) {
  see(1, known);
  see(1, other);
  see(1);
  EXPECT_EQ(gate_.decide(&store_).code, ExitCode::test_failed);
  EXPECT_THAT(store_.suppressed, IsEmpty());
}

TEST_F(IngestGateTest, Lets_a_build_without_failures_pass) {
  see(1);
  const IngestVerdict verdict = gate_.decide(nullptr);
  EXPECT_EQ(verdict.code, ExitCode::success);
  EXPECT_THAT(verdict.text, HasSubstr("1 test, 1 run: 1 passed"));
}

}  // namespace
}  // namespace unflake
