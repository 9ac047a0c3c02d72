#include "app/gatekeeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string known(16, '1'), other(16, '2');
const Day today = *parse_day("2026-03-10");

std::shared_ptr<const Test> named(const std::string& name) {
  Test test;
  test.id = {"suite", name};
  return std::make_shared<const Test>(test);
}

RunEnded run_of(const std::string& name, const std::string& signature,
                FailureKind kind = FailureKind::assertion) {
  RunEnded run;
  run.test = named(name);
  run.result.outcome.signature = signature;
  if (signature.empty()) return run;
  run.result.outcome.kind = OutcomeKind::fail;
  run.result.outcome.failures.resize(1);
  run.result.outcome.failures[0].kind = kind;
  return run;
}

struct Listener : Consumer {
  void on(const Event& event) override {
    if (const auto* test = std::get_if<TestEnded>(&event)) tests.push_back(*test);
    if (const auto* note = std::get_if<Note>(&event)) notes.push_back(note->text);
    if (const auto* ended = std::get_if<SessionEnded>(&event)) session = *ended;
  }
  std::vector<TestEnded> tests;
  std::vector<std::string> notes;
  SessionEnded session;
};

class GatekeeperTest : public testing::Test {
 protected:
  GatekeeperTest() { stream_.add(listener_); }

  void begin(bool quarantine_new, const std::vector<QuarantineEntry>& entries = {}) {
    GatekeeperOptions options;
    options.quarantine_file = folder_.file("quarantine.toml");
    options.quarantine_new = quarantine_new;
    options.project_root = folder_.path();
    options.listed = {{"a", "b"}};
    keeper_.emplace(Gate(Quarantine(entries), today), options, nullptr, stream_);
    SessionStarted started;
    started.target = "suite";
    keeper_->on(started);
  }

  void end(const std::string& name) {
    TestEnded ended;
    ended.test = named(name);
    keeper_->on(ended);
  }

  Quarantine file() const { return *load_quarantine(folder_.file("quarantine.toml")); }

  TempFolder folder_;
  EventStream stream_;
  Listener listener_;
  std::optional<Gatekeeper> keeper_;
};

TEST_F(GatekeeperTest, Says_of_each_test_and_of_the_session_what_the_gate_decided) {
  begin(false);
  keeper_->on(run_of("a", other));
  keeper_->on(run_of("a", ""));
  end("a");
  keeper_->on(run_of("b", other));
  end("b");
  keeper_->on(SessionEnded());
  ASSERT_EQ(listener_.tests.size(), 2u);
  EXPECT_EQ(listener_.tests[0].gate->kind, GateKind::flaky_new);
  EXPECT_EQ(listener_.tests[1].gate->kind, GateKind::failed);
  EXPECT_EQ(listener_.session.gate->flaky_new, 1);
  EXPECT_EQ(listener_.session.gate->failed, 1);
}

TEST_F(GatekeeperTest, Puts_new_flaky_failures_into_quarantine_and_no_broken_ones) {
  begin(true);
  keeper_->on(run_of("a", other));
  keeper_->on(run_of("a", ""));
  end("a");
  keeper_->on(run_of("b", known));
  end("b");
  keeper_->on(SessionEnded());
  ASSERT_EQ(file().entries().size(), 1u);
  const QuarantineEntry entry = file().entries()[0];
  EXPECT_EQ(entry.test.name, "a");
  EXPECT_EQ(entry.signature, other);
  EXPECT_EQ(format_day(entry.expires), "2026-04-09");
  EXPECT_EQ(entry.reason, "new: 1 of 2 runs of a build failed so");
}

TEST_F(GatekeeperTest, Puts_nothing_into_quarantine_on_mass_failure_nor_what_a_sanitizer_reported) {
  begin(true);
  keeper_->on(run_of("a", other));
  keeper_->on(run_of("a", ""));
  end("a");
  SessionEnded ended;
  ended.mass_failure = true;
  keeper_->on(ended);
  EXPECT_THAT(file().entries(), IsEmpty());

  begin(true);
  keeper_->on(run_of("a", other, FailureKind::thread_sanitizer));
  keeper_->on(run_of("a", ""));
  end("a");
  keeper_->on(SessionEnded());
  EXPECT_THAT(file().entries(), IsEmpty());
}

TEST_F(GatekeeperTest, Tells_what_expires_and_whose_test_is_gone) {
  QuarantineEntry entry;
  entry.test = {"suite", "gone"};
  entry.signature = known;
  entry.since = entry.expires = today;
  begin(false, {entry});
  EXPECT_THAT(listener_.notes,
              ElementsAre(HasSubstr("expires today"), HasSubstr("has no such test")));
}

TEST(GateExitCode, Is_that_of_failures_before_that_of_new_flakiness) {
  GateCounts counts;
  counts.flaky_known = counts.quarantined = 1;
  EXPECT_EQ(gate_exit_code(counts, FlakyResult::fail), ExitCode::success);
  counts.flaky_new = 1;
  EXPECT_EQ(gate_exit_code(counts, FlakyResult::tell), ExitCode::flaky_only);
  EXPECT_EQ(gate_exit_code(counts, FlakyResult::pass), ExitCode::success);
  EXPECT_EQ(gate_exit_code(counts, FlakyResult::fail), ExitCode::test_failed);
  counts.expired = 1;
  EXPECT_EQ(gate_exit_code(counts, FlakyResult::pass), ExitCode::test_failed);
}

}  // namespace
}  // namespace unflake
