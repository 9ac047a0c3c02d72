#include "search/detect/commit_bisection.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace unflake {
namespace {

using Answer = CommitLook::Answer;

class CommitBisectionSearch {
 public:
  explicit CommitBisectionSearch(const BisectedBuilds& builds)
      : builds_(builds), states_(builds.commits, State::unknown) {}

  CommitBisection operator()() {
    bad_ = builds_.commits - 1;
    if (!look(bad_, true)) return ended(CommitBisection::Answer::unfinished);
    if (states_[bad_] != State::fails) return ended(CommitBisection::Answer::never_fails);
    if (!look(0, false)) return ended(CommitBisection::Answer::unfinished);
    if (states_[0] == State::fails) return ended(CommitBisection::Answer::fails_before);
    while (true) {
      narrow();
      const auto next = untried_nearest_to_middle();
      if (!next && states_[good_] == State::surely_holds) break;
      if (!look(next.value_or(good_), !next)) return ended(CommitBisection::Answer::unfinished);
      if (states_[0] == State::fails) return ended(CommitBisection::Answer::fails_before);
    }
    return ended(bad_ == good_ + 1 ? CommitBisection::Answer::found
                                   : CommitBisection::Answer::several);
  }

 private:
  enum class State { unknown, holds, surely_holds, fails, untold };

  // False: it could not be made.
  bool look(size_t commit, bool thoroughly) {
    if (builds_.has_ended()) return false;
    CommitBisection::Step step{commit, thoroughly, builds_.look(commit, thoroughly)};
    const bool was_stopped = builds_.has_ended() && step.look.answer != Answer::fails;
    if (step.look.answer == Answer::fails)
      states_[commit] = State::fails;
    else if (step.look.answer == Answer::untold && commit > 0)
      states_[commit] = State::untold;
    else if (step.look.answer == Answer::untold)
      states_[commit] = State::surely_holds;  // the user has named it
    else
      states_[commit] = thoroughly ? State::surely_holds : State::holds;
    builds_.tell(step);
    result_.steps.push_back(std::move(step));
    return !was_stopped;
  }

  // A failure is certain, so the first one bounds the search; what held after it was chance.
  void narrow() {
    bad_ = static_cast<size_t>(std::ranges::find(states_, State::fails) - states_.begin());
    for (good_ = bad_ - 1; good_ > 0; --good_)
      if (states_[good_] == State::holds || states_[good_] == State::surely_holds) break;
  }

  std::optional<size_t> untried_nearest_to_middle() const {
    const auto distance = [&](size_t commit) {
      return std::llabs(2 * static_cast<long long>(commit) - static_cast<long long>(good_ + bad_));
    };
    std::optional<size_t> best;
    for (size_t commit = good_ + 1; commit < bad_; ++commit)
      if (states_[commit] == State::unknown && (!best || distance(commit) < distance(*best)))
        best = commit;
    return best;
  }

  CommitBisection ended(CommitBisection::Answer answer) {
    result_.answer = answer;
    result_.last_holding = good_;
    result_.first_failing = bad_;
    return std::move(result_);
  }

  const BisectedBuilds& builds_;
  std::vector<State> states_;
  size_t good_ = 0, bad_ = 0;
  CommitBisection result_;
};

}  // namespace

CommitBisection find_first_failing(const BisectedBuilds& builds) {
  return CommitBisectionSearch(builds)();
}

int runs_that_tell(const Count& failures, double error) {
  // Laplace's rule: what was seen in 5 of 5 runs may still be missed now and then.
  const double rate = (failures.hits + 1.0) / (failures.runs + 2.0);
  return std::max(1, static_cast<int>(std::ceil(std::log(error) / std::log(1 - rate))));
}

}  // namespace unflake
