#include <gtest/gtest.h>

#include <set>

#include "model/outcome.h"

namespace unflake {
namespace {

Failure sample() {
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.file = "/home/ann/proj/net/server_test.cc";
  failure.line = 42;
  failure.expression = "got == want";
  failure.message = "  Which is: 1\nserver on port 4711 is gone";
  return failure;
}

TEST(Signature, Is_sixteen_hexadecimal_digits_that_never_change) {
  EXPECT_EQ(signature_of(sample()), "9041d084ca4dc027");
}

TEST(Signature, Does_not_depend_on_the_machine) {
  Failure elsewhere = sample();
  elsewhere.file = "../net/server_test.cc";
  EXPECT_EQ(signature_of(sample()), signature_of(elsewhere));
}

TEST(Signature, Does_not_depend_on_values) {
  Failure again = sample();
  again.message = "  Which is: \"quite another text\"\n  more\nserver on port 12 is gone";
  EXPECT_EQ(signature_of(sample()), signature_of(again));
}

TEST(Signature, Changes_with_everything_that_makes_another_failure) {
  std::set<std::string> seen{signature_of(sample())};
  const auto is_new = [&](auto change) {
    Failure failure = sample();
    change(failure);
    return seen.insert(signature_of(failure)).second;
  };
  EXPECT_TRUE(is_new([](Failure& f) { f.kind = FailureKind::exception; }));
  EXPECT_TRUE(is_new([](Failure& f) { f.file = "client_test.cc"; }));
  EXPECT_TRUE(is_new([](Failure& f) { f.line = 43; }));
  EXPECT_TRUE(is_new([](Failure& f) { f.expression = "got != want"; }));
  EXPECT_TRUE(is_new([](Failure& f) { f.message = "connection refused"; }));
}

TEST(Signature, Keeps_fields_apart) {
  const Failure one{FailureKind::assertion, "", 0, "", "ab", "c"};
  const Failure other{FailureKind::assertion, "", 0, "", "a", "bc"};
  EXPECT_NE(signature_of(one), signature_of(other));
}

TEST(Signature, Of_a_sanitizer_report_depends_on_the_function) {
  Failure report = sample();
  report.kind = FailureKind::address_sanitizer;
  Failure other = report;
  other.function = "push";
  EXPECT_NE(signature_of(report), signature_of(other));
}

TEST(Headline, Shows_place_expression_and_what_the_author_says) {
  EXPECT_EQ(headline(sample()), "server_test.cc:42: got == want: server on port 4711 is gone");
}

TEST(Headline, Names_the_tool_of_a_report) {
  Failure report;
  report.kind = FailureKind::address_sanitizer;
  report.file = "src/server.cc";
  report.line = 12;
  report.function = "Server::push";
  report.message = "heap-use-after-free";
  EXPECT_EQ(headline(report), "AddressSanitizer heap-use-after-free in Server::push server.cc:12");
}

TEST(Headline, Says_something_whatever_is_known) {
  Failure failure;
  failure.kind = FailureKind::timeout;
  EXPECT_EQ(headline(failure), "timeout");
  failure.kind = FailureKind::assertion;
  EXPECT_EQ(headline(failure), "assertion");
}

TEST(Headline, Is_one_short_printable_line) {
  Failure failure = sample();
  failure.message = std::string("a\x1b[31m").append(1000, 'x').append("\xff\nsecond");
  const std::string line = headline(failure);
  EXPECT_LE(line.size(), 200u);
  EXPECT_EQ(line.find_first_of("\n\x1b\xff"), std::string::npos);
}

TEST(Kinds, Have_names_of_their_own) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(FailureKind::not_started); ++i)
    EXPECT_TRUE(names.insert(to_string(static_cast<FailureKind>(i))).second) << i;
  names.clear();
  for (int i = 0; i <= static_cast<int>(OutcomeKind::skipped); ++i)
    EXPECT_TRUE(names.insert(to_string(static_cast<OutcomeKind>(i))).second) << i;
}

}  // namespace
}  // namespace unflake
