#include "run/agent_library.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "protocol/agent_protocol.h"
#include "util/environment.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view divides_preloads = " :\t\n";

bool can_be_preloaded(const std::string& path) {
  return path.find_first_of(divides_preloads) == std::string::npos;
}

Result<std::string> make_link_folder() {
  std::error_code failed;
  std::string parent = fs::temp_directory_path(failed).string();
  if (failed || !can_be_preloaded(parent)) parent = "/tmp";
  std::string folder = parent + "/unflake-agent-XXXXXX";
  if (::mkdtemp(folder.data()) != nullptr) return folder;
  return internal_error(fmt::format("no folder can be made: {}", ::strerror(errno)), parent,
                        "unflake needs one because its own path has a blank or a colon in it, "
                        "which LD_PRELOAD cannot hold");
}

}  // namespace

std::string variable_for(const Command& command, const char* name) {
  std::string value = environment_variable(name);
  for (const EnvChange& change : command.env)
    if (change.name == name) value = change.value.value_or("");
  return value;
}

Result<std::string> find_library(const std::string& file_name) {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  const fs::path prefix = program.parent_path().parent_path();
  for (const char* folder : {"lib", UNFLAKE_LIBDIR}) {
    const fs::path library = prefix / folder / file_name;
    if (fs::exists(library, failed)) return library.string();
  }
  return internal_error(fmt::format("{} is missing, which is loaded into tests", file_name),
                        (prefix / "lib").string(),
                        "install unflake again, with its bin and lib folders side by side");
}

Result<std::string> find_agent_library() {
  if (std::string other = environment_variable("UNFLAKE_AGENT_LIBRARY"); !other.empty())
    return other;
  return find_library(agent_file_name);
}

Result<PreloadedLibrary> PreloadedLibrary::open(const std::string& library) {
  PreloadedLibrary preloaded;
  preloaded.path_ = library;
  if (can_be_preloaded(library)) return preloaded;
  auto folder = make_link_folder();
  if (!folder) return folder.error();
  preloaded.link_folder_ = std::move(*folder);
  preloaded.path_ = preloaded.link_folder_ + "/" + fs::path(library).filename().string();
  std::error_code failed;
  fs::create_symlink(library, preloaded.path_, failed);
  if (failed)
    return internal_error("a library cannot be linked: " + failed.message(), preloaded.path_);
  return preloaded;
}

PreloadedLibrary::PreloadedLibrary(PreloadedLibrary&& other) noexcept
    : path_(std::move(other.path_)), link_folder_(std::exchange(other.link_folder_, "")) {}

PreloadedLibrary::~PreloadedLibrary() {
  std::error_code ignored;
  if (!link_folder_.empty()) fs::remove_all(link_folder_, ignored);
}

std::vector<EnvChange> agent_environment(const Command& command, const std::string& library,
                                         const std::string& memory_address) {
  const std::string preloads = variable_for(command, "LD_PRELOAD");
  std::string asan = variable_for(command, "ASAN_OPTIONS");
  // gcc's ASan refuses to run behind a preloaded library, though it does no harm there.
  if (!asan.empty()) asan += ":";
  asan += "verify_asan_link_order=0";
  return {{"LD_PRELOAD", preloads.empty() ? library : library + ":" + preloads},
          {"ASAN_OPTIONS", asan},
          {protocol::memory_variable, memory_address}};
}

}  // namespace unflake
