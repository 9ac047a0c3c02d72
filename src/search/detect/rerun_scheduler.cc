#include "search/detect/rerun_scheduler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace unflake {
namespace {

constexpr size_t levels = rate_levels.size();
constexpr size_t most_circles = 2;      // beside the project
constexpr double least_seconds = 1e-4;  // no run is free
constexpr double usual_seconds = 0.1, shortest = 0.001, longest = 30;
constexpr double first_of_all = 1e12;
constexpr int circle_sweeps = 10;
constexpr double learn_again_after = 1.02;  // times as many runs

// Logarithms of what a pass and a failure say of each level. An impossible one is far below all.
struct Logs {
  std::array<double, levels> pass{}, fail{};
  Logs() {
    for (size_t i = 0; i < levels; ++i) {
      pass[i] = rate_levels[i] < 1 ? std::log1p(-rate_levels[i]) : -1e6;
      fail[i] = rate_levels[i] > 0 ? std::log(rate_levels[i]) : -1e6;
    }
  }
};

void scale_to_one(RateWeights& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
}

size_t level_of(double rate) {
  if (rate <= 0) return 0;
  if (rate >= 1) return levels - 1;
  size_t best = 1;
  for (size_t i = 2; i + 1 < levels; ++i)
    if (std::abs(std::log(rate / rate_levels[i])) < std::abs(std::log(rate / rate_levels[best])))
      best = i;
  return best;
}

bool is_flaky_level(size_t level) {
  return level > 0 && level + 1 < levels;
}

double flaky_share(const RateWeights& weights) {
  return 1 - weights.front() - weights.back();
}

// Together; the others keep their proportions.
void give_flaky_levels(RateWeights& weights, double share) {
  const double before = flaky_share(weights);
  for (size_t i = 0; i < levels; ++i)
    weights[i] *= is_flaky_level(i) ? share / before : (1 - share) / (1 - before);
}

double length_of(double seconds) {
  return std::log(std::clamp(seconds, shortest, longest) / usual_seconds);
}

// How the odds of being flaky go with the length of a run: a logistic regression by Newton's
// method, held near the usual slope where the data say little.
class LengthFit {
 public:
  explicit LengthFit(const RerunPrior& before)
      : at_usual_(std::log(flaky_share(before.weights) / (1 - flaky_share(before.weights)))),
        slope_(before.odds_by_length),
        usual_slope_(before.odds_by_length) {}

  void add(const RatedTest& test, double voice) {
    points_.push_back({length_of(test.seconds), is_flaky_level(level_of(test.rate)), voice});
  }
  void find() {
    for (int i = 0; i < 30; ++i) step();
  }
  double slope() const { return slope_; }
  double share_of_usual_length() const { return 1 / (1 + std::exp(-at_usual_)); }

 private:
  struct Point {
    double length = 0;
    bool is_flaky = false;
    double voice = 1;
  };

  void step() {
    constexpr double held = 0.05;  // of a project's voice
    double of_usual = 0, of_slope = held * (usual_slope_ - slope_);
    double a = 1e-9, b = 0, c = held;  // minus the second derivatives
    for (const Point& point : points_) {
      const double share = 1 / (1 + std::exp(-at_usual_ - slope_ * point.length));
      const double miss = point.voice * (point.is_flaky - share);
      const double weight = point.voice * share * (1 - share);
      of_usual += miss;
      of_slope += miss * point.length;
      a += weight;
      b += weight * point.length;
      c += weight * point.length * point.length;
    }
    const double scale = 1 / (a * c - b * b);
    at_usual_ += std::clamp(scale * (c * of_usual - b * of_slope), -1.0, 1.0);
    slope_ += std::clamp(scale * (a * of_slope - b * of_usual), -0.5, 0.5);
  }

  double at_usual_, slope_;
  const double usual_slope_;
  std::vector<Point> points_;
};

}  // namespace

RerunPrior RerunPrior::usual() {
  // Of a hundred tests that take a tenth of a second, one fails always and eight now and then.
  RerunPrior prior;
  prior.weights.fill(0.08 / (levels - 2));
  prior.weights.back() = 0.01;
  prior.weights.front() = 0.91;
  return prior;
}

RerunPrior RerunPrior::learned(const std::vector<std::vector<RatedTest>>& projects) {
  RerunPrior prior = usual();
  const RerunPrior before = prior;
  LengthFit fit(before);
  // A project counts as one voice: a large one would speak for all.
  for (const std::vector<RatedTest>& tests : projects)
    for (const RatedTest& test : tests) {
      const double voice = 1.0 / static_cast<double>(tests.size());
      prior.weights[level_of(test.rate)] += voice;
      fit.add(test, voice);
    }
  scale_to_one(prior.weights);
  fit.find();
  prior.odds_by_length = fit.slope();
  give_flaky_levels(prior.weights, fit.share_of_usual_length());
  return prior;
}

std::vector<std::string> circles_of(std::string_view name) {
  std::vector<std::string> circles;
  for (size_t end = name.size(); circles.size() < most_circles && end > 1;) {
    end = name.find_last_of(".#:/[", end - 1);
    if (end == std::string_view::npos) break;
    while (end > 0 && name[end - 1] == ':') --end;
    if (end > 0) circles.emplace(circles.begin(), name.substr(0, end));
  }
  return circles;
}

RerunScheduler::RerunScheduler(const std::vector<RerunCandidate>& tests, const RerunPrior& prior,
                               const RerunOptions& options)
    : prior_(prior), options_(options), circles_(1) {
  std::map<std::string, size_t> numbers;
  for (const RerunCandidate& test : tests) {
    Known one;
    one.circles.push_back(0);
    for (std::string& circle : circles_of(test.name)) {
      const auto [place, is_new] = numbers.emplace(std::move(circle), circles_.size());
      if (is_new) circles_.emplace_back();
      one.circles.push_back(place->second);
    }
    for (const size_t circle : one.circles) circles_[circle].tests.push_back(tests_.size());
    one.suspicion = test.suspicion;
    one.seconds = test.seconds;
    one.passes = test.passes;
    one.failures = test.failures;
    tests_.push_back(std::move(one));
  }
  const double rate = std::clamp(options.good_enough, 1e-9, 1.0);
  runs_enough_ = static_cast<int64_t>(std::ceil(std::log(0.05) / std::log1p(-rate)));
  learn_circle(0, 1);
  rank_all();
}

RateWeights RerunScheduler::prior_of(const Known& test) const {
  RateWeights mean = prior_.weights;
  double worth = prior_.project_worth;
  for (const size_t number : test.circles) {
    const Circle& circle = circles_[number];
    const double own = test.counts ? 1 : 0;
    const double all = worth + circle.count - own;
    for (size_t i = 0; i < levels; ++i) {
      const double seen = std::max(0.0, circle.seen[i] - own * test.shared[i]);
      mean[i] = prior_.loners * mean[i] + (1 - prior_.loners) * (worth * mean[i] + seen) / all;
    }
    worth = prior_.circle_worth;
  }
  return mean;
}

double RerunScheduler::suspicion_of(const Known& test) const {
  if (test.seconds <= 0) return test.suspicion;
  return test.suspicion * std::pow(std::clamp(test.seconds, shortest, longest) / usual_seconds,
                                   prior_.odds_by_length);
}

RateWeights RerunScheduler::shared_belief_of(const Known& test) const {
  static const Logs logs;
  std::array<double, levels> likelihood{};
  for (size_t i = 0; i < levels; ++i)
    likelihood[i] = static_cast<double>(test.passes) * logs.pass[i] +
                    static_cast<double>(test.failures) * logs.fail[i];
  const double best = *std::max_element(likelihood.begin(), likelihood.end());
  RateWeights belief = prior_of(test);
  for (size_t i = 0; i < levels; ++i) belief[i] *= std::exp(likelihood[i] - best);
  scale_to_one(belief);
  return belief;
}

void RerunScheduler::learn(size_t number) {
  Known& test = tests_[number];
  const RateWeights shared = shared_belief_of(test);
  for (const size_t circle : test.circles) {
    for (size_t i = 0; i < levels; ++i)
      circles_[circle].seen[i] += shared[i] - (test.counts ? test.shared[i] : 0);
    if (!test.counts) ++circles_[circle].count;
  }
  test.shared = test.belief = shared;
  test.counts = true;
  const double suspicion = suspicion_of(test);
  for (size_t i = 0; i < levels; ++i)
    if (is_flaky_level(i)) test.belief[i] *= suspicion;
  scale_to_one(test.belief);
}

void RerunScheduler::learn_circle(size_t circle, int sweeps) {
  for (int i = 0; i < sweeps; ++i)
    for (const size_t test : circles_[circle].tests) learn(test);
}

void RerunScheduler::rank(size_t test) {
  if (is_done(test)) return;
  tests_[test].index = index_of(test);
  ranked_.push({tests_[test].index, test});
}

void RerunScheduler::rank_all() {
  ranked_ = {};
  for (size_t i = 0; i < tests_.size(); ++i) rank(i);
  learned_at_ = runs_;
}

double RerunScheduler::chance_unveiled_next(size_t number) const {
  const Known& test = tests_[number];
  double chance = 0;
  const bool has_passed = test.passes > 0, has_failed = test.failures > 0;
  for (size_t i = 0; i < levels; ++i) {
    const double fail = rate_levels[i], pass = 1 - fail;
    // A test that has not run yet takes two: half of that for each.
    const double news = has_passed && has_failed ? 0
                        : has_passed             ? fail
                        : has_failed             ? pass
                                                 : fail * pass;
    chance += test.belief[i] * news;
  }
  return chance;
}

double RerunScheduler::chance_flaky(size_t number) const {
  double chance = 0;
  for (size_t i = 0; i < levels; ++i)
    if (is_flaky_level(i)) chance += tests_[number].belief[i];
  return chance;
}

double RerunScheduler::index_of(size_t number) const {
  // The first run tells how long it takes, without which nothing can be compared.
  if (tests_[number].seconds <= 0 && tests_[number].runs_here == 0) return first_of_all;
  return chance_unveiled_next(number) / std::max(tests_[number].seconds, least_seconds);
}

bool RerunScheduler::is_unveiled(size_t test) const {
  return tests_[test].passes > 0 && tests_[test].failures > 0;
}

bool RerunScheduler::is_done(size_t number) const {
  const Known& test = tests_[number];
  if (test.left || is_unveiled(number)) return true;
  return test.passes + test.failures >= runs_enough_;
}

void RerunScheduler::leave(size_t test) {
  tests_[test].left = true;
}

void RerunScheduler::suspect(size_t number, double times) {
  tests_[number].suspicion *= times;
  learn(number);
  rank(number);
}

void RerunScheduler::add(size_t number, bool failed, double seconds) {
  Known& test = tests_[number];
  const bool is_news = failed ? test.failures == 0 : test.passes == 0 && test.failures > 0;
  test.seconds = (test.seconds * static_cast<double>(test.runs_here) + seconds) /
                 static_cast<double>(test.runs_here + 1);
  ++test.runs_here;
  ++runs_;
  ++(failed ? test.failures : test.passes);
  learn(number);
  if (is_news)
    for (size_t i = test.circles.size(); i-- > 1;) {
      learn_circle(test.circles[i], circle_sweeps);
      for (const size_t neighbour : circles_[test.circles[i]].tests) rank(neighbour);
    }
  rank(number);
  if (static_cast<double>(runs_) < static_cast<double>(learned_at_) * learn_again_after + 10)
    return;
  learn_circle(0, 1);
  rank_all();
}

std::optional<size_t> RerunScheduler::next(double most_seconds) {
  if (options_.policy != RerunPolicy::likeliest) return next_in_turn(most_seconds);
  while (!ranked_.empty()) {
    const Ranked top = ranked_.top();
    Known& test = tests_[top.test];
    if (is_done(top.test) || test.index != top.index || test.seconds > most_seconds) {
      ranked_.pop();
      continue;
    }
    const double index = index_of(top.test);
    if (index >= top.index * 0.999) return top.test;
    ranked_.pop();
    test.index = index;
    ranked_.push({index, top.test});
  }
  return {};
}

std::optional<size_t> RerunScheduler::next_in_turn(double most_seconds) {
  const auto takes_part = [&](size_t number) {
    const Known& test = tests_[number];
    const bool is_large = test.seconds > options_.size_threshold;
    return !is_done(number) && test.seconds <= most_seconds &&
           (options_.policy == RerunPolicy::round_robin || !is_large || test.suspicion > 1 ||
            test.runs_here == 0);
  };
  for (size_t i = 0; i < tests_.size(); ++i, ++turn_)
    if (takes_part(turn_ % tests_.size())) return turn_++ % tests_.size();
  return {};
}

namespace {

struct RerunChoice {
  size_t project = 0, test = 0;
  double worth = -1;
};

RerunChoice most_promising(std::vector<RerunScheduler>& schedulers) {
  RerunChoice best;
  for (size_t i = 0; i < schedulers.size(); ++i)
    if (const auto test = schedulers[i].next())
      if (const double worth = schedulers[i].worth_of(*test); worth > best.worth)
        best = {i, *test, worth};
  return best;
}

RerunScheduler scheduler_of(const SimulatedProject& project, const RerunOptions& options) {
  std::vector<RerunCandidate> tests;
  for (const SimulatedRuns& test : project.tests)
    tests.push_back({test.name, project.lengths_known ? test.seconds : 0});
  return RerunScheduler(tests, project.prior, options);
}

}  // namespace

std::vector<double> simulate_reruns(const std::vector<const SimulatedProject*>& projects,
                                    const RerunOptions& options, double until_seconds,
                                    uint64_t seed) {
  std::vector<RerunScheduler> schedulers;
  for (const SimulatedProject* project : projects)
    schedulers.push_back(scheduler_of(*project, options));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> any(0, 1);
  std::vector<double> found;
  for (double now = 0; now < until_seconds;) {
    const RerunChoice best = most_promising(schedulers);
    if (best.worth < 0) break;
    const SimulatedRuns& test = projects[best.project]->tests[best.test];
    now += test.seconds;
    schedulers[best.project].add(best.test, any(random) < test.rate, test.seconds);
    if (schedulers[best.project].is_unveiled(best.test)) found.push_back(now);
  }
  return found;
}

}  // namespace unflake
