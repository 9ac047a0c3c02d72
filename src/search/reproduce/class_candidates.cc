#include <fmt/format.h>

#include <map>
#include <set>

#include "search/reproduce/candidates.h"

namespace unflake {
namespace {

using Kind = Candidate::Kind;
using Position = Intervention::Position;

std::string where(const Candidate& candidate) {
  if (candidate.delay.position == Position::start) return "from the start";
  return (candidate.delay.position == Position::after ? "after " : "before ") +
         to_string(candidate.delay.site);
}

Candidate of_class(const Candidate& member, Kind kind) {
  Candidate some = member;
  some.kind = kind;
  some.delay.threads = Intervention::Threads::in_class;
  some.delay.thread.text = member.thread_class + "#*";
  some.why = fmt::format("{} of {}#* late {}", kind == Kind::first_of_class ? "the first" : "all",
                         member.thread_class, where(member));
  return some;
}

}  // namespace

// Which worker of a pool gets a job differs from run to run, so that a delay for one of them may
// meet another job. "Whoever comes there first" and "all of them" do not depend on it.
std::vector<Candidate> class_candidates(const std::vector<Candidate>& candidates) {
  std::map<std::string, std::set<uint32_t>> members;
  for (const Candidate& candidate : candidates)
    if (candidate.delay.thread.text != candidate.thread_class)  // `main` has no class
      members[candidate.thread_class].insert(candidate.thread);
  std::vector<Candidate> found;
  std::set<std::string> seen;
  for (const Candidate& candidate : candidates) {
    const std::string& name = candidate.thread_class;
    if (candidate.single_visit || candidate.is_long || members[name].size() < 2) continue;
    if (!seen.insert(name + where(candidate)).second) continue;
    if (candidate.delay.position != Position::start) {  // who begins first is always the same one
      Candidate first = of_class(candidate, Kind::first_of_class);
      first.delay.visits = Intervention::Visits::only_nth;
      first.delay.nth = 1;
      found.push_back(std::move(first));
    }
    found.push_back(of_class(candidate, Kind::all_of_class));
  }
  return found;
}

}  // namespace unflake
