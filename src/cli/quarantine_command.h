#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/options.h"
#include "lifecycle/quarantine.h"

namespace unflake {

// What every action on the quarantine works with.
struct QuarantineDesk {
  Project project;
  Config config;
  std::string file;
  StoreAddress history;
  TimePoint now;
  Day today;

  // None when there is no history yet.
  Result<std::unique_ptr<Store>> read_history() const;
  // A history that cannot be written does not undo what was done to the file; it is told.
  void note(const std::vector<LifecycleStep>& steps) const;
};

// An action: parses its words with `line`, which knows what the action itself takes, and does its
// work at the desk. Gives the exit code.
int act_at_desk(CommandLine& line, const Words& words,
                const std::function<Result<int>(const QuarantineDesk& desk)>& work);

// The test that a user means by an id, or by a name that only one target has.
Result<TestId> find_test(const std::string& word, Store* store, const Quarantine& quarantine);

// "did you mean ...?" of tests that are in the quarantine or, where there is one, in the history.
std::optional<std::string> similar_tests(const std::string& word, Store* store,
                                         const Quarantine& quarantine);

int quarantine_add(const Words& words);
int quarantine_list(const Words& words);

}  // namespace unflake
