#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/agent_command.h"
#include "model/detect_report.h"
#include "rebuild/build_recipe.h"
#include "rebuild/source_copy.h"
#include "search/reproduce/hunt.h"

namespace unflake {

struct BisectingOptions {
  std::string from, to;  // revisions: the test holds at the one and fails at the other
  std::string build_command;
  BuildLimits build;
  Duration budget{std::chrono::minutes(30)};
  HuntOptions hunt;
  OneTestOptions one;
};

// Which commit introduced a failure of a test that does not come in every run. Each build that the
// search visits is made in a copy of the sources. At the bad end the failure is hunted for; in
// every other build what was found there is done again, so that few runs tell.
class Bisecting {
 public:
  using Tell = std::function<void(const std::string& line)>;
  // `one` is the test as it is built now.
  Bisecting(OneTest& one, BisectingOptions options, Tell tell);

  Result<BisectReport> operator()();

  // Whoever runs a test takes the signal: the test as it is now, or that of a build.
  int stop_signal() const;

 private:
  bool has_ended() const;
  Result<void> prepare();
  Result<Built> build(size_t commit);
  Result<Built> make(size_t commit, bool again);
  std::string code_root() const;
  CommitLook look(size_t commit, bool thoroughly);
  void look_at(OneTest& one, size_t commit, bool thoroughly, CommitLook& look);
  void look_at_bad_end(OneTest& one, CommitLook& look);
  void hunt(OneTest& one, CommitLook& look);
  static void find_a_way(Hunt& hunt);
  void rerun(OneTest& one, CommitLook& look);
  void look_under_plan(OneTest& one, bool thoroughly, CommitLook& look);
  void look_under_schedules(OneTest& one, int most, const CodeView& code, CommitLook& look);
  void look_plainly(OneTest& one, bool thoroughly, CommitLook& look);
  std::optional<ExperimentResult> run(OneTest& one, const Trial& trial, CommitLook& look);
  std::optional<ExperimentResult> run_plain(OneTest& one, CommitLook& look);
  void take(const Outcome& outcome, const CodeView& code, CommitLook& look) const;
  static void conclude(CommitLook& look, const std::string& what);
  Duration lateness() const;
  void tell_step(const CommitBisection::Step& step) const;

  OneTest& now_;
  const OneTest* looked_at_ = nullptr;
  int stopped_by_ = 0;
  BisectingOptions options_;
  const Tell tell_;
  const Budget budget_;
  BuildRecipe recipe_;
  Sources tree_;
  std::optional<WorkFolder> work_;
  std::string build_folder_;
  Repro repro_;  // the test, and once it was found the plan under which it fails
  BisectReport report_;
  std::optional<Error> error_;
};

}  // namespace unflake
