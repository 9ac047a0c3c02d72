#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include "model/trace.h"
#include "symbols/project_code.h"

namespace unflake {

// Where a function of project code begins; the file as sites name it.
struct FunctionPlace {
  std::string file;
  int line = 0;
};

// By qualified name, without parameters; overloads and instances have the same.
using FunctionPlaces = std::multimap<std::string, FunctionPlace>;

// A line that has its own code, and the function that it is in.
struct CodeLine {
  int line = 0;
  std::string function;
  std::set<std::string> inlined_into{};  // functions; some of them where there are many
  // Where every copy of this line shares its first instruction with one that leads to it, the
  // functions of those: of a call that was inlined, the line of the call.
  std::set<std::string> hidden_in{};
  // All that have code of their own there: a lambda's may be on the line of what it is passed to.
  std::set<std::string> functions{};
};

// What can be asked about the current program. An image is named as in SiteName.
struct CodeView {
  using Lines = std::vector<std::string>;
  // A file's text by its name or path; empty when it cannot be read.
  std::function<const Lines&(const std::string& file)> source;
  std::function<const FunctionPlaces&(const std::string& image)> functions;
  std::function<std::vector<CodeLine>(const std::string& image, const std::string& file)> lines;
  // The line of an instruction, in the first frame of project code; nothing when it is not there.
  std::function<std::optional<CodeSpot>(const SiteName& instruction)> instruction;
};

// The code of the project's images that a run has shown, and its sources where they are on this
// machine. Each is read when first asked for, and kept.
CodeView program_code(const Trace& trace, const ProjectCodeRules& rules);

}  // namespace unflake
