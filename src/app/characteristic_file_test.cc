#include "app/characteristic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::vector<std::string> causes_of(const CharacteristicSet& set, const FunctionId& function) {
  std::vector<std::string> causes;
  for (const Exposure& one : exposures(set, std::vector{function})) causes.push_back(one.cause);
  return causes;
}

std::vector<std::string> shipped_causes(const std::string& name,
                                        FunctionKind kind = FunctionKind::call) {
  return causes_of(shipped_functions(), {kind, name});
}

TEST(ShippedFunctions, Have_every_root_cause) {
  std::set<std::string> causes;
  for (const CharacteristicFunction& one : shipped_functions()) causes.insert(one.cause);
  EXPECT_THAT(causes, testing::ElementsAre("async wait", "concurrency", "environment",
                                           "floating point", "io", "network", "randomness",
                                           "resource leak", "time", "unordered collection"));
}

// What a published set that was chosen by hand for Python names, as native code calls it.
TEST(ShippedFunctions, Agree_with_the_published_set) {
  using testing::Contains;
  EXPECT_THAT(shipped_causes("pthread_cond_wait"), Contains("async wait"));  // Condition.wait
  EXPECT_THAT(shipped_causes("std::condition_variable::wait"), Contains("async wait"));
  EXPECT_THAT(shipped_causes("nanosleep"), Contains("async wait"));        // sleep
  EXPECT_THAT(shipped_causes("pthread_create"), Contains("concurrency"));  // start_new_thread
  EXPECT_THAT(shipped_causes("std::thread::_M_start_thread"), Contains("concurrency"));
  EXPECT_THAT(shipped_causes("rand"), Contains("randomness"));  // Random.*
  EXPECT_THAT(shipped_causes("std::random_device::_M_getval"), Contains("randomness"));
  EXPECT_THAT(shipped_causes("socket"), Contains("network"));      // socket.__init__
  EXPECT_THAT(shipped_causes("connect"), Contains("network"));     // create_connection
  EXPECT_THAT(shipped_causes("clock_gettime"), Contains("time"));  // now
  EXPECT_THAT(shipped_causes("open"), Contains("io"));             // open
}

TEST(ShippedFunctions, Know_containers_that_are_ordered_by_addresses) {
  const auto kind = FunctionKind::library;
  EXPECT_THAT(shipped_causes("std::hash<Node*>::operator()", kind), SizeIs(1));
  EXPECT_THAT(shipped_causes("std::_Hashtable<Node*, Node*, std::allocator<Node*>>::find", kind),
              SizeIs(1));
  EXPECT_THAT(shipped_causes("std::_Hashtable<int, int, std::allocator<int>>::find", kind),
              SizeIs(0));
}

TEST(ShippedFunctions, Say_nothing_of_what_every_test_does) {
  for (const char* name : {"memcpy", "strlen", "printf", "std::ostream::put", "abort", "exit",
                           "std::__throw_length_error", "pthread_mutex_lock"})
    EXPECT_THAT(shipped_causes(name), SizeIs(0)) << name;
}

TEST(FunctionsFile, Names_the_line_of_what_is_wrong) {
  const auto error_of = [](const std::string& text) {
    const auto parsed = parse_functions(text, "own.toml");
    return parsed ? std::string("none") : to_string(parsed.error());
  };
  EXPECT_THAT(error_of("[time]\ncall = []\n"), HasSubstr("format = 1"));
  EXPECT_THAT(error_of("format = 2\n"), HasSubstr("knows up to 1"));
  EXPECT_THAT(error_of("format = 1\n[time]\ncalls = []\n"), HasSubstr("own.toml, line 3"));
  EXPECT_THAT(error_of("format = 1\n[time]\ncall = \"time\"\n"), HasSubstr("a list"));
  EXPECT_THAT(error_of("format = 1\n[time]\ncall = [7]\n"), HasSubstr("line 3"));
  EXPECT_THAT(error_of("format = 1\ntime = 3\n"), HasSubstr("'time'"));
  EXPECT_THAT(error_of("format = 1\nshipped = 3\n"), HasSubstr("true or false"));
  EXPECT_THAT(error_of("format ="), HasSubstr("not TOML"));
}

TEST(FunctionsFile, Comes_back_as_it_was_written) {
  const CharacteristicSet set = {
      {"time", FunctionKind::call, "clock_gettime", "executed by 3 of 4 flaky tests"},
      {"time", FunctionKind::library, "std::hash<*\\*>*", ""},
      {"a \"quoted\" cause", FunctionKind::project, "Own::f(\\\"x\\\")", "50 % of \\ all"}};
  const auto parsed = parse_functions(functions_text(set, {"learned\nfrom tests"}), "learned.toml");
  ASSERT_TRUE(parsed) << to_string(parsed.error());
  ASSERT_THAT(parsed->functions, SizeIs(3));
  for (const CharacteristicFunction& one : set) {
    const auto same = std::ranges::find_if(parsed->functions, [&](const auto& other) {
      return other.cause == one.cause && other.kind == one.kind && other.name == one.name &&
             other.evidence == one.evidence;
    });
    EXPECT_NE(same, parsed->functions.end()) << one.name;
  }
}

TEST(FunctionsFile, Any_bytes_in_a_name_leave_a_file_that_can_be_read) {
  const std::string odd("a\0b\xff\x1b[2J\n]]'''\"\"\"", 18);
  const auto parsed = parse_functions(
      functions_text({{odd, FunctionKind::project, odd, odd}}, {odd}), "learned.toml");
  ASSERT_TRUE(parsed) << to_string(parsed.error());
  EXPECT_THAT(parsed->functions, SizeIs(1));
}

class ProjectFunctions : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directory(folder_.file(".unflake"));
    std::ofstream(folder_.file(".unflake/" + name)) << text;
  }
  CharacteristicSet load() {
    const auto loaded = load_functions(project_);
    EXPECT_TRUE(loaded) << to_string(loaded.error());
    return loaded ? *loaded : CharacteristicSet{};
  }

  TempFolder folder_;
  const Project project_{folder_.path()};
};

TEST_F(ProjectFunctions, Are_the_shipped_ones_when_there_is_no_file) {
  EXPECT_EQ(load().size(), shipped_functions().size());
}

TEST_F(ProjectFunctions, Own_and_learned_ones_count_besides_the_shipped) {
  write("characteristic-functions.toml", "format = 1\n[time]\nproject = [\"Clock::now\"]\n");
  write("learned-functions.toml", "format = 1\n[io]\ncall = [{ name = \"mmap64\" }]\n");
  const CharacteristicSet all = load();
  EXPECT_EQ(all.size(), shipped_functions().size() + 2);
  EXPECT_THAT(causes_of(all, {FunctionKind::project, "Clock::now"}), SizeIs(1));
  EXPECT_THAT(causes_of(all, {FunctionKind::call, "mmap64"}), SizeIs(1));
}

TEST_F(ProjectFunctions, Own_ones_may_replace_the_shipped) {
  write("characteristic-functions.toml",
        "format = 1\nshipped = false\n[time]\nproject = [\"Clock::now\"]\n");
  EXPECT_THAT(load(), SizeIs(1));
}

TEST_F(ProjectFunctions, A_broken_file_is_an_error_and_not_an_empty_set) {
  write("learned-functions.toml", "format = 1\n[time\n");
  EXPECT_FALSE(load_functions(project_));
}

}  // namespace
}  // namespace unflake
