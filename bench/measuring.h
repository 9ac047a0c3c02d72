#pragma once

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "util/result.h"

extern char** environ;

// What benchmarks share. Nothing that goes wrong in one is worth going on for.
namespace unflake {

[[noreturn]] inline void give_up(const std::string& why) {
  fmt::print(stderr, "the benchmark failed: {}\n", why);
  std::exit(1);
}

template <class T>
T need(Result<T> result) {
  if (!result) give_up(to_string(result.error()));
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

template <class Work>
double seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline void spawn_and_wait(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  int status = 0;
  if (::posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ) != 0 ||
      ::waitpid(child, &status, 0) != child || status != 0)
    give_up("cannot run " + words[0]);
}

inline std::string make_temporary_folder() {
  std::string folder = (std::filesystem::temp_directory_path() / "unflake-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) give_up("cannot make a temporary folder");
  return folder;
}

}  // namespace unflake
