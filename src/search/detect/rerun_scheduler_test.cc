#include "search/detect/rerun_scheduler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <numeric>
#include <random>

#include "stats/rates.h"

namespace unflake {
namespace {

using testing::ElementsAre;

// A suite whose truth is known: each test fails at random, as often as its rate says.
class SimulatedSuite {
 public:
  struct Test {
    std::string name;
    double rate = 0;
    double seconds = 1;
  };

  SimulatedSuite(std::vector<Test> tests, uint64_t seed)
      : tests_(std::move(tests)), random_(seed) {}

  std::vector<RerunCandidate> candidates() const {
    std::vector<RerunCandidate> all;
    for (const Test& test : tests_) all.push_back({test.name, test.seconds});
    return all;
  }
  // Runs until the time is over or nothing is worth a run; says when each was unveiled.
  std::vector<double> run(RerunScheduler& scheduler, double time) {
    std::vector<double> unveiled;
    for (double now = 0; now < time;) {
      const auto next = scheduler.next(time - now);
      if (!next) break;
      const Test& test = tests_[*next];
      const bool fails = std::uniform_real_distribution<double>(0, 1)(random_) < test.rate;
      now += test.seconds;
      ++runs_[*next];
      scheduler.add(*next, fails, test.seconds);
      if (scheduler.is_unveiled(*next)) unveiled.push_back(now);
    }
    return unveiled;
  }
  int runs_of(size_t test) const { return runs_.contains(test) ? runs_.at(test) : 0; }
  const std::vector<Test>& tests() const { return tests_; }

 private:
  std::vector<Test> tests_;
  std::mt19937_64 random_;
  std::map<size_t, int> runs_;
};

// Twenty suites of ten tests; those of two suites are flaky.
std::vector<SimulatedSuite::Test> clustered() {
  std::vector<SimulatedSuite::Test> tests;
  for (int suite = 0; suite < 20; ++suite)
    for (int i = 0; i < 10; ++i)
      tests.push_back({fmt::format("Suite{}.Case{}", suite, i), suite < 2 ? 0.02 : 0, 1});
  return tests;
}

double time_until(const std::vector<double>& found, size_t wanted) {
  return wanted <= found.size() ? found[wanted - 1] : 1e9;
}

TEST(RerunScheduler, only_tests_that_both_passed_and_failed_are_unveiled) {
  auto tests = clustered();
  for (size_t i = 0; i < tests.size(); i += 7) tests[i].rate = 1;  // broken, and not flaky
  SimulatedSuite suite(tests, 3);
  RerunScheduler scheduler(suite.candidates(), RerunPrior::usual());
  suite.run(scheduler, 20'000);
  for (size_t i = 0; i < tests.size(); ++i)
    if (scheduler.is_unveiled(i)) {
      EXPECT_TRUE(tests[i].rate > 0 && tests[i].rate < 1) << tests[i].name;
    }
}

TEST(RerunScheduler, finds_flaky_neighbours_in_a_fraction_of_the_time_that_rerunning_all_takes) {
  double clever = 0, all = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed)
    for (const RerunPolicy policy : {RerunPolicy::likeliest, RerunPolicy::round_robin}) {
      SimulatedSuite suite(clustered(), seed);
      RerunOptions options;
      options.policy = policy;
      RerunScheduler scheduler(suite.candidates(), RerunPrior::usual(), options);
      const auto found = suite.run(scheduler, 60'000);
      (policy == RerunPolicy::likeliest ? clever : all) += time_until(found, 19);
    }
  EXPECT_LT(clever, 0.5 * all);
}

TEST(RerunScheduler, prefers_the_short_test_among_equals) {
  RerunScheduler scheduler({{"A.Long", 10}, {"B.Short", 0.1}}, RerunPrior::usual());
  EXPECT_EQ(scheduler.next(), 1u);
}

TEST(RerunScheduler, prefers_the_suspect_among_equals) {
  RerunScheduler scheduler({{"A.One", 1}, {"B.Two", 1, 5.0}}, RerunPrior::usual());
  EXPECT_EQ(scheduler.next(), 1u);
  EXPECT_GT(scheduler.chance_flaky(1), scheduler.chance_flaky(0));
}

TEST(RerunScheduler, runs_a_test_of_unknown_length_first) {
  RerunScheduler scheduler({{"A.Known", 0.001}, {"B.New", 0}}, RerunPrior::usual());
  EXPECT_EQ(scheduler.next(), 1u);
}

TEST(RerunScheduler, a_failing_test_makes_its_neighbours_suspect) {
  std::vector<RerunCandidate> tests;
  for (int i = 0; i < 5; ++i) tests.push_back({fmt::format("Loud.Case{}", i), 1});
  for (int i = 0; i < 5; ++i) tests.push_back({fmt::format("Calm.Case{}", i), 1});
  RerunScheduler scheduler(tests, RerunPrior::usual());
  for (size_t i = 0; i < tests.size(); ++i) scheduler.add(i, false, 1);
  scheduler.add(0, true, 1);
  EXPECT_GT(scheduler.chance_flaky(1), 2 * scheduler.chance_flaky(6));
  EXPECT_LT(scheduler.next().value(), 5u);
}

TEST(RerunScheduler, sound_neighbours_never_rule_a_test_out) {
  std::vector<RerunCandidate> tests;
  for (int i = 0; i < 200; ++i) tests.push_back({fmt::format("Calm.Case{}", i), 1});
  RerunScheduler scheduler(tests, RerunPrior::usual());
  const double before = scheduler.chance_flaky(0);
  for (size_t i = 1; i < tests.size(); ++i)
    for (int run = 0; run < 300; ++run) scheduler.add(i, false, 1);
  EXPECT_LT(scheduler.chance_flaky(0), before);
  EXPECT_GT(scheduler.chance_flaky(0), before * 0.01);
}

TEST(RerunScheduler, stops_with_a_test_when_enough_is_known_of_it) {
  SimulatedSuite suite({{"A.Sound", 0, 1}, {"A.Flaky", 0.5, 1}}, 5);
  RerunOptions options;
  options.good_enough = 0.01;
  RerunScheduler scheduler(suite.candidates(), RerunPrior::usual(), options);
  suite.run(scheduler, 1e9);
  EXPECT_EQ(suite.runs_of(0), 299);  // 0.99^299 < 5 %
  EXPECT_TRUE(scheduler.is_unveiled(1));
  EXPECT_FALSE(scheduler.next());
}

TEST(RerunScheduler, starts_nothing_that_there_is_no_time_for) {
  RerunScheduler scheduler({{"A.Hour", 3600}, {"A.Short", 1}}, RerunPrior::usual());
  EXPECT_EQ(scheduler.next(2), 1u);
  EXPECT_EQ(scheduler.next(0.5), std::nullopt);
}

TEST(RerunScheduler, an_hour_long_test_does_not_starve_the_others) {
  auto tests = clustered();
  tests.push_back({"Suite0.Hour", 0.5, 3600});
  SimulatedSuite suite(tests, 9);
  RerunScheduler scheduler(suite.candidates(), RerunPrior::usual());
  const auto found = suite.run(scheduler, 36'000);
  EXPECT_LT(suite.runs_of(tests.size() - 1), 6);
  EXPECT_GE(found.size(), 19u);
}

TEST(RerunScheduler, leaves_what_cannot_be_run) {
  RerunScheduler scheduler({{"A.Broken", 1}}, RerunPrior::usual());
  scheduler.leave(0);
  EXPECT_EQ(scheduler.next(), std::nullopt);
}

TEST(RerunScheduler, counts_what_earlier_runs_have_shown) {
  RerunScheduler scheduler({{"A.Known", 1, 1, 500, 0}, {"B.New", 1}}, RerunPrior::usual());
  EXPECT_EQ(scheduler.next(), 1u);
  EXPECT_LT(scheduler.chance_flaky(0), scheduler.chance_flaky(1));
}

TEST(RerunScheduler, takes_tests_in_turn_when_asked_to) {
  RerunOptions options;
  options.policy = RerunPolicy::round_robin;
  RerunScheduler scheduler({{"A", 9}, {"B", 1}, {"C", 1}}, RerunPrior::usual(), options);
  std::vector<size_t> order;
  for (int i = 0; i < 5; ++i) {
    order.push_back(*scheduler.next());
    scheduler.add(order.back(), false, 1);
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 0, 1));
}

TEST(RerunScheduler, of_long_tests_reruns_only_suspects_by_size_threshold) {
  RerunOptions options;
  options.policy = RerunPolicy::size_threshold;
  RerunScheduler scheduler({{"A.Long", 1}, {"B.Suspect", 1, 2.0}, {"C.Short", 0.001}},
                           RerunPrior::usual(), options);
  std::vector<int> runs(3);
  for (int i = 0; i < 9; ++i) {
    const size_t next = *scheduler.next();
    ++runs[next];
    scheduler.add(next, false, next == 2 ? 0.001 : 1);
  }
  EXPECT_THAT(runs, ElementsAre(1, 4, 4));
}

TEST(RerunScheduler, has_nothing_to_do_without_tests) {
  for (const RerunPolicy policy : {RerunPolicy::likeliest, RerunPolicy::round_robin}) {
    RerunOptions options;
    options.policy = policy;
    EXPECT_EQ(RerunScheduler({}, RerunPrior::usual(), options).next(), std::nullopt);
  }
}

TEST(Circles, are_read_off_names) {
  EXPECT_THAT(circles_of("net.Client#connects"), ElementsAre("net", "net.Client"));
  EXPECT_THAT(circles_of("all:Client.Connects/3"),
              ElementsAre("all:Client", "all:Client.Connects"));
  EXPECT_THAT(circles_of("net::Client::connects"), ElementsAre("net", "net::Client"));
  EXPECT_THAT(circles_of("connects"), ElementsAre());
  EXPECT_THAT(circles_of(""), ElementsAre());
  EXPECT_THAT(circles_of("::"), ElementsAre());
  EXPECT_THAT(circles_of("."), ElementsAre());
}

TEST(RerunPrior, adds_up_to_one_and_learns_that_long_tests_are_flaky) {
  std::vector<RatedTest> tests;
  for (int i = 0; i < 1000; ++i) {
    const bool is_long = i % 2 == 0;
    tests.push_back({i % 100 < (is_long ? 40 : 2) ? 0.01 : 0, is_long ? 10 : 0.01});
  }
  const RerunPrior prior = RerunPrior::learned({tests});
  EXPECT_NEAR(std::accumulate(prior.weights.begin(), prior.weights.end(), 0.0), 1, 1e-9);
  EXPECT_GT(prior.odds_by_length, 0.2);
  const RateWeights usual = RerunPrior::usual().weights;
  EXPECT_NEAR(std::accumulate(usual.begin(), usual.end(), 0.0), 1, 1e-9);
}

TEST(RerunPrior, without_projects_is_the_usual_one) {
  const RerunPrior learned = RerunPrior::learned({});
  EXPECT_NEAR(learned.weights[0], RerunPrior::usual().weights[0], 1e-6);
  EXPECT_NEAR(learned.odds_by_length, RerunPrior::usual().odds_by_length, 1e-6);
}

}  // namespace
}  // namespace unflake
