#include <gtest/gtest.h>

#include <random>

#include "model/outcome.h"
#include "output/output_parsers.h"
#include "output/read_outcome.h"

namespace unflake {
namespace {

constexpr Framework frameworks[] = {Framework::command, Framework::gtest,      Framework::catch2,
                                    Framework::doctest, Framework::boost_test, Framework::ctest};

// What parsers look for, and what may break them.
constexpr std::string_view scraps[] = {"a.cc:12: Failure\n",
                                       "Expected equality of these values:\n",
                                       "  x\n",
                                       "    Which is: ",
                                       "Value of: ",
                                       "  Actual: false (",
                                       "With diff:\n",
                                       "Google Test trace:\n",
                                       "[  FAILED  ] ",
                                       "[  SKIPPED ] ",
                                       "a.cc:3: FAILED:\n",
                                       "with expansion:\n",
                                       "with messages:\n",
                                       " := ",
                                       "due to a fatal error condition:\n",
                                       "a.cc(7): error: in \"x\": check ",
                                       " has failed [",
                                       "unknown location(0): fatal error: in \"",
                                       "last checkpoint",
                                       "a.cc:6: ERROR: CHECK( ",
                                       " ) is NOT correct!\n",
                                       "  logged: ",
                                       "==1==ERROR: AddressSanitizer: ",
                                       "    #0 0x1 in f ",
                                       " (BuildId: ",
                                       "SUMMARY: ",
                                       "WARNING: ThreadSanitizer: ",
                                       "==12== ",
                                       "   at 0x1: f (a.c:1)\n",
                                       "This conflicts with a previous ",
                                       ": Assertion `",
                                       "' failed.\n",
                                       "terminate called after ",
                                       "F0102 ",
                                       "] Check failed: a (1 vs. 2",
                                       "ASSERT: \"",
                                       " in file ",
                                       ", line ",
                                       "Traceback",
                                       "error",
                                       "/tmp/",
                                       "/home/",
                                       "0x",
                                       "123",
                                       "<n>",
                                       "-",
                                       ":",
                                       "(",
                                       ")",
                                       "\n",
                                       "\r\n",
                                       "\n\n",
                                       " ",
                                       "\x1b[",
                                       "\x1b[31m",
                                       "\xff",
                                       "\xc2",
                                       "99999999999999999999",
                                       "Nov ",
                                       "1 s",
                                       "In function:\n"};

std::string random_text(std::mt19937& random) {
  std::string text;
  for (size_t pieces = random() % 60; pieces > 0; --pieces) {
    if (random() % 5 == 0)
      text += static_cast<char>(random() % 256);
    else
      text += scraps[random() % std::size(scraps)];
  }
  return text;
}

void expect_sane(const Outcome& outcome) {
  EXPECT_LE(outcome.failures.size(), most_failures + 2);
  for (const Failure& failure : outcome.failures) {
    EXPECT_LE(failure.message.size(), 4000u);
    EXPECT_LE(headline(failure).size(), 200u);
    EXPECT_EQ(signature_of(failure).size(), 16u);
  }
  EXPECT_EQ(outcome.failed(), !outcome.signature.empty());
}

TEST(HostileOutput, Random_text_is_read_without_harm) {
  std::mt19937 random(7);
  for (int i = 0; i < 10'000; ++i) {
    unflake::Test test;
    test.framework = frameworks[random() % std::size(frameworks)];
    ProcessResult process;
    process.end = static_cast<ProcessResult::End>(random() % 5);
    process.code = static_cast<int>(random() % 256);
    process.output.head = random_text(random);
    if (random() % 2) process.output.tail = random_text(random);
    process.output.total = process.output.head.size() + random() % 200;
    expect_sane(read_outcome(test, process));
  }
}

std::string repeated(std::string_view unit, size_t bytes) {
  std::string text;
  text.reserve(bytes + unit.size());
  while (text.size() < bytes) text += unit;
  return text;
}

// A quarter of a megabyte of each: what is not linear takes more than seconds.
TEST(HostileOutput, Long_text_is_read_in_linear_time) {
  for (const std::string_view unit : {"a",
                                      "1",
                                      "-",
                                      "\n",
                                      "1-",
                                      "(",
                                      "a.cc:1: Failure\n",
                                      "/tmp/",
                                      "1 s ",
                                      "==1== \n",
                                      "==1==    at 0x1: f (a.c:1)\n",
                                      "WARNING: ThreadSanitizer: x\n",
                                      "    #0 0x1 in f a.cc:1\n",
                                      "In function:\n",
                                      "a:1:\nIn function:\n",
                                      ": Assertion `",
                                      "a: ",
                                      "\x1b[",
                                      "error 0 ",
                                      "a.cc:3: FAILED:\nwith messages:\n  x\n\n  y\n",
                                      "  \n\n",
                                      "has failed {",
                                      "./",
                                      " /",
                                      "/home/",
                                      "=/",
                                      "Nov, ",
                                      "_1"}) {
    unflake::Test test;
    ProcessResult process;
    process.code = 1;
    process.output.head = repeated(unit, 250'000);
    process.output.total = process.output.head.size();
    expect_sane(read_outcome(test, process));
    EXPECT_LE(normalise(process.output.head).size(), 4 * process.output.head.size());
  }
}

}  // namespace
}  // namespace unflake
