#include <algorithm>
#include <set>

#include "search/session.h"

namespace unflake {
namespace {

using Tests = std::vector<std::shared_ptr<const Test>>;

bool overlaps(const std::vector<std::string>& names, const std::set<std::string>& wanted) {
  return std::ranges::any_of(names, [&](const auto& name) { return wanted.contains(name); });
}

// What the selected tests require, and what the tests that set those up require in turn.
std::set<std::string> required_fixtures(const Tests& selected, const Tests& all) {
  std::set<std::string> wanted;
  for (const auto& test : selected)
    wanted.insert(test->fixtures.required.begin(), test->fixtures.required.end());
  for (size_t before = wanted.size() + 1; before != wanted.size();) {
    before = wanted.size();
    for (const auto& test : all)
      if (overlaps(test->fixtures.setup, wanted) || overlaps(test->fixtures.cleanup, wanted))
        wanted.insert(test->fixtures.required.begin(), test->fixtures.required.end());
  }
  return wanted;
}

}  // namespace

std::vector<PlannedTest> with_fixtures(const Tests& selected, const Tests& all) {
  const std::set<std::string> wanted = required_fixtures(selected, all);
  std::set<TestId> planned;
  std::vector<PlannedTest> plan;
  const auto add = [&](const std::shared_ptr<const Test>& test, PlannedTest::Role role) {
    if (planned.insert(test->id).second) plan.push_back({test, role, {}, 0});
  };
  const auto is_selected = [&](const auto& test) {
    return std::ranges::find(selected, test) != selected.end();
  };
  for (const auto& test : all) {
    const bool setup = overlaps(test->fixtures.setup, wanted);
    if (!setup && !overlaps(test->fixtures.cleanup, wanted)) continue;
    if (test->disabled && !is_selected(test)) continue;
    add(test, setup ? PlannedTest::Role::setup : PlannedTest::Role::cleanup);
  }
  for (const auto& test : selected) add(test, PlannedTest::Role::test);
  return plan;
}

}  // namespace unflake
