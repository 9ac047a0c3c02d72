// Runs the command-line cases of *.toml: each a shell line in an empty folder, with what it has to
// print and how it has to end.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <toml++/toml.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "run/local_executor.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string name;
  std::string setup;
  std::string run;
  int64_t exit = 0;
  std::vector<std::string> out, err, not_out, not_err;
  Duration timeout{std::chrono::minutes(2)};
};

std::vector<std::string> texts(const toml::table& table, const char* key) {
  std::vector<std::string> found;
  if (const toml::array* list = table[key].as_array())
    for (const toml::node& text : *list) found.push_back(text.value<std::string>().value());
  return found;
}

Case case_of(const toml::table& table) {
  Case one;
  one.name = table["name"].value<std::string>().value();
  one.setup = table["setup"].value_or(std::string());
  one.run = table["run"].value<std::string>().value();
  one.exit = table["exit"].value_or(int64_t{0});
  one.out = texts(table, "out");
  one.err = texts(table, "err");
  one.not_out = texts(table, "not_out");
  one.not_err = texts(table, "not_err");
  for (const auto& [key, value] : table) {
    constexpr const char* known[] = {"name", "setup", "run",     "exit",
                                     "out",  "err",   "not_out", "not_err"};
    if (std::ranges::find(known, key.str()) == std::end(known))
      throw std::runtime_error(fmt::format("{}: unknown key {}", one.name, key.str()));
  }
  return one;
}

class CliCase : public testing::Test {
 public:
  explicit CliCase(Case one) : case_(std::move(one)) {}

  void SetUp() override {
    folder_ = testing::TempDir() + "unflake-cli-XXXXXX";
    ASSERT_TRUE(::mkdtemp(folder_.data()));
    fs::create_directory(folder_ + "/.unflake");
    executor_ = std::move(*LocalExecutor::create({}, interrupts_));
  }

  void TearDown() override {
    executor_.reset();
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }

  void TestBody() override {
    if (!case_.setup.empty()) {
      const ProcessResult setup = shell(case_.setup);
      ASSERT_EQ(setup.code, 0) << setup.output.text() << setup.errors.text();
    }
    const ProcessResult result = shell(case_.run);
    EXPECT_EQ(result.end, ProcessResult::End::exited);
    EXPECT_EQ(result.code, case_.exit);
    const std::string out = result.output.text(), err = result.errors.text();
    for (const std::string& text : case_.out) EXPECT_TRUE(contains(out, text)) << text;
    for (const std::string& text : case_.err) EXPECT_TRUE(contains(err, text)) << text;
    for (const std::string& text : case_.not_out) EXPECT_FALSE(contains(out, text)) << text;
    for (const std::string& text : case_.not_err) EXPECT_FALSE(contains(err, text)) << text;
    if (HasFailure()) fmt::print("$ {}\n{}\n-- standard error:\n{}\n", case_.run, out, err);
  }

 private:
  static bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  ProcessResult shell(const std::string& line) {
    Command command;
    command.argv = {"/bin/sh", "-euc", line};
    command.cwd = folder_;
    const std::string path = std::getenv("PATH") ? std::getenv("PATH") : "/usr/bin:/bin";
    command.env = {{"PATH", UNFLAKE_BIN ":" + path},
                   {"FIXTURES", UNFLAKE_FIXTURES},
                   {"ZOO", UNFLAKE_ZOO},
                   {"CASES", UNFLAKE_CLI_CASES},
                   {"HOME", folder_},
                   {"LC_ALL", "C.UTF-8"},
                   {"TMPDIR", folder_},
                   {"TERM", "dumb"}};
    for (const char* name : {"NO_COLOR",
                             "CLICOLOR_FORCE",
                             "XDG_STATE_HOME",
                             "CI",
                             "GIT_DIR",
                             "GITHUB_ACTIONS",
                             "GITHUB_STEP_SUMMARY",
                             "GITHUB_RUN_ID",
                             "CI_PIPELINE_ID",
                             "BUILDKITE_BUILD_ID",
                             "CIRCLE_WORKFLOW_ID",
                             "BUILD_BUILDID",
                             "BUILD_TAG",
                             "UNFLAKE_FLAKY",
                             "UNFLAKE_GRACE",
                             "UNFLAKE_STORE",
                             "UNFLAKE_PROJECT",
                             "UNFLAKE_JOBS",
                             "UNFLAKE_PROFILE",
                             "UNFLAKE_RETRIES",
                             "UNFLAKE_SLOW_AFTER",
                             "UNFLAKE_TIMEOUT",
                             "UNFLAKE_TOKEN",
                             "UNFLAKE_SERVER",
                             "UNFLAKE_BUILD",
                             "UNFLAKE_QUARANTINE",
                             "UNFLAKE_CHANGED_SINCE",
                             "UNFLAKE_CHANGED_RUNS",
                             "GTEST_TOTAL_SHARDS",
                             "GTEST_SHARD_INDEX"})
      command.env.push_back({name, std::nullopt});
    return executor_->launch(command, case_.timeout);
  }

  const Case case_;
  std::string folder_;
  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> executor_;
};

void register_cases(const fs::path& file) {
  const toml::table root = toml::parse_file(file.string());
  for (const toml::node& node : *root["case"].as_array()) {
    const Case one = case_of(*node.as_table());
    testing::RegisterTest(file.stem().c_str(), one.name.c_str(), nullptr, nullptr, file.c_str(),
                          static_cast<int>(node.source().begin.line),
                          [one]() -> testing::Test* { return new CliCase(one); });
  }
}

}  // namespace
}  // namespace unflake

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (const auto& entry : std::filesystem::directory_iterator(UNFLAKE_CLI_CASES))
    if (entry.path().extension() == ".toml") unflake::register_cases(entry.path());
  return RUN_ALL_TESTS();
}
