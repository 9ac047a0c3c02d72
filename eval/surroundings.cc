#include "surroundings.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "subprocess.h"
#include "support/temp_folder.h"
#include "util/text.h"

namespace unflake::eval {
namespace {

namespace fs = std::filesystem;

double minutes_now() {
  return std::chrono::duration<double, std::ratio<60>>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name")) return std::string(trim(line.substr(line.find(':') + 1)));
  return "an unknown processor";
}

std::string commit_of(const std::string& source) {
  const TempFolder folder;
  const auto asked =
      run_tool({"/usr/bin/git", "-C", fs::absolute(source), "rev-parse", "--short", "HEAD"},
               folder.path(), std::chrono::seconds(10));
  if (!asked || asked->status != 0) return "an unknown commit";
  return "commit " + std::string(trim(asked->output));
}

}  // namespace

Watch::Watch(const std::string& source, const Surroundings& before)
    : began_(minutes_now() - before.minutes) {
  utsname system{};
  ::uname(&system);
  surroundings_.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  surroundings_.machine =
      fmt::format("{} cores of {}", std::thread::hardware_concurrency(), processor());
  surroundings_.kernel = fmt::format("{} {}", system.sysname, system.release);
  surroundings_.compiler = "compiled by g++ " __VERSION__;
  surroundings_.commit = commit_of(source);
  surroundings_.load_before = load_average();
  if (before.commit.empty()) return;
  surroundings_.load_before = before.load_before;
  if (!before.commit.ends_with(surroundings_.commit))
    surroundings_.commit = before.commit + " and then " + surroundings_.commit;
}

Surroundings Watch::end() {
  surroundings_.load_after = load_average();
  surroundings_.minutes = minutes_now() - began_;
  return surroundings_;
}

std::string to_string(const Surroundings& at) {
  return fmt::format(
      "Measured on {} at {}: {}, {}, {}. Load average {:.1f} before, {:.1f} after; {:.0f} "
      "minutes.",
      at.date, at.commit, at.machine, at.kernel, at.compiler, at.load_before, at.load_after,
      at.minutes);
}

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Result<void> write_file(const std::string& file, const std::string& text) {
  std::error_code error;
  fs::create_directories(fs::path(file).parent_path(), error);
  const std::string unfinished = file + ".new";
  std::ofstream out(unfinished, std::ios::binary);
  out << text;
  out.close();
  if (!out) return internal_error("cannot write the file", unfinished);
  fs::rename(unfinished, file, error);
  if (error) return internal_error("cannot replace the file: " + error.message(), file);
  return {};
}

}  // namespace unflake::eval
