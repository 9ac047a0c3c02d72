#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/project.h"
#include "search/detect/characteristic.h"
#include "search/detect/training.h"
#include "util/result.h"

namespace unflake {

// data/characteristic-functions.toml, compiled in.
std::string_view shipped_functions_text();
const CharacteristicSet& shipped_functions();

struct FunctionsFile {
  CharacteristicSet functions;
  bool with_shipped = true;  // they count besides the shipped ones
};
Result<FunctionsFile> parse_functions(std::string_view text, const std::string& path);

// The project's own: written by people, and by `unflake train`.
std::string own_functions_path(const Project& project);
std::string learned_functions_path(const Project& project);

// All that count in a project: those shipped with unflake, its own, and those that it has learned.
Result<CharacteristicSet> load_functions(const Project& project);

// As a file of the same form, with the evidence. `heading` becomes comments.
std::string functions_text(const CharacteristicSet& set, const std::vector<std::string>& heading);

}  // namespace unflake
