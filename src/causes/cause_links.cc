#include "causes/cause_links.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

namespace unflake {
namespace {

// Texts that all look alike would be compared with each other forever.
constexpr size_t most_in_a_bucket = 64;

std::string key_of(const FlakyFailure& failure, const FailureTraits& traits) {
  if (!is_vague(traits)) return failure.signature;
  Failure of_one_test;
  of_one_test.expression = failure.signature + " " + to_string(failure.test);
  return signature_of(of_one_test);
}

class Linking {
 public:
  Linking(std::span<const FlakyFailure> failures, std::span<const CauseRecord> known, TimePoint now,
          const IsReturn& is_return)
      : failures_(failures), now_(now), is_return_(is_return) {
    for (const FlakyFailure& failure : failures) {
      traits_.push_back(traits_of(failure));
      keys_.push_back(key_of(failure, traits_.back()));
    }
    take_known(known);
  }

  std::vector<LinkedCause> operator()() {
    std::vector<size_t> strangers;
    for (const size_t number : oldest_first())
      if (const auto found = by_signature_.find(keys_[number]); found != by_signature_.end())
        join(found->second, number);
      else
        strangers.push_back(number);
    for (const size_t number : strangers) place(number);
    for (LinkedCause& cause : causes_) settle(cause);
    return std::move(causes_);
  }

 private:
  // Two jobs may have created one cause at the same time: the first one has its signatures.
  void take_known(std::span<const CauseRecord> known) {
    for (const CauseRecord& record : known) causes_.push_back({record, {}, false, false});
    std::ranges::sort(causes_, {}, [](const LinkedCause& cause) { return cause.record.id; });
    for (size_t number = 0; number < causes_.size(); ++number)
      for (const std::string& signature : causes_[number].record.signatures)
        by_signature_.emplace(signature, number);
  }

  std::vector<size_t> oldest_first() const {
    std::vector<size_t> order(failures_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {}, [this](size_t number) {
      const FlakyFailure& one = failures_[number];
      return std::tie(one.first, keys_[number], one.test);
    });
    return order;
  }

  void join(size_t cause, size_t number) {
    causes_[cause].failures.push_back(number);
    if (by_signature_.emplace(keys_[number], cause).second) {
      causes_[cause].record.signatures.push_back(keys_[number]);
      causes_[cause].changed = true;
    }
    for (const uint64_t bucket : buckets_of(traits_[number]))
      if (auto& inside = buckets_[bucket]; inside.size() < most_in_a_bucket)
        inside.push_back(number);
    cause_of_[number] = cause;
  }

  void place(size_t number) {
    const auto same = by_signature_.find(keys_[number]);
    if (same != by_signature_.end()) return join(same->second, number);
    if (const auto similar = similar_cause(number)) return join(*similar, number);
    CauseRecord record;
    record.title = headline(failures_[number].failure);
    record.opened = now_;
    causes_.push_back({std::move(record), {}, true, false});
    join(causes_.size() - 1, number);
  }

  // The cause with the most words in common; of equal ones the oldest.
  std::optional<size_t> similar_cause(size_t number) const {
    std::set<size_t> candidates;
    for (const uint64_t bucket : buckets_of(traits_[number]))
      if (const auto found = buckets_.find(bucket); found != buckets_.end())
        candidates.insert(found->second.begin(), found->second.end());
    std::optional<size_t> best;
    double most = -1;
    for (const size_t other : candidates) {
      if (!have_one_cause(traits_[number], traits_[other])) continue;
      const double common = common_words(traits_[number], traits_[other]);
      const size_t cause = cause_of_.at(other);
      if (common > most || (common == most && cause < *best)) best = cause, most = common;
    }
    return best;
  }

  void settle(LinkedCause& cause) const {
    std::ranges::sort(cause.failures);
    CauseRecord& record = cause.record;
    if (record.state == CauseRecord::State::open || !record.closed) return;
    const bool again = std::ranges::any_of(cause.failures, [&](size_t number) {
      return failures_[number].last > *record.closed &&
             (!is_return_ || is_return_(record, failures_[number]));
    });
    if (!again) return;
    record.state = CauseRecord::State::open;
    record.closed.reset();
    ++record.reopened;
    cause.changed = cause.came_back = true;
  }

  std::span<const FlakyFailure> failures_;
  TimePoint now_;
  const IsReturn& is_return_;
  std::vector<FailureTraits> traits_;
  std::vector<std::string> keys_;
  std::vector<LinkedCause> causes_;
  std::unordered_map<std::string, size_t> by_signature_;
  std::unordered_map<uint64_t, std::vector<size_t>> buckets_;
  std::unordered_map<size_t, size_t> cause_of_;
};

}  // namespace

std::string cause_signature(const FlakyFailure& failure) {
  return key_of(failure, traits_of(failure));
}

std::vector<LinkedCause> link_causes(std::span<const FlakyFailure> failures,
                                     std::span<const CauseRecord> known, TimePoint now,
                                     const IsReturn& is_return) {
  return Linking(failures, known, now, is_return)();
}

}  // namespace unflake
