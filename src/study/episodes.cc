#include "study/episodes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace unflake {
namespace {

using Kind = LifecycleEvent::Kind;
using FailureKey = std::pair<TestId, std::string>;

constexpr auto shortest_before = std::chrono::days(30);

bool opens(Kind kind) {
  return kind == Kind::quarantined || kind == Kind::report_opened || kind == Kind::report_reopened;
}

bool closes(Kind kind) {
  return kind == Kind::lifted || kind == Kind::report_closed;
}

// What happened to one failure, event by event.
class EpisodeBook {
 public:
  EpisodeBook(const FailureKey& key, const FlakyFailure* failure) : key_(key), failure_(failure) {
    if (failure) open(failure->first, "");
  }

  void add(const LifecycleEvent& event) {
    if (opens(event.kind)) open(event.at, event.url);
    if (closes(event.kind)) close(event);
  }

  std::vector<FlakyEpisode> finish() {
    if (failure_ && !episodes_.empty()) episodes_.back().last_failure = failure_->last;
    return std::move(episodes_);
  }

 private:
  void open(TimePoint at, const std::string& url) {
    if (episodes_.empty() || episodes_.back().closed) {
      FlakyEpisode episode;
      episode.test = key_.first;
      episode.signature = key_.second;
      episode.opened = at;
      episode.came_back = !episodes_.empty();
      episodes_.push_back(std::move(episode));
    }
    // A report that is older than the oldest run that is kept.
    episodes_.back().opened = std::min(episodes_.back().opened, at);
    if (episodes_.back().url.empty()) episodes_.back().url = url;
  }

  // A report is closed and a quarantine lifted for one and the same fix: the first of them counts,
  // and what the second one knows is taken along.
  void close(const LifecycleEvent& event) {
    if (episodes_.empty()) open(event.at, event.url);
    FlakyEpisode& episode = episodes_.back();
    if (!episode.closed) episode.closed = std::max(event.at, episode.opened);
    if (episode.commit.empty()) episode.commit = event.commit;
    if (episode.url.empty()) episode.url = event.url;
  }

  FailureKey key_;
  const FlakyFailure* failure_;
  std::vector<FlakyEpisode> episodes_;
};

bool is_same_failure(const FlakyEpisode& a, const FlakyEpisode& b) {
  return a.test == b.test && a.signature == b.signature;
}

}  // namespace

bool is_settled(const FlakyEpisode& episode) {
  return episode.closed && !(episode.last_failure && *episode.last_failure > *episode.closed);
}

std::vector<FlakyEpisode> episodes_of(const std::vector<FlakyFailure>& failures,
                                      std::vector<LifecycleEvent> events) {
  std::ranges::stable_sort(events, {}, &LifecycleEvent::at);
  std::map<TestId, std::set<std::string>> signatures;
  std::map<FailureKey, const FlakyFailure*> known;
  for (const FlakyFailure& failure : failures) {
    signatures[failure.test].insert(failure.signature);
    known[{failure.test, failure.signature}] = &failure;
  }
  for (const LifecycleEvent& event : events)
    if (!event.signature.empty()) signatures[event.test].insert(event.signature);
  for (const LifecycleEvent& event : events)
    if (signatures[event.test].empty()) signatures[event.test].insert("");

  std::map<FailureKey, EpisodeBook> books;
  for (const auto& [test, of_test] : signatures)
    for (const std::string& signature : of_test) {
      const FailureKey key{test, signature};
      const auto failure = known.find(key);
      books.try_emplace(key, key, failure == known.end() ? nullptr : failure->second);
    }
  for (const LifecycleEvent& event : events)
    for (const std::string& signature : signatures[event.test])
      if (event.signature.empty() || event.signature == signature)
        books.at({event.test, signature}).add(event);

  std::vector<FlakyEpisode> all;
  for (auto& [key, book] : books) std::ranges::move(book.finish(), std::back_inserter(all));
  return all;
}

ClaimWindows windows_of(const std::vector<FlakyEpisode>& episodes, size_t claim,
                        const Window& known) {
  const FlakyEpisode& one = episodes[claim];
  const TimePoint at = *one.closed;
  ClaimWindows windows{{at, at}, {std::max(at, known.from), std::max(at, known.until)}};
  const size_t next = claim + 1;
  if (next < episodes.size() && is_same_failure(one, episodes[next]) && episodes[next].closed)
    windows.after.until = std::min(windows.after.until, *episodes[next].closed);
  windows.before.from =
      at - std::max<TimePoint::duration>(windows.after.until - at, shortest_before);
  if (claim > 0 && is_same_failure(one, episodes[claim - 1]) && episodes[claim - 1].closed)
    windows.before.from = std::max(windows.before.from, *episodes[claim - 1].closed);
  windows.before.from = std::min(at, std::max(windows.before.from, known.from));
  return windows;
}

}  // namespace unflake
