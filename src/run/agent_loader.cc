#include "run/agent_loader.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "symbols/loadable.h"
#include "util/system.h"

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

Variables variables_of(const Command& command) {
  return [&command](const char* name) {
    std::string value = environment_variable(name);
    for (const EnvChange& change : command.env)
      if (change.name == name) value = change.value.value_or("");
    return value;
  };
}

Variables variables_of(const Environment& environment) {
  return [&environment](const char* name) { return environment.value(name).value_or(""); };
}

void apply(const Loading& loading, Command& command) {
  command.env.insert(command.env.end(), loading.environment.begin(), loading.environment.end());
  if (!command.argv.empty())
    command.argv.insert(command.argv.begin() + 1, loading.arguments.begin(),
                        loading.arguments.end());
}

namespace {

bool is_entry(std::string_view list, std::string_view entry, std::string_view dividers) {
  while (!list.empty()) {
    const size_t end = std::min(list.find_first_of(dividers), list.size());
    if (list.substr(0, end) == entry) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace

EnvChange preload(const Variables& before, const std::string& library, Preloaded where) {
  const std::string others = before("LD_PRELOAD");
  if (others.empty()) return {"LD_PRELOAD", library};
  if (is_entry(others, library, divides_preloads)) return {"LD_PRELOAD", others};
  return {"LD_PRELOAD",
          where == Preloaded::first ? library + ":" + others : others + ":" + library};
}

Result<void> NativeLoader::check(const std::string& program) const {
  return check_loadable(program);
}

// gcc's ASan refuses to run behind a preloaded library, though it does no harm there.
Loading NativeLoader::loading(const Variables& before) const {
  constexpr const char* allowed = "verify_asan_link_order=0";
  std::string options = before("ASAN_OPTIONS");
  if (!is_entry(options, allowed, ":"))
    options += options.empty() ? allowed : std::string(":") + allowed;
  return {{preload(before, library_, Preloaded::first), {"ASAN_OPTIONS", options}}, {}};
}

}  // namespace unflake
