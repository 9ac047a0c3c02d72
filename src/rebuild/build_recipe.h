#pragma once

#include <string>
#include <vector>

#include "suite/adapter.h"
#include "util/result.h"

namespace unflake {

// How the program under test is built, as far as its build folder and its sources tell.
struct BuildRecipe {
  enum class System { cmake, meson, make, command };
  struct Setting {
    std::string name, type, value;
    bool operator==(const Setting&) const = default;
  };

  System system = System::cmake;
  std::string sources;  // the folder whose files are built; absolute
  std::string build;    // what was built is below it; absolute. Of `make`, a folder of the sources
  std::string executable;         // below `build`; empty: everything is built
  std::string generator;          // of CMake
  std::vector<Setting> settings;  // as they were configured
  std::string command;            // what the user gave
};

std::string_view to_string(BuildRecipe::System system);

// Found by itself from where the program is: an executable, or a CTest build folder. With a
// command, that is how it is built.
Result<BuildRecipe> find_recipe(const std::string& target, const std::string& command,
                                const std::string& project_root);

struct BuildLimits {
  int jobs = 1;
  Duration time{std::chrono::minutes(30)};
};

struct Built {
  std::string source, build;  // folders
  std::string target;         // the executable, or the build folder of a CTest target
  Duration took{};
};

// What a build printed goes to a file beside its folder, and its last lines into the error.
class Builder {
 public:
  Builder(const BuildRecipe& recipe, const BuildLimits& limits, Launcher& launcher)
      : recipe_(recipe), limits_(limits), launcher_(launcher) {}

  // `source` is a copy of the tree at `root`, and `folder` does not exist yet.
  Result<Built> operator()(const std::string& root, const std::string& source,
                           const std::string& folder) const;

  // Lets CMake write what the compiler was called with, into `folder`, which does not exist yet;
  // the build itself stays as it is. An error where something else builds the program.
  Result<void> compile_commands(const std::string& folder) const;

 private:
  const BuildRecipe& recipe_;
  const BuildLimits limits_;
  Launcher& launcher_;
};

// The entries of a CMakeCache.txt that somebody or something has set; those that CMake keeps for
// itself are left out.
std::vector<BuildRecipe::Setting> read_cmake_cache(std::string_view text);

}  // namespace unflake
