#include "trace/divergence.h"

#include <algorithm>
#include <map>

namespace unflake {
namespace {

int sign_of(int32_t result) {
  return result < 0 ? -1 : result > 0;
}

struct Call {
  std::string site;
  const TracedEvent* event = nullptr;
};

std::vector<Call> calls_of(const Trace& trace, uint32_t thread) {
  std::vector<Call> calls;
  for (const TracedEvent& event : trace.events)
    if (event.thread == thread && !event.is_intervention && event.site < trace.sites.size())
      calls.push_back({to_string(trace.sites[event.site].name), &event});
  return calls;
}

// A loop that goes round more often is no other way: the last visit of a site stands for it.
std::map<std::string, const TracedEvent*> last_calls(const std::vector<Call>& calls) {
  std::map<std::string, const TracedEvent*> last;
  for (const Call& call : calls) last[call.site] = call.event;
  return last;
}

class Divergence {
 public:
  Divergence(const std::vector<Call>& passing, const std::vector<Call>& failing)
      : passing_(last_calls(passing)), failing_(last_calls(failing)) {
    for (const Call& call : failing) compare(call);
    const std::string* shared = nullptr;
    for (const Call& call : passing) {
      if (failing_.contains(call.site))
        shared = &call.site;
      else if (shared)
        take(failing_.at(*shared)->exit);  // and then it went another way
    }
  }

  std::optional<Duration> first() const { return first_; }

 private:
  void compare(const Call& call) {
    const auto other = passing_.find(call.site);
    if (other == passing_.end()) return take(call.event->enter);
    if (call.event != failing_.at(call.site)) return;
    if (sign_of(call.event->result) != sign_of(other->second->result) ||
        call.event->timed_out != other->second->timed_out)
      take(call.event->exit);
  }

  void take(Duration at) { first_ = std::min(first_.value_or(at), at); }

  std::map<std::string, const TracedEvent*> passing_, failing_;
  std::optional<Duration> first_;
};

}  // namespace

std::optional<Duration> divergence(const Trace& passing, uint32_t passing_thread,
                                   const Trace& failing, uint32_t failing_thread) {
  return Divergence(calls_of(passing, passing_thread), calls_of(failing, failing_thread)).first();
}

std::optional<Duration> first_error(const Trace& passing, uint32_t passing_thread,
                                    const Trace& failing, uint32_t failing_thread) {
  const auto before = last_calls(calls_of(passing, passing_thread));
  std::optional<Duration> first;
  for (const auto& [site, event] : last_calls(calls_of(failing, failing_thread))) {
    const auto other = before.find(site);
    if (event->result >= 0 || other == before.end() || other->second->result < 0) continue;
    first = std::min(first.value_or(event->exit), event->exit);
  }
  return first;
}

}  // namespace unflake
