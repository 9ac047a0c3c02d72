#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/executed.h"
#include "model/trace.h"

namespace unflake {

// What differs from a revision: the lines of each file, as it is now, and files that are new. Paths
// are relative to the repository's root.
struct EditedCode {
  std::map<std::string, std::vector<int>> lines;
  std::set<std::string> new_files;
};

struct TouchedFunction {
  FunctionId function;
  std::string file;        // that was edited
  std::vector<int> lines;  // of it, in the function; empty: only the file is known
};

// The functions of project code that a run executed and an edit touched: in one of its lines, or
// between two of them, as in a statement of several lines. Of a function whose lines are not known,
// because there is no debug information or the trace is from a history, the file decides.
std::vector<TouchedFunction> touched_functions(std::span<const TracedFunction> executed,
                                               const EditedCode& edited);
std::vector<TouchedFunction> touched_functions(std::span<const FunctionId> executed,
                                               const EditedCode& edited);

}  // namespace unflake
