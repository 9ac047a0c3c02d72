#include "rebuild/build_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "util/json.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Setting = BuildRecipe::Setting;
using System = BuildRecipe::System;

constexpr size_t most_shown_lines = 20;
constexpr uint64_t largest_file = uint64_t{64} << 20;

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// Empty when it cannot be read, or is no such file.
std::string text_of(const std::string& path) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed) || fs::file_size(path, failed) > largest_file) return "";
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Json json_in(const std::string& path) {
  return parse_json(text_of(path));
}

std::string string_at(const Json& json, const char* name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// The nearest folder at or above this one, up to the root, that has the file.
std::optional<std::string> folder_with(const std::vector<std::string>& names, fs::path folder) {
  for (;; folder = folder.parent_path()) {
    for (const std::string& name : names)
      if (is_there((folder / name).string())) return folder.string();
    if (!folder.has_relative_path()) return std::nullopt;
  }
}

std::string setting_named(const std::vector<Setting>& settings, const std::string& name) {
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found == settings.end() ? "" : found->value;
}

// "NAME:TYPE=VALUE", where the name may be in quotes.
std::optional<Setting> cache_entry(std::string_view line) {
  line = trim(line);
  if (line.empty() || line.starts_with("#") || line.starts_with("//")) return std::nullopt;
  const bool is_quoted = line.starts_with('"');
  const size_t end = is_quoted ? line.find('"', 1) : line.find(':');
  if (end == line.npos) return std::nullopt;
  const size_t colon = line.find(':', end), equals = line.find('=', end);
  if (colon == line.npos || equals == line.npos || equals < colon) return std::nullopt;
  Setting setting;
  setting.name = line.substr(is_quoted ? 1 : 0, end - (is_quoted ? 1 : 0));
  setting.type = line.substr(colon + 1, equals - colon - 1);
  setting.value = line.substr(equals + 1);
  return setting;
}

std::vector<Setting> all_entries(std::string_view text) {
  std::vector<Setting> entries;
  for (const std::string_view line : split_lines(text))
    if (auto entry = cache_entry(line)) entries.push_back(std::move(*entry));
  return entries;
}

// A path of the old tree or build that has its counterpart in the new one.
class Moved {
 public:
  Moved(std::string old_build, std::string build, std::string old_root, std::string root)
      : pairs_{{std::move(old_build), std::move(build)}, {std::move(old_root), std::move(root)}} {}

  std::string operator()(const std::string& value) const {
    for (const auto& [from, to] : pairs_) {
      if (from.empty() || (value != from && !value.starts_with(from + "/"))) continue;
      const std::string moved = to + value.substr(from.size());
      // What git does not know stayed where it was.
      return !is_there(moved) && is_there(value) && &from != &pairs_[0].first ? value : moved;
    }
    return value;
  }

 private:
  std::pair<std::string, std::string> pairs_[2];
};

std::string cmake_text(std::string_view value) {
  std::string fence = "=";
  while (value.find("]" + fence + "]") != value.npos) fence += "=";
  return fmt::format("[{}[{}]{}]", fence, value, fence);
}

Error no_sources(const std::string& where) {
  return usage_error("the build folder does not say where its sources are", printable(where),
                     "say how the program is built with --build 'COMMAND'");
}

Result<BuildRecipe> cmake_recipe(const std::string& build) {
  BuildRecipe recipe;
  recipe.system = System::cmake;
  recipe.build = build;
  const std::vector<Setting> all = all_entries(text_of(build + "/CMakeCache.txt"));
  recipe.sources = setting_named(all, "CMAKE_HOME_DIRECTORY");
  recipe.generator = setting_named(all, "CMAKE_GENERATOR");
  recipe.settings = read_cmake_cache(text_of(build + "/CMakeCache.txt"));
  if (!is_folder(recipe.sources)) return no_sources(build + "/CMakeCache.txt");
  return recipe;
}

std::string meson_value(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  std::vector<std::string> items;
  if (value.is_array())
    for (const Json& item : value)
      if (item.is_string()) items.push_back("'" + item.get<std::string>() + "'");
  return "[" + join(items, ",") + "]";
}

Result<BuildRecipe> meson_recipe(const std::string& build) {
  BuildRecipe recipe;
  recipe.system = System::meson;
  recipe.build = build;
  const Json info = json_in(build + "/meson-info/meson-info.json");
  recipe.sources = info.is_object() && info.contains("directories")
                       ? string_at(info["directories"], "source")
                       : "";
  const Json options = json_in(build + "/meson-info/intro-buildoptions.json");
  if (options.is_array())
    for (const Json& option : options)
      // Where it would be installed, and options of other machines, do not matter here.
      if (const std::string section = string_at(option, "section");
          section != "directory" && string_at(option, "name") != "wrap_mode" &&
          option.contains("value"))
        recipe.settings.push_back(
            {string_at(option, "name"), section, meson_value(option["value"])});
  if (!is_folder(recipe.sources)) return no_sources(build);
  return recipe;
}

Result<BuildRecipe> make_recipe(const std::string& folder) {
  BuildRecipe recipe;
  recipe.system = System::make;
  recipe.build = recipe.sources = folder;
  return recipe;
}

Result<BuildRecipe> recipe_of(const std::string& folder, const std::string& project_root) {
  const auto out_of_tree =
      folder_with({"CMakeCache.txt", "meson-info/intro-buildoptions.json"}, folder);
  if (out_of_tree)
    return is_there(*out_of_tree + "/CMakeCache.txt") ? cmake_recipe(*out_of_tree)
                                                      : meson_recipe(*out_of_tree);
  const auto make = folder_with({"GNUmakefile", "makefile", "Makefile"}, folder);
  if (make && !path_below(*make, project_root).empty()) return make_recipe(*make);
  return usage_error(
      "it is not known how this program is built: no build folder of CMake or Meson "
      "and no Makefile is above it",
      printable(folder),
      "say how with --build 'COMMAND'; it runs in a copy of the sources, and "
      "$UNFLAKE_BUILD is an empty folder for what it makes");
}

// A build that is being made.
class Building {
 public:
  Building(const BuildRecipe& recipe, const BuildLimits& limits, Launcher& launcher,
           const std::string& root, const std::string& source, const std::string& folder)
      : recipe_(recipe),
        limits_(limits),
        launcher_(launcher),
        root_(root),
        copy_(source),
        folder_(folder),
        log_path_(folder + ".log") {}

  Result<Built> operator()() {
    std::error_code ignored;
    fs::create_directories(folder_, ignored);
    const std::string below = path_below(recipe_.sources, root_);
    source_ = below.empty() || below == "." ? copy_ : copy_ + "/" + below;
    if (auto done = build(); !done) return done.error();
    return found();
  }

  // As they were in the build that is there, so that what it has generated is found.
  Result<void> compile_commands() {
    if (recipe_.system != System::cmake)
      return usage_error("only CMake can be asked for them", printable(recipe_.build));
    std::error_code ignored;
    fs::create_directories(folder_, ignored);
    source_ = recipe_.sources;
    if (auto done = configure({"-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"}); !done) return done.error();
    const std::string path = folder_ + "/compile_commands.json";
    std::string text = text_of(path);
    if (text.empty()) return usage_error("CMake wrote none", printable(path));
    replace_all(text, folder_, recipe_.build);
    std::ofstream(path) << text;
    return {};
  }

 private:
  Result<void> build() {
    switch (recipe_.system) {
      case System::cmake:
        return with_cmake();
      case System::meson:
        return with_meson();
      case System::make:
        return with_make();
      case System::command:
        return with_command();
    }
    return {};
  }

  Result<void> configure(const std::vector<std::string>& more = {}) {
    std::ofstream(folder_ + "/unflake-cache.cmake") << initial_cache();
    std::vector<std::string> words = {
        "cmake", "-S", source_, "-B", folder_, "-C", folder_ + "/unflake-cache.cmake"};
    if (!recipe_.generator.empty()) words.insert(words.end(), {"-G", recipe_.generator});
    words.insert(words.end(), more.begin(), more.end());
    return run(words, source_);
  }

  Result<void> with_cmake() {
    std::error_code ignored;
    fs::create_directories(folder_ + "/.cmake/api/v1/query", ignored);
    std::ofstream(folder_ + "/.cmake/api/v1/query/codemodel-v2");
    if (auto done = configure(); !done) return done.error();
    std::vector<std::string> build = {"cmake", "--build", folder_, "--parallel",
                                      std::to_string(limits_.jobs)};
    if (const std::string config = configuration(); !config.empty())
      build.insert(build.end(), {"--config", config});
    if (const std::string name = cmake_target(); !name.empty())
      build.insert(build.end(), {"--target", name});
    return run(build, source_);
  }

  // Every setting as it was; what was downloaded is not downloaded again.
  std::string initial_cache() const {
    const Moved moved(recipe_.build, folder_, root_, copy_);
    std::string text;
    for (const Setting& setting : recipe_.settings)
      text += fmt::format("set({} {} CACHE {} \"\")\n", setting.name,
                          cmake_text(moved(setting.value)), setting.type);
    std::error_code failed;
    for (fs::directory_iterator at(recipe_.build + "/_deps", failed), end; !failed && at != end;
         at.increment(failed))
      if (std::string name = at->path().filename().string(); name.ends_with("-src")) {
        name.resize(name.size() - 4);
        std::ranges::transform(name, name.begin(),
                               [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
        text += fmt::format("set(FETCHCONTENT_SOURCE_DIR_{} {} CACHE PATH \"\")\n", name,
                            cmake_text(at->path().string()));
      }
    return text;
  }

  // Of a generator that makes several: the one that is part of the executable's path.
  std::string configuration() const {
    if (recipe_.generator != "Ninja Multi-Config") return "";
    const std::vector<std::string> kinds =
        split(setting_named(recipe_.settings, "CMAKE_CONFIGURATION_TYPES"), ';');
    for (const fs::path& part : fs::path(recipe_.executable))
      if (std::ranges::find(kinds, part.string()) != kinds.end()) return part.string();
    return "";
  }

  // That makes the executable, as CMake's file API tells; empty: not known.
  std::string cmake_target() const {
    if (recipe_.executable.empty()) return "";
    const std::string reply = folder_ + "/.cmake/api/v1/reply";
    std::error_code failed;
    for (fs::directory_iterator at(reply, failed), end; !failed && at != end;
         at.increment(failed)) {
      if (!at->path().filename().string().starts_with("target-")) continue;
      const Json target = json_in(at->path().string());
      if (!target.is_object() || !target.contains("artifacts")) continue;
      for (const Json& artifact : target["artifacts"])
        if (string_at(artifact, "path") == recipe_.executable) return string_at(target, "name");
    }
    return "";
  }

  Result<void> with_meson() {
    take_subprojects();
    std::vector<std::string> setup = {"meson", "setup", folder_, source_, "--wrap-mode=nodownload"};
    for (const Setting& setting : recipe_.settings)
      setup.push_back(fmt::format("-D{}={}", setting.name, setting.value));
    if (auto done = run(setup, source_); !done) return done.error();
    std::vector<std::string> build = {"ninja", "-C", folder_, "-j", std::to_string(limits_.jobs)};
    if (!recipe_.executable.empty()) build.push_back(recipe_.executable);
    return run(build, source_);
  }

  // What Meson has downloaded is in the sources, where git ignores it.
  void take_subprojects() const {
    std::error_code failed;
    for (fs::directory_iterator at(recipe_.sources + "/subprojects", failed), end;
         !failed && at != end; at.increment(failed)) {
      const std::string to = source_ + "/subprojects/" + at->path().filename().string();
      std::error_code ignored;
      if (!is_there(to)) fs::copy(at->path(), to, fs::copy_options::recursive, ignored);
    }
  }

  Result<void> with_make() {
    if (!folder_with({"GNUmakefile", "makefile", "Makefile"}, source_) ||
        *folder_with({"GNUmakefile", "makefile", "Makefile"}, source_) != source_)
      return usage_error("the Makefile is not part of the sources: something has to make it first",
                         printable(recipe_.sources),
                         "say how the program is built with --build 'COMMAND'");
    // What was built and is kept with the sources would look up to date.
    std::error_code ignored;
    if (!recipe_.executable.empty()) fs::remove(source_ + "/" + recipe_.executable, ignored);
    if (auto done = run({"make", "-j", std::to_string(limits_.jobs)}, source_); !done)
      return done.error();
    if (recipe_.executable.empty() || is_there(source_ + "/" + recipe_.executable)) return {};
    return run({"make", "-j", std::to_string(limits_.jobs), recipe_.executable}, source_);
  }

  Result<void> with_command() {
    return run({"sh", "-c", recipe_.command}, source_,
               {{"UNFLAKE_SOURCE", source_}, {"UNFLAKE_BUILD", folder_}});
  }

  // Both streams as one, in the order in which they were written.
  Result<void> run(const std::vector<std::string>& words, const std::string& folder,
                   std::vector<EnvChange> env = {}) {
    Command command;
    command.argv = {"sh", "-c", "exec \"$@\" 2>&1", "sh"};
    command.argv.insert(command.argv.end(), words.begin(), words.end());
    command.cwd = folder;
    command.env = std::move(env);
    const Duration left = limits_.time - took_;
    const ProcessResult result = launcher_.launch(command, std::max<Duration>(left, Duration(1)));
    took_ += result.duration;
    const std::string said = result.output.text();
    std::ofstream(log_path_, std::ios::app) << "$ " << shell_join(words) << "\n" << said;
    if (result.end == ProcessResult::End::exited && result.code == 0) return {};
    return failed(words, result, said);
  }

  Error failed(const std::vector<std::string>& words, const ProcessResult& result,
               const std::string& said) const {
    if (result.end == ProcessResult::End::cancelled) return internal_error("stopped");
    std::string what = "the build failed";
    if (result.end == ProcessResult::End::timed_out)
      what = fmt::format("the build took longer than {}", format_duration(limits_.time));
    else if (result.end == ProcessResult::End::not_started)
      what = "the build could not be started: " + result.error;
    else if (result.end == ProcessResult::End::signalled)
      what = "the build died of " + signal_name(result.code);
    if (const std::string lines = last_lines(said); !lines.empty()) what += "\n" + lines;
    return usage_error(what, printable(shell_join(words)));
  }

  static std::string last_lines(const std::string& said) {
    std::vector<std::string_view> lines = split_lines(said);
    std::erase_if(lines, [](std::string_view line) { return trim(line).empty(); });
    std::string text;
    const size_t first = lines.size() - std::min(lines.size(), most_shown_lines);
    for (size_t i = first; i < lines.size(); ++i)
      text += (i > first ? "\n" : "") + ("  | " + printable(shorten(lines[i], 400)));
    return text;
  }

  // Of `build/bin/test`, what a command puts into the folder is `bin/test`, or the file alone.
  std::vector<std::string> places() const {
    const std::string& name = recipe_.executable;
    std::vector<std::string> all = {folder_ + "/" + name, source_ + "/" + name};
    for (size_t slash = name.find('/'); slash != std::string::npos;
         slash = name.find('/', slash + 1))
      all.push_back(folder_ + name.substr(slash));
    return all;
  }

  Result<Built> found() const {
    Built built{copy_, folder_, folder_, took_};
    if (recipe_.executable.empty()) return built;
    for (const std::string& path : places())
      if (is_there(path)) {
        built.target = path;
        return built;
      }
    return usage_error("the build did not make " + printable(recipe_.executable),
                       printable(folder_),
                       recipe_.system == System::command
                           ? "the command must put it into $UNFLAKE_BUILD, or where it is in the "
                             "sources"
                           : "say how it is built with --build 'COMMAND'");
  }

  const BuildRecipe& recipe_;
  const BuildLimits limits_;
  Launcher& launcher_;
  const std::string root_, copy_, folder_, log_path_;
  std::string source_;
  Duration took_{};
};

}  // namespace

std::string_view to_string(BuildRecipe::System system) {
  switch (system) {
    case System::cmake:
      return "CMake";
    case System::meson:
      return "Meson";
    case System::make:
      return "make";
    case System::command:
      return "the command that was given";
  }
  return "?";
}

std::vector<Setting> read_cmake_cache(std::string_view text) {
  std::vector<Setting> settings;
  for (Setting& entry : all_entries(text)) {
    if (entry.type == "INTERNAL" || entry.type == "STATIC") continue;
    if (entry.value.ends_with("-NOTFOUND")) continue;  // it may be found now
    if (entry.name.starts_with("FETCHCONTENT_SOURCE_DIR_") && entry.value.empty()) continue;
    if (entry.type == "UNINITIALIZED") entry.type = "STRING";
    settings.push_back(std::move(entry));
  }
  return settings;
}

Result<BuildRecipe> find_recipe(const std::string& where, const std::string& command,
                                const std::string& project_root) {
  std::error_code failed;
  const std::string target = fs::weakly_canonical(where, failed).string();
  const std::string folder = is_folder(target) ? target : fs::path(target).parent_path().string();
  if (!command.empty()) {
    BuildRecipe recipe;
    recipe.system = System::command;
    recipe.command = command;
    recipe.sources = project_root;
    recipe.build = project_root;
    const std::string below = path_below(target, project_root);
    if (!is_folder(target)) recipe.executable = below.empty() ? base_name(target) : below;
    return recipe;
  }
  auto recipe = recipe_of(folder, fs::weakly_canonical(project_root, failed).string());
  if (recipe && !is_folder(target)) recipe->executable = path_below(target, recipe->build);
  return recipe;
}

Result<Built> Builder::operator()(const std::string& root, const std::string& source,
                                  const std::string& folder) const {
  return Building(recipe_, limits_, launcher_, root, source, folder)();
}

Result<void> Builder::compile_commands(const std::string& folder) const {
  return Building(recipe_, limits_, launcher_, recipe_.sources, recipe_.sources, folder)
      .compile_commands();
}

}  // namespace unflake
