#pragma once

#include <string>
#include <vector>

#include "app/project.h"
#include "model/events.h"
#include "model/repair.h"
#include "run/executor.h"
#include "search/session/session.h"
#include "symbols/project_code.h"

namespace unflake {

// Orders that are kept while tests run, without touching any source: the files of `unflake repair`.
// Such runs are trials, and whoever sees their results is told so.
class Enforcement : public Consumer {
 public:
  // Gives the plan of a fix to the test that it is for, with its places in the program as it is
  // now. An error when the test is not among those that are to run, or a place is gone.
  Result<void> add(const Project& project, const std::string& file, const ProjectCodeRules& rules,
                   std::vector<PlannedTest>& tests, Executor& executor);

  void on(const Event& event) override;

  // What to say before the session, and how often somebody had to wait after it.
  const std::vector<Note>& before() const { return before_; }
  std::vector<Note> after() const;

 private:
  struct Enforced {
    TestId test;
    std::string file;
    size_t runs = 0, waiting_runs = 0;
    uint64_t waits = 0, let_go = 0, impossible = 0;
    Duration waited{};
  };
  void count(Enforced& enforced, const RunEnded& run) const;

  std::vector<Enforced> all_;
  std::vector<Note> before_;
};

}  // namespace unflake
