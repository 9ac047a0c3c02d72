#include "cli/rerun_failed.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/layout.h"
#include "util/text.h"
#include "util/time.h"

namespace unflake {
namespace {

constexpr size_t longest_command_line = 200;

std::string session_text(const LastFailures& last) {
  return fmt::format("the session of {} UTC (`{}`)", timestamp_in_minutes(last.started),
                     printable(shorten(last.command_line, longest_command_line)));
}

std::string summary_of(const LastFailures& last) {
  const std::string unfinished =
      last.finished ? "" : "; of tests that it did not come to, the sessions before it count";
  if (last.failed.empty())
    return fmt::format("nothing failed in {}{}", session_text(last), unfinished);
  return fmt::format("{} failed in {}{}",
                     counted(static_cast<long long>(last.failed.size()), "test"),
                     session_text(last), unfinished);
}

Error no_session(const std::string& target) {
  const std::string of = target.empty() ? "" : fmt::format(" of '{}'", printable(target));
  return usage_error(fmt::format("the history has no session{} that ran a test", of),
                     "--rerun-failed", "run the tests without --rerun-failed first");
}

std::vector<TestId> missing_from(const SelectedTests& tests, const std::vector<TestId>& failed) {
  std::set<TestId> listed;
  for (const auto& test : tests.all) listed.insert(test->id);
  std::vector<TestId> missing;
  std::ranges::copy_if(failed, std::back_inserter(missing),
                       [&](const TestId& id) { return !listed.contains(id); });
  return missing;
}

Error nothing_to_rerun(const LastFailures& last, const std::vector<TestId>& gone) {
  if (gone.size() == last.failed.size())
    return usage_error(
        fmt::format("{}, and the target has none of them any more: '{}'{}", summary_of(last),
                    printable(shorten(to_string(gone.front()), 200)),
                    gone.size() > 1 ? fmt::format(" and {} more", gone.size() - 1) : ""),
        "--rerun-failed", "run all tests of the target");
  return usage_error(
      fmt::format("{}, and none of them is among the tests that are selected", summary_of(last)),
      "--rerun-failed", "leave out names, -E and --exclude");
}

class Selector {
 public:
  Selector(const Words& words, const Project& project, const FindTarget& find_target,
           Launcher& launcher)
      : words_(words), project_(project), find_target_(find_target), launcher_(launcher) {}

  Result<SelectedTests> select(const TargetOptions& options) const {
    return select_tests(options, words_, "", project_, find_target_, launcher_);
  }

  // The session may have opened CTest entries into their cases.
  Result<SelectedTests> select_with(TargetOptions options,
                                    const std::vector<TestId>& failed) const {
    auto tests = select(options);
    if (!tests || tests->target.framework != Framework::ctest || options.open_cases) return tests;
    const size_t missing = missing_from(*tests, failed).size();
    if (missing == 0) return tests;
    options.open_cases = true;
    auto opened = select(options);
    return opened && missing_from(*opened, failed).size() < missing ? opened : tests;
  }

  // A plain command is known by its full id, any other target by its name.
  Result<std::string> word_for(const LastFailures& last) const {
    const auto target = find_target_(last.target);
    if (!target) return target.error();
    return *target ? last.target : to_string(last.failed.front());
  }

 private:
  const Words& words_;
  const Project& project_;
  const FindTarget& find_target_;
  Launcher& launcher_;
};

}  // namespace

Result<Rerun> select_failed(TargetOptions options, const Words& words, SessionQuestion question,
                            const AskLastFailures& ask, const Project& project,
                            const FindTarget& find_target, Launcher& launcher) {
  if (words.has_command)
    return usage_error("--rerun-failed takes a target, not a command", "",
                       "leave the command out: the history knows it");
  options.include_disabled = true;  // those that failed did run
  const Selector selector(words, project, find_target, launcher);
  if (!options.words.empty()) {
    const auto named = selector.select(options);
    if (!named) return named.error();
    question.target = named->target.name;
  }
  const auto last = ask(question);
  if (!last) return last.error();
  if (!*last) return no_session(question.target);
  Rerun rerun{{}, summary_of(**last), {}};
  rerun.tests.target.name = (*last)->target;
  if ((*last)->failed.empty()) return rerun;

  if (options.words.empty()) {
    auto word = selector.word_for(**last);
    if (!word) return word.error();
    options.words = {std::move(*word)};
  }
  auto tests = selector.select_with(options, (*last)->failed);
  if (!tests) return tests.error();
  rerun.gone = missing_from(*tests, (*last)->failed);
  const std::set<TestId> failed((*last)->failed.begin(), (*last)->failed.end());
  std::erase_if(tests->selected, [&](const auto& test) { return !failed.contains(test->id); });
  if (tests->selected.empty()) return nothing_to_rerun(**last, rerun.gone);
  rerun.tests = std::move(*tests);
  return rerun;
}

}  // namespace unflake
