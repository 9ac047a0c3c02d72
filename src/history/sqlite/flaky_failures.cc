#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "history/codes.h"
#include "history/sqlite/flaky_incidents.h"
#include "history/sqlite/flaky_reader.h"
#include "history/sqlite/totals.h"
#include "history/values.h"

namespace unflake {
namespace {

struct Group {
  int64_t test = 0, signature = 0;
  FlakyIncident first, last;
  int64_t runs = 0, wasted_us = 0;
  std::set<int64_t> builds, suppressed_builds;

  void add(const FlakyIncident& incident) {
    const bool is_new = runs == 0;
    if (is_new || incident.first_us < first.first_us) first = incident;
    if (is_new || incident.last_us >= last.last_us) last = incident;
    runs += sane_count(incident.failures);
    wasted_us += std::clamp<int64_t>(incident.wasted_us, 0, int64_t{1} << 50);
    if (!incident.in_build) return;
    builds.insert(incident.build);
    if (incident.suppressed) suppressed_builds.insert(incident.build);
  }
  auto rank() const { return std::pair(builds.size(), runs); }
};

std::vector<Group> group_incidents(Database& database, int64_t project, const Window& window) {
  std::map<std::pair<int64_t, int64_t>, Group> groups;
  for_each_flaky_incident(database, project, window, [&](const FlakyIncident& incident) {
    Group& group = groups[{incident.test, incident.signature}];
    group.test = incident.test;
    group.signature = incident.signature;
    group.add(incident);
  });
  std::vector<Group> all;
  for (auto& [key, group] : groups) all.push_back(std::move(group));
  return all;
}

// Leaves the first `most` ones and those that are equal to the last of them: names decide there.
void keep_first(std::vector<Group>& groups, size_t most) {
  std::ranges::sort(groups, std::greater(), &Group::rank);
  if (groups.size() <= most) return;
  if (most == 0) return groups.clear();
  const auto last = groups[most - 1].rank();
  std::erase_if(groups, [&](const Group& group) { return group.rank() < last; });
}

class Describer {
 public:
  explicit Describer(Database& database)
      : test_(database, "SELECT target, name FROM tests WHERE id = ?"),
        signature_(database,
                   "SELECT signature, kind, file, line, function, expression, message"
                   " FROM signatures WHERE id = ?"),
        commit_(database, "SELECT commit_id FROM sessions WHERE id = ?") {}

  FlakyFailure describe(const Group& group) {
    FlakyFailure failure;
    failure.outcome = outcome_from_code(group.first.outcome);
    failure.runs = group.runs;
    failure.builds = static_cast<int64_t>(group.builds.size());
    failure.suppressed_builds = static_cast<int64_t>(group.suppressed_builds.size());
    failure.wasted = Duration(group.wasted_us);
    failure.first = to_time(group.first.first_us);
    failure.last = to_time(group.last.last_us);
    failure.first_commit = commit_of(group.first.session);
    failure.last_commit = commit_of(group.last.session);
    if (Query query(test_, group.test); query.next()) failure.test = {query.text(0), query.text(1)};
    if (Query query(signature_, group.signature); query.next()) {
      failure.signature = query.text(0);
      failure.failure = {.kind = failure_from_code(query.integer(1)),
                         .file = query.text(2),
                         .line = static_cast<int>(query.integer(3)),
                         .function = query.text(4),
                         .expression = query.text(5),
                         .message = query.text(6)};
    }
    return failure;
  }

 private:
  std::string commit_of(int64_t session) {
    Query query(commit_, session);
    return query.next() ? query.text(0) : "";
  }

  Statement test_, signature_, commit_;
};

}  // namespace

std::vector<FlakyFailure> flaky_failures(Database& database, int64_t project, const Window& window,
                                         size_t most) {
  Transaction snapshot(database, Access::read);
  std::vector<Group> groups = group_incidents(database, project, window);
  keep_first(groups, most);
  Describer describer(database);
  std::vector<FlakyFailure> failures;
  for (const Group& group : groups) failures.push_back(describer.describe(group));
  std::ranges::sort(failures, [](const FlakyFailure& a, const FlakyFailure& b) {
    return std::tie(b.builds, b.runs, a.test, a.signature) <
           std::tie(a.builds, a.runs, b.test, b.signature);
  });
  if (failures.size() > most) failures.resize(most);
  return failures;
}

}  // namespace unflake
