#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "patch/repair/repair_patch.h"
#include "support/temp_folder.h"

namespace unflake {

// Sources whose lines are named by comments, `// critical`, with a compilation database.
class PatchedProject {
 public:
  PatchedProject() {
    request.root = folder.path();
    request.failure.kind = FailureKind::assertion;
  }

  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder.file(name)).parent_path());
    std::ofstream(folder.file(name), std::ios::binary) << text;
  }

  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder.file(name), std::ios::binary).rdbuf();
    return text.str();
  }

  // A file that is compiled, with these flags.
  void source(const std::string& name, const std::string& text, const std::string& flags = "") {
    write(name, text);
    if (!commands_.empty()) commands_ += ",\n";
    const bool is_c = name.ends_with(".c");
    commands_ += "{\"directory\": \"" + folder.path() + "\", \"file\": \"" + folder.file(name) +
                 "\", \"command\": \"" + (is_c ? "cc " : "c++ -std=c++17 ") + flags + " -c " +
                 folder.file(name) + "\"}";
    write("compile_commands.json", "[" + commands_ + "]");
    if (!name.ends_with(".h")) sources_.push_back(name);
  }

  RepairPlace at(const std::string& mark, const std::string& function = "") const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
      const std::string name = std::filesystem::relative(entry.path(), folder.path()).string();
      if (!entry.is_regular_file()) continue;
      const std::string text = read(name);
      size_t found = text.find("// " + mark);
      if (found == std::string::npos) found = text.find("/* " + mark);
      if (found == std::string::npos) continue;
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(found), '\n');
      return {{}, {entry.path().string(), static_cast<int>(line), function}, ""};
    }
    throw std::runtime_error("no line is marked with " + mark);
  }

  void hand_over(uint64_t count = 1, const std::string& critical_function = "",
                 const std::string& barrier_function = "") {
    request.hand_overs.push_back(
        {at("critical", critical_function), at("barrier", barrier_function), count});
  }
  void fails() {
    const RepairPlace place = at("fails");
    request.failure.file = place.spot.file;
    request.failure.line = place.spot.line;
  }
  void sleeps() { request.wait = GuessedWait{at("sleep"), Duration(20'000), true}; }

  std::vector<RepairPatch> patches() {
    why_not.clear();
    auto found = patches_for(request, &why_not);
    error = found ? "" : to_string(found.error());
    return found ? *found : std::vector<RepairPatch>();
  }

  // An empty one when it is not offered.
  RepairPatch patch(RepairIdiom idiom) {
    request.idioms = {idiom};
    for (const RepairPatch& each : patches())
      if (each.idiom == idiom) return each;
    return {};
  }

  std::string reasons() const {
    std::string all = error;
    for (const std::string& each : why_not) all += "\n" + each;
    return all;
  }

  int shell(const std::string& command) const {
    const int status =
        std::system(("cd '" + folder.path() + "' && " + command + " >output.txt 2>&1").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }

  void apply(const RepairPatch& patch) {
    ASSERT_NE(patch.diff, "") << reasons();
    write("the.diff", patch.diff);
    ASSERT_EQ(shell("git apply --check the.diff && git apply the.diff"), 0)
        << read("output.txt") << patch.diff;
  }

  // Everything into one program, as a careful user compiles it.
  void build(const std::string& flags = "") {
    std::string objects;
    for (const std::string& name : sources_) {
      const std::string compiler = name.ends_with(".c") ? "cc -std=gnu99" : "c++ -std=c++17";
      ASSERT_EQ(shell(compiler + " -Wall -Wextra -Werror -pthread " + flags + " -c '" + name +
                      "' -o '" + name + ".o'"),
                0)
          << read("output.txt") << read(name);
      objects += " '" + name + ".o'";
    }
    ASSERT_EQ(shell("c++ -pthread " + objects + " " + libraries + " -o program"), 0)
        << read("output.txt");
  }

  // `LATE`: the thread waits until the test has looked.
  int run(bool is_late = false) {
    return shell(std::string("timeout 60 env ") + (is_late ? "LATE=1 " : "") + "./program");
  }

  TempFolder folder;
  PatchRequest request;
  std::string libraries;
  std::vector<std::string> why_not;
  std::string error;

 private:
  std::string commands_;
  std::vector<std::string> sources_;
};

}  // namespace unflake
