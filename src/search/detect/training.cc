#include "search/detect/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <set>

#include "stats/rates.h"

namespace unflake {

// (1 + b^2) TP / ((1 + b^2) TP + b^2 FN + FP)
double f_beta(const ExposedShares& shares, double beta) {
  const auto hits = static_cast<double>(shares.flaky_exposed);
  const auto missed = static_cast<double>(shares.flaky - shares.flaky_exposed);
  const auto wrong = static_cast<double>(shares.exposed - shares.flaky_exposed);
  const double weight = beta * beta, weighted = (1 + weight) * hits;
  return hits > 0 ? weighted / (weighted + weight * missed + wrong) : 0;
}

int64_t TestBits::count() const {
  int64_t sum = 0;
  for (const uint64_t word : words_) sum += std::popcount(word);
  return sum;
}

int64_t TestBits::count_new(const TestBits& among, const TestBits& seen) const {
  int64_t sum = 0;
  for (size_t i = 0; i < words_.size(); ++i)
    sum += std::popcount(words_[i] & among.words_[i] & ~seen.words_[i]);
  return sum;
}

void TestBits::add(const TestBits& other) {
  for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
}

FunctionOptimiser::FunctionOptimiser(const TrainingSet& training, std::span<const size_t> tests,
                                     const std::vector<bool>& wanted)
    : tests_(tests.size()),
      wanted_(tests.size()),
      all_(tests.size()),
      columns_(training.functions.size(), TestBits(tests.size())) {
  for (size_t i = 0; i < tests.size(); ++i) {
    all_.set(i);
    if (wanted[tests[i]]) wanted_.set(i);
    for (const uint32_t function : training.tests[tests[i]].functions) columns_[function].set(i);
  }
}

ExposedShares FunctionOptimiser::with(const TestBits& column, const TestBits& seen,
                                      const ExposedShares& before) const {
  ExposedShares shares = before;
  shares.flaky_exposed += column.count_new(wanted_, seen);
  shares.exposed += column.count_new(all_, seen);
  return shares;
}

ExposedShares FunctionOptimiser::shares(std::span<const uint32_t> functions) const {
  TestBits seen(tests_);
  for (const uint32_t function : functions) seen.add(columns_[function]);
  const TestBits nothing(tests_);
  return {seen.count_new(wanted_, nothing), wanted_.count(), seen.count(),
          static_cast<int64_t>(tests_)};
}

std::vector<uint32_t> FunctionOptimiser::operator()(std::span<const uint32_t> candidates,
                                                    double beta) const {
  std::vector<uint32_t> selected;
  TestBits seen(tests_);
  ExposedShares now = shares({});
  for (double highest = f_beta(now, beta);;) {
    const uint32_t* best = nullptr;
    ExposedShares best_shares;
    for (const uint32_t& candidate : candidates) {
      const ExposedShares then = with(columns_[candidate], seen, now);
      const double score = f_beta(then, beta);
      if (score <= highest) continue;
      highest = score;
      best = &candidate;
      best_shares = then;
    }
    if (best == nullptr) return selected;
    selected.push_back(*best);
    seen.add(columns_[*best]);
    now = best_shares;
  }
}

namespace {

class Trainer {
 public:
  Trainer(const TrainingSet& training, const CharacteristicSet& known,
          const TrainingOptions& options)
      : training_(training), options_(options) {
    const auto flaky = std::ranges::count(training.tests, true, &TrainingTest::is_flaky);
    flaky_tests_ = flaky;
    find_candidates();
    find_causes(known);
  }

  TrainingReport operator()() {
    const std::vector<size_t> all = tests_that([](const TrainingTest&) { return true; });
    const auto flaky = wanted([](const TrainingTest& test) { return test.is_flaky; });
    const FunctionOptimiser optimiser(training_, all, flaky);
    report_.known = optimiser.shares(known_functions_);
    if (flaky_tests_ < options_.least_flaky) {
      report_.notes.push_back(
          fmt::format("{} of {} traced tests are known to be flaky: at least {} are needed",
                      flaky_tests_, all.size(), options_.least_flaky));
      return std::move(report_);
    }
    const auto selected = optimiser(candidates_, options_.beta);
    report_.global = described("global", "", selected, optimiser);
    learn_causes(optimiser);
    validate(all, flaky);
    return std::move(report_);
  }

 private:
  using Chooses = bool (*)(const TrainingTest&);

  std::vector<size_t> tests_that(const auto& chooses) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < training_.tests.size(); ++i)
      if (chooses(training_.tests[i])) found.push_back(i);
    return found;
  }

  std::vector<bool> wanted(const auto& chooses) const {
    std::vector<bool> found;
    for (const TrainingTest& test : training_.tests) found.push_back(chooses(test));
    return found;
  }

  // In the order of their names, so that of equals the same one is taken every time.
  void find_candidates() {
    for (uint32_t i = 0; i < training_.functions.size(); ++i)
      if (std::ranges::find(options_.kinds, training_.functions[i].kind) != options_.kinds.end())
        candidates_.push_back(i);
    std::ranges::sort(candidates_, {}, [&](uint32_t i) { return training_.functions[i]; });
  }

  void find_causes(const CharacteristicSet& known) {
    FunctionTraces each;
    each.functions = training_.functions;
    for (uint32_t i = 0; i < training_.functions.size(); ++i)
      each.tests.push_back({{}, {}, "", {i}});
    const auto exposed = exposures(known, each);
    for (uint32_t i = 0; i < exposed.size(); ++i) {
      causes_of_.push_back(exposed[i].empty() ? "" : exposed[i].front().cause);
      if (!exposed[i].empty()) known_functions_.push_back(i);
    }
  }

  int64_t groups_with_flaky(uint32_t function) const {
    std::set<std::string_view> groups;
    for (const TrainingTest& test : training_.tests)
      if (test.is_flaky && std::ranges::find(test.functions, function) != test.functions.end())
        groups.insert(test.group);
    return static_cast<int64_t>(groups.size());
  }

  TrainedSet described(std::string name, const std::string& cause,
                       const std::vector<uint32_t>& selected,
                       const FunctionOptimiser& optimiser) const {
    TrainedSet set{std::move(name), {}, optimiser.shares(selected), {}};
    std::vector<uint32_t> remaining;
    for (const uint32_t number : selected) {
      LearnedFunction learned{training_.functions[number], optimiser.shares({&number, 1}),
                              causes_of_[number], groups_with_flaky(number)};
      learned.is_solo = learned.groups <= 1;
      learned.is_cryptic = learned.cause.empty();
      if (learned.is_cryptic) learned.cause = cause;
      if (learned.stays()) remaining.push_back(number);
      set.functions.push_back(std::move(learned));
    }
    set.remaining = optimiser.shares(remaining);
    return set;
  }

  // Tests that are flaky for other reasons are left out: they may be exposed to this one as well.
  void learn_causes(const FunctionOptimiser& of_all) {
    std::map<std::string, int64_t> labels;
    for (const TrainingTest& test : training_.tests)
      if (test.is_flaky && !test.cause.empty()) ++labels[test.cause];
    std::vector<uint32_t> together;
    for (const auto& [cause, count] : labels) {
      if (count < options_.least_flaky) {
        report_.notes.push_back(
            fmt::format("only {} flaky {} known to be due to {}: at least {} are needed", count,
                        count == 1 ? "test is" : "tests are", cause, options_.least_flaky));
        continue;
      }
      const auto is_of_cause = [&](const TrainingTest& test) {
        return test.is_flaky && test.cause == cause;
      };
      const auto counts = tests_that(
          [&](const TrainingTest& test) { return !test.is_flaky || test.cause == cause; });
      const FunctionOptimiser optimiser(training_, counts, wanted(is_of_cause));
      const auto selected = optimiser(candidates_, options_.cause_beta);
      together.insert(together.end(), selected.begin(), selected.end());
      report_.causes.push_back(described(cause, cause, selected, optimiser));
    }
    report_.union_of_causes = of_all.shares(together);
  }

  // Flaky tests are dealt out first, so that every fold has its share of them.
  std::vector<size_t> folds(std::vector<size_t> tests, const std::vector<bool>& flaky) const {
    std::mt19937_64 random(options_.seed);
    for (size_t i = tests.size(); i > 1; --i) std::swap(tests[i - 1], tests[random() % i]);
    std::ranges::stable_partition(tests, [&](size_t test) { return flaky[test]; });
    return tests;
  }

  void validate(const std::vector<size_t>& all, const std::vector<bool>& flaky) {
    if (options_.folds < 2) return;
    if (flaky_tests_ < static_cast<int64_t>(options_.folds)) {
      report_.notes.push_back(
          fmt::format("{} flaky tests are too few for a {}-fold cross-validation: nothing is known "
                      "of how well the set does on other tests",
                      flaky_tests_, options_.folds));
      return;
    }
    const std::vector<size_t> dealt = folds(all, flaky);
    for (size_t fold = 0; fold < options_.folds; ++fold) {
      std::vector<size_t> learning, judging;
      for (size_t i = 0; i < dealt.size(); ++i)
        (i % options_.folds == fold ? judging : learning).push_back(dealt[i]);
      const auto selected =
          FunctionOptimiser(training_, learning, flaky)(candidates_, options_.beta);
      report_.validation.folds.push_back(
          {selected.size(), FunctionOptimiser(training_, judging, flaky).shares(selected)});
    }
  }

  const TrainingSet& training_;
  const TrainingOptions& options_;
  int64_t flaky_tests_ = 0;
  std::vector<uint32_t> candidates_;
  std::vector<uint32_t> known_functions_;
  std::vector<std::string> causes_of_;  // by function; empty: no known cause
  TrainingReport report_;
};

std::string evidence_of(const LearnedFunction& learned) {
  return fmt::format("executed by {} of {} flaky tests ({}) and {} of all {} ({}), in {} groups",
                     learned.alone.flaky_exposed, learned.alone.flaky,
                     percent(learned.alone.of_flaky()), learned.alone.exposed, learned.alone.all,
                     percent(learned.alone.of_all()), learned.groups);
}

}  // namespace

TrainingReport train(const TrainingSet& training, const CharacteristicSet& known,
                     const TrainingOptions& options) {
  return Trainer(training, known, options)();
}

CharacteristicSet learned_set(const TrainingReport& report) {
  CharacteristicSet set;
  std::set<std::pair<std::string, FunctionId>> taken;
  const auto add = [&](const TrainedSet& trained) {
    for (const LearnedFunction& learned : trained.functions)
      if (learned.stays() && taken.insert({learned.cause, learned.function}).second)
        set.push_back(
            {learned.cause, learned.function.kind, learned.function.name, evidence_of(learned)});
  };
  for (const TrainedSet& cause : report.causes) add(cause);
  add(report.global);
  return set;
}

}  // namespace unflake
