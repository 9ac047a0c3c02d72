#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/project.h"
#include "suite/adapter.h"

namespace unflake {

// The lines of each file, as it is now, that an edit put there or cut something after. Blank
// lines and comments are left out: they are between tests and change none.
using ChangedLines = std::map<std::string, std::vector<int>>;

// What `git diff -U0` says.
ChangedLines read_diff(std::string_view diff);

struct Changes {
  std::string root;  // of the repository
  ChangedLines lines;
  std::set<std::string> new_files;  // that git does not know yet
};

// Everything that differs from where this work tree left `revision`.
Result<Changes> changes_since(const std::string& revision, const Project& project,
                              Launcher& launcher);

struct ChangedTests {
  std::set<TestId> changed;    // their lines, or their file where the suite gives no lines
  std::set<TestId> undecided;  // it is not known where they are written
};

// A test reaches from its line to the next test in its file.
ChangedTests changed_tests(const std::vector<std::shared_ptr<const Test>>& tests,
                           const Changes& changes);

}  // namespace unflake
