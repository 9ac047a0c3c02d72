#pragma once

#include <functional>
#include <memory>

#include "balance_results.h"
#include "truth.h"
#include "util/result.h"
#include "util/time.h"

namespace unflake {
class OneTest;
struct Trace;
}  // namespace unflake

namespace unflake::eval {

enum class Machine { idle, busy, one_core };

// What becomes of the times that a site asks for: where they are computed, all of them change
// alike.
struct SetTime {
  std::string site;
  Duration now{}, then{};
};
using SetTimes = std::vector<SetTime>;

// Runs one test again and again, with time values set.
class Rerunning {
 public:
  static Result<Rerunning> of(const TestWords& words, const std::string& config);
  Rerunning(Rerunning&&) noexcept;
  ~Rerunning();

  // At most so many runs; fewer when what was seen is enough.
  using IsEnough = std::function<bool(const Rerun&)>;
  Result<Rerun> run(const SetTimes& times, int most, const IsEnough& is_enough,
                    Machine machine = Machine::idle);

 private:
  explicit Rerunning(std::unique_ptr<OneTest> one);

  std::unique_ptr<OneTest> one_;
  std::shared_ptr<const Trace> known_;  // of a run with the test's own values
};

}  // namespace unflake::eval
