#include "symbols/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/code_fixture.h"

namespace unflake {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(FindFunctions, By_qualified_name) {
  const auto image = open_fixture("gcc_O0");
  const auto matches = find_functions(*image, "app::Server::push");
  ASSERT_THAT(matches.functions, SizeIs(1));
  EXPECT_EQ(matches.functions.front()->name, "app::Server::push(int)");
}

TEST(FindFunctions, By_the_end_of_the_name) {
  const auto image = open_fixture("gcc_O0");
  EXPECT_THAT(find_functions(*image, "Server::push").functions, SizeIs(1));
  EXPECT_THAT(find_functions(*image, "Server::push()").functions, SizeIs(1));
  EXPECT_THAT(find_functions(*image, "rver::push").functions, IsEmpty());
}

TEST(FindFunctions, A_lambda_is_found_by_the_function_around_it) {
  const auto image = open_fixture("gcc_O0");
  const auto matches = find_functions(*image, "app::Server::start::{lambda}()");
  ASSERT_THAT(matches.functions, SizeIs(1));
  EXPECT_THAT(matches.functions.front()->name, HasSubstr("{lambda"));
}

TEST(FindFunctions, A_template_stands_for_its_instances) {
  const auto image = open_fixture("gcc_O0");
  EXPECT_THAT(find_functions(*image, "app::Queue::put").functions, SizeIs(2));
  EXPECT_THAT(find_functions(*image, "Queue<long>::put").functions, SizeIs(1));
}

TEST(FindFunctions, A_name_that_could_be_several_gives_them_to_choose_from) {
  const auto image = open_fixture("gcc_O0");
  const auto matches = find_functions(*image, "allocate");
  EXPECT_THAT(matches.functions, IsEmpty());
  EXPECT_THAT(matches.suggestions, Contains("std::allocator_traits::allocate"));
}

TEST(FindFunctions, A_misspelled_name_gives_the_nearest) {
  const auto image = open_fixture("gcc_O0");
  const auto matches = find_functions(*image, "Server::pusch");
  EXPECT_THAT(matches.functions, IsEmpty());
  EXPECT_THAT(matches.suggestions, Contains("app::Server::push"));
}

TEST(FindFunctions, Nothing_is_called_by_no_name) {
  const auto image = open_fixture("gcc_O0");
  EXPECT_THAT(find_functions(*image, "").functions, IsEmpty());
}

TEST(FindFunctions, Cold_parts_are_not_entries) {
  const auto image = open_fixture("gcc_O2");
  for (const Function* function : find_functions(*image, "app::Server::start").functions)
    EXPECT_EQ(function->mangled.find(".cold"), std::string::npos);
}

TEST(AddressesOfLine, Lie_in_the_function_of_the_line) {
  const auto image = open_fixture("gcc_O0");
  const auto match = addresses_of_line(*image, "symbols_code.cc", line_of("lock in push"));
  ASSERT_THAT(match.addresses, SizeIs(1));
  EXPECT_EQ(match.line, line_of("lock in push"));
  EXPECT_EQ(match.file, fixture_source("symbols_code.cc"));
  EXPECT_EQ(image->frames_at(match.addresses.front()).front().function, "app::Server::push");
}

TEST(AddressesOfLine, There_is_one_for_each_instance_of_a_template) {
  const auto image = open_fixture("gcc_O0");
  const auto match = addresses_of_line(*image, "symbols_code.cc", line_of("lock in put"));
  EXPECT_THAT(match.addresses, SizeIs(2));
}

TEST(AddressesOfLine, There_is_one_for_each_inlined_copy) {
  const auto image = open_fixture("gcc_O2");
  const auto match = addresses_of_line(*image, "symbols_code.cc", line_of("call of times"));
  EXPECT_GE(match.addresses.size(), 2u);  // in push itself, and where the lambda calls it
}

TEST(AddressesOfLine, A_line_without_code_gives_the_next_that_has_some) {
  const auto image = open_fixture("gcc_O0");
  const int wanted = line_of("lock in push") - 2;
  const auto match = addresses_of_line(*image, "symbols_code.cc", wanted);
  EXPECT_EQ(match.line, wanted + 1);
  EXPECT_THAT(match.addresses, SizeIs(1));
}

TEST(AddressesOfLine, There_is_nothing_behind_the_last_code) {
  const auto image = open_fixture("gcc_O0");
  const auto match = addresses_of_line(*image, "symbols_code.cc", line_of("no code here"));
  EXPECT_THAT(match.addresses, IsEmpty());
}

TEST(AddressesOfLine, A_file_that_is_not_there_gives_the_nearest) {
  const auto image = open_fixture("gcc_O0");
  const auto match = addresses_of_line(*image, "symbols_cod", 1);
  EXPECT_THAT(match.addresses, IsEmpty());
  EXPECT_THAT(match.suggestions, Contains(fixture_source("symbols_code.cc")));
}

}  // namespace
}  // namespace unflake
