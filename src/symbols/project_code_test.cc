#include "symbols/project_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "support/code_fixture.h"
#include "support/temp_folder.h"
#include "symbols/image.h"

namespace unflake {
namespace {

using testing::Contains;

const ProjectCode policy({"/home/me/project", {}, {}});

TEST(ProjectCode, What_is_below_the_root_is_project_code) {
  EXPECT_TRUE(policy.is_project_file("/home/me/project/src/server.cc"));
  EXPECT_TRUE(policy.is_project_image("/home/me/project/build/server_test"));
}

TEST(ProjectCode, What_is_elsewhere_but_not_of_the_system_is_project_code) {
  EXPECT_TRUE(policy.is_project_file("/tmp/build/generated.cc"));
  EXPECT_TRUE(policy.is_project_file("src/relative.cc"));
  EXPECT_TRUE(policy.is_project_image("/opt/us/libours.so"));
}

TEST(ProjectCode, Headers_of_the_system_and_of_compilers_are_not) {
  EXPECT_FALSE(policy.is_project_file("/usr/include/c++/12/mutex"));
  EXPECT_FALSE(policy.is_project_file("/usr/lib/gcc/x86_64-linux-gnu/12/include/immintrin.h"));
  EXPECT_FALSE(policy.is_project_file("/opt/gcc-13/include/c++/13/bits/std_mutex.h"));
  EXPECT_FALSE(policy.is_project_file("/home/me/project/toolchain/lib/clang/17/include/x.h"));
  EXPECT_FALSE(policy.is_project_file("/usr/src/googletest/googletest/src/gtest.cc"));
  EXPECT_FALSE(policy.is_project_file("<built-in>"));
}

TEST(ProjectCode, Libraries_of_the_system_are_not) {
  EXPECT_FALSE(policy.is_project_image("/lib/x86_64-linux-gnu/libc.so.6"));
  EXPECT_FALSE(policy.is_project_image("/usr/lib64/libstdc++.so.6"));
  EXPECT_FALSE(policy.is_project_image("/nix/store/abc-glibc/lib/libc.so.6"));
  EXPECT_FALSE(policy.is_project_image("linux-vdso.so.1"));
  EXPECT_TRUE(policy.is_project_image("/library/ours.so"));
}

TEST(ProjectCode, Dependencies_that_were_fetched_into_the_project_are_not) {
  EXPECT_FALSE(policy.is_project_file("/home/me/project/build/_deps/googletest-src/src/gtest.cc"));
  EXPECT_FALSE(policy.is_project_file("/home/me/project/third_party/zlib/inflate.c"));
  EXPECT_FALSE(policy.is_project_file("/home/me/project/subprojects/fmt/include/fmt/format.h"));
  EXPECT_FALSE(policy.is_project_file("/home/me/project/include/log/fmt/bundled/format.h"));
}

TEST(ProjectCode, A_test_framework_of_one_file_is_not_unless_the_user_says_so) {
  EXPECT_FALSE(policy.is_project_file("/home/me/project/tests/catch.hpp"));
  EXPECT_FALSE(policy.is_project_file("/home/me/project/tests/doctest/doctest.h"));
  EXPECT_TRUE(policy.is_project_file("/home/me/project/tests/catch_the_event.cc"));
  const ProjectCode told({"/p", {"tests/catch.hpp"}, {}});
  EXPECT_TRUE(told.is_project_file("/p/tests/catch.hpp"));
}

TEST(TestFunction, Is_what_old_and_new_macros_make_of_a_test) {
  EXPECT_TRUE(is_test_function("____C_A_T_C_H____T_E_S_T____14"));
  EXPECT_TRUE(is_test_function("C_A_T_C_H_T_E_S_T_0"));
  EXPECT_TRUE(is_test_function("Queue_Pops_Test::TestBody"));
  EXPECT_FALSE(is_test_function("Catch::RunContext::runTest"));
}

TEST(ProjectCode, The_root_itself_may_be_in_such_a_folder) {
  const ProjectCode nested({"/src/third_party/lib", {}, {}});
  EXPECT_TRUE(nested.is_project_file("/src/third_party/lib/a.cc"));
}

TEST(ProjectCode, A_root_inside_of_a_system_folder_is_project_code) {
  const ProjectCode inside({"/usr/src/project", {}, {}});
  EXPECT_TRUE(inside.is_project_file("/usr/src/project/a.cc"));
  EXPECT_FALSE(inside.is_project_file("/usr/src/other/a.cc"));
}

TEST(ProjectCode, What_the_user_says_decides) {
  const ProjectCode told({"/p", {"third_party/ours", "/usr/lib/ours"}, {"generated", "*.pb.cc"}});
  EXPECT_TRUE(told.is_project_file("/p/third_party/ours/a.cc"));
  EXPECT_FALSE(told.is_project_file("/p/third_party/theirs/a.cc"));
  EXPECT_TRUE(told.is_project_image("/usr/lib/ours/libours.so"));
  EXPECT_FALSE(told.is_project_file("/p/generated/a.cc"));
  EXPECT_FALSE(told.is_project_file("/p/src/message.pb.cc"));
}

TEST(ProjectCode, A_glob_is_relative_to_the_root) {
  const ProjectCode told({"/p", {}, {"src/generated/*"}});
  EXPECT_FALSE(told.is_project_file("/p/src/generated/a.cc"));
  EXPECT_FALSE(told.is_project_file("/p/src/generated/deeper/a.cc"));
  EXPECT_TRUE(told.is_project_file("/p/src/a.cc"));
  EXPECT_TRUE(told.is_project_file("/p/other/src/generated/a.cc"));
}

TEST(ProjectCode, What_was_compiled_elsewhere_is_known_by_the_end_of_its_path) {
  const ProjectCode told({"/p", {"vendor/queue"}, {"./src/generated/*", "legacy/"}});
  for (const char* path :
       {"/build/src/generated/a.cc", "src/generated/a.cc", "legacy/a.cc", "/build/7/legacy/a.cc"})
    EXPECT_FALSE(told.is_project_file(path)) << path;
  EXPECT_TRUE(told.is_project_file("/build/notlegacy/a.cc"));
  EXPECT_FALSE(told.is_project_file("/usr/include/vendor/queue/a.h"));
  EXPECT_FALSE(told.is_project_file("/opt/gcc/include/c++/vendor/queue/a.h"));
}

TEST(ProjectCode, Entries_that_match_nothing_are_told) {
  TempFolder folder;
  std::filesystem::create_directories(folder.file("src/other"));
  std::ofstream(folder.file("src/other/a.pb.cc"));
  const ProjectCode told({folder.path(),
                          {"vendor/queue", "src/other", "/nowhere/at/all"},
                          {"src/generatd/*", "src/generated/*", "*.pb.cc"}});
  EXPECT_THAT(
      told.unmatched({folder.file("src/generated/x.cc"), folder.file("main.cc")}),
      testing::ElementsAre("[code] project: vendor/queue", "[code] project: /nowhere/at/all",
                           "[code] system: src/generatd/*"));
}

TEST(ProjectCode, Works_without_a_root) {
  const ProjectCode rootless({"", {}, {}});
  EXPECT_TRUE(rootless.is_project_file("/home/me/a.cc"));
  EXPECT_FALSE(rootless.is_project_file("/usr/include/stdio.h"));
}

TEST(ProjectCode, The_agent_is_told_the_folders_of_the_system) {
  const ProjectCode told({"/p", {}, {"/opt/vendor"}});
  EXPECT_THAT(told.system_prefixes(), Contains("/usr/lib"));
  EXPECT_THAT(told.system_prefixes(), Contains("/opt/vendor"));
  EXPECT_THAT(told.system_prefixes(), testing::Not(Contains("/p")));
}

TEST(FirstProjectFrame, Of_an_inlined_lock_guard_is_the_line_in_push) {
  const std::vector<Frame> frames = {
      {"std::mutex::lock", "/usr/include/c++/12/bits/std_mutex.h", 100, 0, true},
      {"std::lock_guard<std::mutex>::lock_guard", "/usr/include/c++/12/bits/std_mutex.h", 229, 0,
       true},
      {"Server::push", "/home/me/project/server.cc", 57, 0, false}};
  EXPECT_EQ(first_project_frame(frames, policy), &frames[2]);
}

TEST(FirstProjectFrame, Without_files_is_decided_by_the_name) {
  const std::vector<Frame> frames = {{"std::mutex::lock", "", 0, 0, true},
                                     {"Server::push", "", 0, 0, false}};
  EXPECT_EQ(first_project_frame(frames, policy), &frames[1]);
}

TEST(FirstProjectFrame, Is_null_in_system_code) {
  EXPECT_EQ(first_project_frame({{"__asan_memcpy", "", 0, 0, false}}, policy), nullptr);
  for (const char* start : {"_start", "__libc_start_call_main", "frame_dummy"})
    EXPECT_EQ(first_project_frame({{start, "", 0, 0, false}}, policy), nullptr) << start;
  EXPECT_EQ(first_project_frame({}, policy), nullptr);
}

class SkipRanges : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!has_fixture(GetParam())) GTEST_SKIP() << "needs clang";
    image = open_fixture(GetParam());
    skipped = skip_ranges(*image, policy);
  }

  bool is_skipped(uint64_t address) const {
    return std::any_of(skipped.begin(), skipped.end(), [&](const Extent& extent) {
      return address >= extent.start && address - extent.start < extent.size;
    });
  }

  std::shared_ptr<const Image> image;
  std::vector<Extent> skipped;
};

TEST_P(SkipRanges, Are_ordered_and_apart) {
  uint64_t end = 0;
  for (const Extent& extent : skipped) {
    ASSERT_TRUE(end == 0 || extent.start > end);
    end = extent.start + extent.size;
  }
}

TEST_P(SkipRanges, Agree_with_the_frames_at_every_address) {
  for (const Function& function : image->functions()) {
    if (function.file.empty()) continue;
    for (uint64_t at = function.start; at < function.start + function.size; ++at) {
      const auto frames = image->frames_at(at);
      ASSERT_EQ(is_skipped(at), first_project_frame(frames, policy) == nullptr)
          << function.name << " at " << std::hex << at << ", " << frames.front().function;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, SkipRanges,
                         testing::Values("gcc_O0", "gcc_O2", "gcc_lto", "clang_O0", "clang_O2"),
                         [](const auto& info) { return std::string(info.param); });

const Function& function_like(const Image& image, const std::string& part) {
  for (const Function& function : image.functions())
    if (function.name.find(part) != std::string::npos) return function;
  throw std::runtime_error("no function like " + part);
}

// symbols_main.cc has no debug information there, symbols_code.cc has.
std::vector<std::string> bare_sources(const Image& image, const ProjectCode& policy) {
  std::vector<std::string> sources;
  for (const BareUnit* unit : bare_project_units(image, policy)) sources.push_back(unit->source);
  return sources;
}

bool is_foreign(const Image& image, const ProjectCode& policy, const std::string& function) {
  const Function& found = function_like(image, function);
  return std::ranges::any_of(foreign_ranges(image, policy), [&](const Extent& extent) {
    return extent.start <= found.start && found.start < extent.start + extent.size;
  });
}

class BareUnits : public testing::TestWithParam<const char*> {};

TEST_P(BareUnits, A_source_of_the_project_is_its_code_without_debug_information_too) {
  const auto image = open_fixture(GetParam());
  const ProjectCode own({UNFLAKE_FIXTURE_SOURCES, {}, {}});
  EXPECT_THAT(bare_sources(*image, own), testing::ElementsAre("symbols_main.cc"));
  EXPECT_FALSE(is_foreign(*image, own, "main"));
}

TEST_P(BareUnits, What_others_compiled_is_not) {
  const auto image = open_fixture(GetParam());
  EXPECT_THAT(bare_sources(*image, policy), testing::IsEmpty());
  EXPECT_TRUE(is_foreign(*image, policy, "main"));
  EXPECT_FALSE(is_foreign(*image, policy, "app::Server::push"));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, BareUnits, testing::Values("gcc_bare_O0", "gcc_bare_O2"),
                         [](const auto& info) { return std::string(info.param); });

TEST(BareUnit, A_source_that_defines_tests_is_the_projects_wherever_it_is) {
  const auto image = open_fixture("gcc_bare_tests");
  EXPECT_THAT(bare_sources(*image, policy), testing::ElementsAre("symbols_bare_test.cc"));
}

TEST(BareUnit, An_image_without_any_debug_information_has_none) {
  EXPECT_TRUE(open_fixture("gcc_no_debug")->bare_units().empty());
  EXPECT_TRUE(open_fixture("gcc_stripped")->bare_units().empty());
  EXPECT_THAT(bare_sources(*open_fixture("gcc_O2"), ProjectCode({UNFLAKE_FIXTURE_SOURCES, {}, {}})),
              testing::IsEmpty());
}

TEST(SkipRangesOfTemplates, Cover_what_became_of_system_headers) {
  const auto image = open_fixture("gcc_O0");
  const auto skipped = skip_ranges(*image, policy);
  const Function& lock = function_like(*image, "std::mutex::lock()");
  EXPECT_TRUE(std::any_of(skipped.begin(), skipped.end(), [&](const Extent& extent) {
    return extent.start <= lock.start && lock.start + lock.size <= extent.start + extent.size;
  }));
}

TEST(SkipRangesOfTemplates, Spare_the_lambda_that_was_inlined_into_one) {
  const auto image = open_fixture("gcc_O2");
  const auto skipped = skip_ranges(*image, policy);
  const Function& run = function_like(*image, "::_M_run()");
  uint64_t spared = run.size;
  for (const Extent& extent : skipped)
    if (extent.start >= run.start && extent.start + extent.size <= run.start + run.size)
      spared -= extent.size;
  EXPECT_GT(spared, 0u);
  EXPECT_LT(spared, run.size);
}

TEST(SkipRangesOfTemplates, Are_known_by_name_without_debug_information) {
  const auto image = open_fixture("gcc_no_debug");
  const auto skipped = skip_ranges(*image, policy);
  const Function& base = function_like(*image, "std::_Vector_base<int");
  EXPECT_TRUE(std::any_of(skipped.begin(), skipped.end(), [&](const Extent& extent) {
    return extent.start <= base.start && base.start < extent.start + extent.size;
  }));
}

}  // namespace
}  // namespace unflake
