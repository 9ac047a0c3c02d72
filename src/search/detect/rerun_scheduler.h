#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace unflake {

// How often tests fail, as far as it matters for finding the flaky ones: never, in one of these
// shares of runs, always.
inline constexpr std::array<double, 21> rate_levels{
    0,   0.0001, 0.0002, 0.0004, 0.0008, 0.0016, 0.003, 0.006, 0.012, 0.025, 0.05,
    0.1, 0.2,    0.35,   0.5,    0.65,   0.8,    0.9,   0.97,  0.995, 1};
using RateWeights = std::array<double, rate_levels.size()>;

// A test whose failure rate is known.
struct RatedTest {
  double rate = 0;
  double seconds = 0;
};

// What is believed of a test before it has run, and how soon that gives way to what is seen of the
// tests beside it.
struct RerunPrior {
  RateWeights weights{};  // adds up to 1; of a test that takes a tenth of a second
  // How many tests the belief is worth against those of the project, and what a wider circle of
  // neighbours is worth against a narrower one.
  double project_worth = 20;
  double circle_worth = 3;
  // The share of tests that do not go with their neighbours, at each circle. However sound those
  // are, so much of the wider circle's belief stays.
  double loners = 0.3;
  // Long tests are flaky more often: by this power of their length the odds grow.
  double odds_by_length = 0.5;

  // For projects of which nothing is known.
  static RerunPrior usual();
  // As the tests of other projects have it.
  static RerunPrior learned(const std::vector<std::vector<RatedTest>>& projects);
};

// A test that may be run again.
struct RerunCandidate {
  std::string name;
  double seconds = 0;  // of a run; 0: not known yet
  // How much more likely than others it is to be flaky, as a factor of the odds: its functions
  // hint at that, or its code has changed.
  double suspicion = 1;
  int64_t passes = 0, failures = 0;  // of earlier runs of the same code
};

enum class RerunPolicy {
  likeliest,       // most detections expected in a second
  round_robin,     // each in turn: rerunning everything
  size_threshold,  // each in turn, but of the long ones only the suspects (thesis 5.5.2)
};

struct RerunOptions {
  RerunPolicy policy = RerunPolicy::likeliest;
  // A test that only passed is left alone when more than this rate is ruled out at 95 %.
  double good_enough = 0.003;
  double size_threshold = 0.004;  // seconds; longer tests are large
};

// The circles of neighbours that a test's name shows, wide ones first: "net.Client#connects" is in
// net and in net.Client, "Client.Connects/3" in Client and Client.Connects. Tests of one class,
// suite or file share fixtures, helpers and habits, and flake together.
std::vector<std::string> circles_of(std::string_view name);

// Which test to run next, so that as many flaky tests as possible are seen to both pass and fail in
// a given time. Every test has a belief, a weight for each level of failure rate; it follows from
// its own runs and from what its neighbours' runs have shown (partial pooling: a circle's mean
// gives way to what is seen in the circle, a project's to what is seen in the project). A test's
// chance of being unveiled by the next run never grows while it shows nothing new, so the one with
// the highest chance per second is the best choice, as Gittins showed.
class RerunScheduler {
 public:
  RerunScheduler(const std::vector<RerunCandidate>& tests, const RerunPrior& prior,
                 const RerunOptions& options = {});

  // The best test to run now, or the best that takes no more than `most_seconds`; none: nothing is
  // left that is worth a run.
  std::optional<size_t> next(double most_seconds = 1e300);
  // Its expected detections per second.
  double worth_of(size_t test) const { return index_of(test); }

  void add(size_t test, bool failed, double seconds);
  // So many times as likely to be flaky as was believed.
  void suspect(size_t test, double times);
  // It cannot be run, or need not be.
  void leave(size_t test);

  bool is_unveiled(size_t test) const;
  bool is_done(size_t test) const;
  int64_t passes(size_t test) const { return tests_[test].passes; }
  int64_t failures(size_t test) const { return tests_[test].failures; }
  double seconds(size_t test) const { return tests_[test].seconds; }
  // How likely it is to be flaky, by all that was seen.
  double chance_flaky(size_t test) const;
  // That the next run shows what no run has shown.
  double chance_unveiled_next(size_t test) const;

 private:
  struct Circle {
    std::vector<size_t> tests;
    RateWeights seen{};  // the sum of their beliefs
    double count = 0;
  };
  struct Known {
    std::vector<size_t> circles;  // the project first
    double suspicion = 1;
    double seconds = 0;
    int64_t passes = 0, failures = 0;
    int64_t runs_here = 0;
    bool left = false;
    RateWeights belief{};
    RateWeights shared{};  // what it tells its neighbours: the same without its own suspicion
    bool counts = false;   // its belief is part of its circles
    double index = 0;      // by which it is ranked; older entries are void
  };
  struct Ranked {
    double index = 0;
    size_t test = 0;
    bool operator<(const Ranked& other) const {
      return index != other.index ? index < other.index : test > other.test;
    }
  };

  RateWeights prior_of(const Known& test) const;
  double suspicion_of(const Known& test) const;
  RateWeights shared_belief_of(const Known& test) const;
  void learn(size_t test);
  void learn_circle(size_t circle, int sweeps);
  void rank(size_t test);
  void rank_all();
  double index_of(size_t test) const;
  std::optional<size_t> next_in_turn(double most_seconds);

  RerunPrior prior_;
  RerunOptions options_;
  std::vector<Known> tests_;
  std::vector<Circle> circles_;
  std::priority_queue<Ranked> ranked_;
  int64_t runs_ = 0, learned_at_ = 0, runs_enough_ = 0;
  size_t turn_ = 0;
};

// A test that fails at random, as often as its rate says, and always takes as long.
struct SimulatedRuns {
  std::string name;
  double rate = 0;
  double seconds = 0;
};

// The tests of one project, and what is believed of them before the first run.
struct SimulatedProject {
  std::vector<SimulatedRuns> tests;
  RerunPrior prior;
  bool lengths_known = false;  // before the first run
};

// When tests were seen to both pass and fail, in seconds from the start, by runs that a scheduler
// chooses. Several projects share the clock: the next run is the most promising one of all.
std::vector<double> simulate_reruns(const std::vector<const SimulatedProject*>& projects,
                                    const RerunOptions& options, double until_seconds,
                                    uint64_t seed);

}  // namespace unflake
