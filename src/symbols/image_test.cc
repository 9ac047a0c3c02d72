#include "symbols/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/code_fixture.h"
#include "support/temp_folder.h"
#include "symbols/probe_plan.h"

namespace unflake {
namespace {

using testing::HasSubstr;

bool any_frame(const std::vector<Chain>& chains, const std::string& function,
               const std::string& words, const std::string& source = "symbols_code.cc") {
  return std::any_of(chains.begin(), chains.end(), [&](const Chain& chain) {
    return std::any_of(chain.begin(), chain.end(),
                       [&](const Frame& frame) { return is_at(frame, function, words, source); });
  });
}

class ImageWithDebugInformation : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!has_fixture(GetParam())) GTEST_SKIP() << "needs clang";
    image = open_fixture(GetParam());
    chains = chains_of(*image);
  }

  std::shared_ptr<const Image> image;
  std::vector<Chain> chains;
};

TEST_P(ImageWithDebugInformation, Is_said_to_have_it) {
  EXPECT_TRUE(image->has_debug_information());
  EXPECT_EQ(image->why_no_debug_information(), "");
}

TEST_P(ImageWithDebugInformation, Member_functions_are_found_at_their_lines) {
  EXPECT_TRUE(any_frame(chains, "app::Server::push", "lock in push"));
  EXPECT_TRUE(any_frame(chains, "app::Server::push", "call of times"));
  EXPECT_TRUE(any_frame(chains, "app::Server::start", "join in start"));
}

TEST_P(ImageWithDebugInformation, Functions_without_linkage_have_qualified_names) {
  EXPECT_TRUE(any_frame(chains, "(anonymous namespace)::times", "in times"));
  EXPECT_TRUE(any_frame(chains, "(anonymous namespace)::slowly", "in slowly"));
}

TEST_P(ImageWithDebugInformation, A_lambda_is_named_after_the_function_around_it) {
  EXPECT_TRUE(any_frame(chains, "app::Server::start::{lambda}", "in lambda"));
}

TEST_P(ImageWithDebugInformation, A_local_class_is_named_after_the_function_around_it) {
  EXPECT_TRUE(any_frame(chains, "app::run_locally::Local::work", "in local class"));
}

TEST_P(ImageWithDebugInformation, Instances_of_a_template_are_told_apart) {
  EXPECT_TRUE(any_frame(chains, "app::Queue<int>::put", "lock in put"));
  EXPECT_TRUE(any_frame(chains, "app::Queue<long>::put", "lock in put"));
}

TEST_P(ImageWithDebugInformation, A_static_variable_has_a_name_and_a_type) {
  std::set<std::string> seen;
  for (const Function& function : image->functions())
    for (const MemoryAccess& access : memory_accesses(*image, function)) {
      if ((access.access.flags & protocol::access_in_image) == 0) continue;
      const auto variable = image->variable_at(static_cast<uint64_t>(access.access.displacement));
      if (variable) seen.insert(variable->name + " " + variable->type);
    }
  EXPECT_THAT(seen, testing::Contains("(anonymous namespace)::factor int"));
}

TEST_P(ImageWithDebugInformation, Main_is_in_another_file) {
  EXPECT_TRUE(any_frame(chains, "main", "push in main", "symbols_main.cc"));
}

TEST_P(ImageWithDebugInformation, Only_the_outermost_frame_is_not_inlined) {
  for (const Chain& chain : chains) {
    ASSERT_FALSE(chain.empty());
    for (const Frame& frame : chain) ASSERT_EQ(frame.inlined, &frame != &chain.back());
  }
}

TEST_P(ImageWithDebugInformation, Functions_know_the_file_of_their_declaration) {
  const auto functions = image->functions();
  const auto local = std::find_if(functions.begin(), functions.end(), [](const Function& f) {
    return f.name.starts_with("app::run_locally()::Local::work(int)");
  });
  ASSERT_NE(local, functions.end());
  EXPECT_EQ(local->file, fixture_source("symbols_code.cc"));
  EXPECT_EQ(local->line, line_of("in local class") - 1);
}

TEST_P(ImageWithDebugInformation, Line_rows_are_in_code_and_ordered) {
  const auto rows = image->lines();
  ASSERT_FALSE(rows.empty());
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(), [](const LineRow& a, const LineRow& b) {
    return a.address < b.address;
  }));
  for (const LineRow& row : rows) {
    ASSERT_LT(row.file, image->files().size());
    ASSERT_FALSE(image->frames_at(row.address).empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ImageWithDebugInformation,
                         testing::Values("gcc_O0", "gcc_O2", "gcc_lto", "gcc_dwarf4", "gcc_split",
                                         "gcc_compressed", "gcc_no_pie", "gcc_separate", "clang_O0",
                                         "clang_O2", "clang_split"),
                         [](const auto& info) { return std::string(info.param); });

class AnyImage : public testing::TestWithParam<const char*> {};

TEST_P(AnyImage, Functions_are_ordered_and_do_not_overlap) {
  const auto image = open_fixture(GetParam());
  uint64_t end = 0;
  ASSERT_GT(image->functions().size(), 10u);
  for (const Function& function : image->functions()) {
    ASSERT_GE(function.start, end) << function.name;
    ASSERT_GT(function.size, 0u) << function.name;
    end = function.start + function.size;
  }
}

TEST_P(AnyImage, Every_function_has_bytes) {
  const auto image = open_fixture(GetParam());
  for (const Function& function : image->functions())
    ASSERT_EQ(image->code_at(function.start, function.size).size(), function.size);
}

TEST_P(AnyImage, Has_a_build_id) {
  EXPECT_EQ(open_fixture(GetParam())->build_id().size(), 20u);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, AnyImage,
                         testing::Values("gcc_O0", "gcc_O2", "gcc_lto", "gcc_split_missing",
                                         "gcc_no_pie", "gcc_shared", "gcc_no_debug", "gcc_stripped",
                                         "gcc_separate"),
                         [](const auto& info) { return std::string(info.param); });

bool is_lock_inlined_into_push(const Chain& chain) {
  return chain.size() >= 2 && is_at(chain.back(), "app::Server::push", "lock in push") &&
         chain[chain.size() - 2].function == "std::lock_guard<std::mutex>::lock_guard";
}

TEST(Image, An_inlined_lock_guard_is_a_frame_of_its_own) {
  const auto chains = chains_of(*open_fixture("gcc_O2"));
  EXPECT_TRUE(std::any_of(chains.begin(), chains.end(), is_lock_inlined_into_push));
}

TEST(Image, A_shared_library_has_frames) {
  const auto chains = chains_of(*open_fixture("gcc_shared"));
  EXPECT_TRUE(any_frame(chains, "app::Server::push", "lock in push"));
}

TEST(Image, Without_debug_information_the_symbol_names_the_function) {
  const auto image = open_fixture("gcc_no_debug");
  const Function* push = function_named(*image, "app::Server::push(int)");
  ASSERT_NE(push, nullptr);
  EXPECT_EQ(image->frames_at(push->start + 1).front().function, "app::Server::push");
  EXPECT_FALSE(image->has_debug_information());
  EXPECT_THAT(image->why_no_debug_information(), HasSubstr("-g"));
}

TEST(Image, A_stripped_file_still_has_the_extents_of_its_functions) {
  const auto image = open_fixture("gcc_stripped");
  const auto named = open_fixture("gcc_no_debug");
  const Function* push = function_named(*named, "app::Server::push(int)");
  ASSERT_NE(push, nullptr);
  const auto functions = image->functions();
  EXPECT_TRUE(std::any_of(functions.begin(), functions.end(), [&](const Function& f) {
    return f.name.empty() && f.start == push->start && f.size == push->size;
  }));
  EXPECT_THAT(image->why_no_debug_information(), HasSubstr("stripped"));
}

TEST(Image, A_missing_split_file_is_named_and_lines_are_still_known) {
  const auto image = open_fixture("gcc_split_missing");
  EXPECT_FALSE(image->has_debug_information());
  EXPECT_THAT(image->why_no_debug_information(), HasSubstr(".dwo is missing"));
  EXPECT_TRUE(any_frame(chains_of(*image), "app::Server::push", "call of times"));
}

TEST(Image, Lines_of_code_that_the_linker_has_dropped_are_forgotten) {
  const auto image = open_fixture("gcc_dropped");
  EXPECT_TRUE(any_frame(chains_of(*image), "main", "in kept", "symbols_dropped.cc"));
  for (const LineRow& row : image->lines())
    ASSERT_NE(row.line, line_of("in dropped", "symbols_dropped.cc"));
}

TEST(Image, There_is_no_frame_outside_of_code) {
  const auto image = open_fixture("gcc_O2");
  EXPECT_TRUE(image->frames_at(0).empty());
  EXPECT_TRUE(image->frames_at(UINT64_MAX).empty());
  EXPECT_TRUE(image->code_at(UINT64_MAX, 16).empty());
}

TEST(Image, A_file_that_is_none_is_refused) {
  TempFolder folder;
  std::ofstream(folder.file("text")) << "#!/bin/sh\n";
  EXPECT_FALSE(Image::open(folder.file("text")));
  EXPECT_FALSE(Image::open(folder.file("nothing")));
  EXPECT_FALSE(Image::open(folder.path()));
}

}  // namespace
}  // namespace unflake
