#include "symbols/project_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/code_fixture.h"
#include "symbols/demangle.h"

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
