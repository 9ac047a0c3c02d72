#include "report/search_text.h"

#include <gtest/gtest.h>

#include <csignal>

namespace unflake {
namespace {

Outcome failing(std::string signature) {
  Outcome outcome;
  outcome.kind = OutcomeKind::fail;
  outcome.signature = std::move(signature);
  return outcome;
}

TEST(TestLog, Groups_failures_by_signature) {
  TestLog log;
  log.count(failing("a"));
  log.count(failing("b"));
  EXPECT_EQ(log.count(failing("a")).runs, 2);
  EXPECT_EQ(log.groups().size(), 2u);
}

TEST(TestLog, Stays_small_when_every_failure_is_different) {
  TestLog log;
  for (int i = 0; i < 10'000; ++i) log.count(failing(std::to_string(i)));
  EXPECT_LE(log.groups().size(), 33u);
  EXPECT_EQ(log.groups().back().runs, 10'000 - 32);
}

TEST(TestLog, Still_knows_its_first_signatures_when_full) {
  TestLog log;
  for (int i = 0; i < 100; ++i) log.count(failing(std::to_string(i)));
  EXPECT_EQ(log.count(failing("0")).runs, 2);
}

TEST(StatusWord, Names_the_signal_of_a_crash) {
  ExperimentResult result;
  result.outcome.kind = OutcomeKind::crash;
  result.process.end = ProcessResult::End::signalled;
  result.process.code = SIGSEGV;
  EXPECT_EQ(status_word(result), "CRASH SIGSEGV");
  result.process.code = 1234;
  EXPECT_EQ(status_word(result), "CRASH signal 1234");
}

}  // namespace
}  // namespace unflake
