#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/executed.h"
#include "model/plan.h"
#include "model/trace.h"

namespace unflake {

// A function whose execution hints that a test may be flaky, and the root cause that it hints at.
struct CharacteristicFunction {
  std::string cause;  // "async wait"
  FunctionKind kind = FunctionKind::call;
  std::string name;           // or a glob over names
  std::string evidence = "";  // that it was learned from, in words; empty: somebody has chosen it
};

using CharacteristicSet = std::vector<CharacteristicFunction>;

// What a run has to trace for such a set: the functions of the project, what it calls, and what the
// set names of libraries' own code. Nothing else is recorded, so that it costs next to nothing.
Plan tracing_plan(const CharacteristicSet& set);

// By cause, in order.
std::vector<Exposure> exposures(const CharacteristicSet& set, std::span<const FunctionId> executed);

// The same for many tests at once, each function looked at once.
std::vector<std::vector<Exposure>> exposures(const CharacteristicSet& set,
                                             const FunctionTraces& traces);

// A test of which it is known whether it is flaky.
struct KnownTest {
  std::vector<Exposure> exposed;
  bool is_flaky = false;
};

// What exposure says about a test. Each test counts for one root cause: of those that it is exposed
// to, the one that sets flaky tests apart best. So nothing is counted twice, and the likelihood
// ratios of all classes belong together. They are learned from tests of the same project; where
// there are few, what was published for other projects counts as much as `published_flaky` tests.
class ExposurePrior {
 public:
  static constexpr double published_flaky = 5, published_sound = 20;

  explicit ExposurePrior(std::span<const KnownTest> known);

  struct Evidence {
    std::string cause;             // empty: exposed to none
    double likelihood_ratio = 1;   // P(such a test | flaky) / P(such a test | not flaky)
    int64_t flaky = 0, sound = 0;  // known tests that are like it
  };
  Evidence of(const std::vector<Exposure>& exposed) const;

  int64_t flaky() const { return flaky_; }
  int64_t sound() const { return sound_; }

 private:
  struct Counts {
    int64_t flaky = 0, sound = 0;
  };
  double ratio(const Counts& counts, double published_share_of_flaky,
               double published_share_of_sound) const;
  const std::string& decisive(const std::vector<Exposure>& exposed) const;

  int64_t flaky_ = 0, sound_ = 0;
  std::map<std::string, double> strength_;  // of a cause alone, by which they are ordered
  std::map<std::string, Counts> classes_;   // by decisive cause; "": exposed to none
};

// A chance of being flaky, in the light of evidence.
double updated(double chance, double likelihood_ratio);

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
