#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "suite/adapter.h"
#include "util/result.h"

namespace unflake {

// The absolute path of the program that a shell would start for `word`.
Result<std::string> find_program(const std::string& word);

// Without `.` and `..`; left as it is where the current folder is gone.
std::string absolute_path(const std::string& path);

// A case as a framework lists it, before it becomes a test.
struct ListedCase {
  std::string suite;
  std::string name;
  std::string file;
  int line = 0;
  bool disabled = false;
  std::vector<std::string> labels;
};

// What is removed from the environment so that a run of one case is exactly that: variables that
// choose, split or repeat tests, or that send the report somewhere else.
std::vector<EnvChange> neutral_environment(Framework framework);

// The target with its own arguments, then `more`.
Command target_command(const Target& target, std::vector<std::string> more);

// Lets a program list its tests. An end other than an exit, and output too long to be kept whole,
// are errors; what an exit status means differs between frameworks.
Result<ProcessResult> ask(const Command& command, const ListOptions& options, Launcher& launcher);

// `what` went wrong, with the last lines of standard error and what to do next.
Error listing_error(const Command& command, const ProcessResult& result, std::string_view what);

// The test that runs `listed` alone by giving `selection` to the target.
Test make_test(const Target& target, const ListedCase& listed, std::string name,
               std::vector<std::string> selection);

// Marks a test whose framework cannot select it without also selecting `other`.
void mark_inseparable(Test& test, std::string_view other);
inline constexpr std::string_view inseparable = "cannot be run alone: ";  // how its reason begins

// Why a test cannot be run in one process with others.
Error cannot_share(const Test& test, std::string_view why);

// Where each of the tests stands in the list. An error when the list does not have it.
Result<std::vector<size_t>> positions_in(const std::vector<const Test*>& listed,
                                         const std::vector<const Test*>& order);

// The tests as they stand in the list; those that it does not have are left out.
std::vector<const Test*> in_listing_order(const std::vector<const Test*>& tests,
                                          const std::vector<const Test*>& listed);

// The words of a test's command from the first that begins so, as its adapter has added them after
// the target's own; and the command with others in their place.
std::vector<std::string> selection_from(const Test& test, std::string_view first);
Command with_selection(const Test& test, std::string_view first, std::vector<std::string> words);

// Some suites permit two tests of the same name: the second becomes `name #2`, in listing order.
void make_ids_unique(std::vector<Test>& tests);

// How a plain command is named in ids: readable, and the same on every machine. Absolute paths
// become relative to the project, or their last part when they are outside of it.
std::string command_name(const std::vector<std::string>& argv, const std::string& project);

}  // namespace unflake
