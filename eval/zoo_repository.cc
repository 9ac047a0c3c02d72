#include "zoo_repository.h"

#include <fmt/format.h>

#include <filesystem>

#include "subprocess.h"
#include "surroundings.h"
#include "util/json.h"

namespace unflake::eval {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr Duration longest_shell = 10min;
constexpr Duration longest_search = 10min;

std::string flags_of(const Truth& truth) {
  const bool is_boost = truth.framework == "boost";
  return std::string("-std=c++20 -g -Izoo") + (is_boost ? " -DBOOST_TEST_DYN_LINK" : "");
}

bool needs_main(const Truth& truth) {
  return truth.framework == "doctest" || truth.framework == "boost" || truth.framework == "catch2";
}

}  // namespace

Result<std::string> ZooMains::object_for(const Truth& truth) {
  if (!needs_main(truth)) return std::string();
  std::string& object = objects_[truth.framework];
  if (!object.empty()) return object;
  const std::string source = fs::absolute(zoo_ + "/mains/" + truth.framework + ".cc");
  object = folder_.file(truth.framework + ".o");
  const auto result = run_tool(
      {"/bin/sh", "-ec", fmt::format("c++ {} -c -o {} {}", flags_of(truth), object, source)},
      folder_.path(), longest_shell);
  if (!result) return result.error();
  if (result->status != 0) return internal_error(result->errors, source);
  return object;
}

std::string compile_line(const Truth& truth, const std::string& out,
                         const std::string& main_object) {
  std::string line = fmt::format("c++ {} -o {} zoo/{}.cc", flags_of(truth), out, truth.program);
  if (needs_main(truth))
    line += " " + (main_object.empty() ? "zoo/mains/" + truth.framework + ".cc" : main_object);
  if (truth.framework == "gtest") line += " -lgtest_main -lgtest";
  if (truth.framework == "boost") line += " -lboost_unit_test_framework";
  return line + " -lpthread";
}

Result<void> ZooRepository::make(const std::string& zoo, const Truth& truth,
                                 const std::string& main_object) {
  truth_ = truth;
  fs::create_directories(folder_.file("zoo"));
  fs::create_directories(folder_.file("build"));
  fs::copy(zoo + "/" + truth.program + ".cc", folder_.file("zoo"));
  for (const char* name : {"support", "mains"})
    fs::copy(zoo + "/" + name, folder_.file(std::string("zoo/") + name),
             fs::copy_options::recursive);
  const std::string source = folder_.file("zoo/" + truth.program + ".cc");
  const nlohmann::ordered_json command = {
      {"directory", path()},
      {"file", source},
      {"command", fmt::format("c++ {} -c {}", flags_of(truth), source)}};
  if (auto done = write_file(folder_.file("compile_commands.json"),
                             nlohmann::ordered_json::array({command}).dump(1));
      !done)
    return done.error();
  if (auto done = shell("printf 'build/\\nstdout\\nstderr\\n*.json\\n.unflake/\\n' > .gitignore && "
                        "git init -q . && git add -A && git -c user.name=zoo -c "
                        "user.email=zoo@example.org commit -q -m zoo");
      !done)
    return done.error();
  return shell(compile_line(truth, "build/" + truth.program, main_object));
}

Result<void> ZooRepository::shell(const std::string& line) const {
  const auto result = run_tool({"/bin/sh", "-ec", line}, path(), longest_shell);
  if (!result) return result.error();
  if (result->status == 0) return {};
  return internal_error(result->errors, line);
}

std::vector<std::string> ZooRepository::words(std::vector<std::string> first,
                                              const std::vector<std::string>& options) const {
  const TestWords target = test_words(truth_.framework, executable(), truth_.test);
  first.insert(first.end(), target.words.begin(), target.words.end());
  first.insert(first.end(), options.begin(), options.end());
  if (!target.command.empty()) first.push_back("--");
  first.insert(first.end(), target.command.begin(), target.command.end());
  return first;
}

Result<void> ZooRepository::record(const std::string& unflake, const std::string& budget) {
  repro_ = folder_.file("repro.json");
  const auto result = run_tool(words({unflake, "reproduce"}, {"--failure", truth_.failure_word(),
                                                              "--budget", budget, "--out", repro_}),
                               path(), longest_search);
  if (!result) return result.error();
  seconds_to_record_ = std::chrono::duration<double>(result->elapsed).count();
  if (fs::exists(repro_)) return {};
  return internal_error("its failure was not reproduced: " + result->errors, truth_.program);
}

}  // namespace unflake::eval
