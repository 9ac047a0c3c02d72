#include "trace/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "trace/names.h"
#include "util/text.h"

namespace unflake {

bool is_test_itself(const std::string& function) {
  return function == "main" || function.ends_with("::TestBody") ||
         function.ends_with("::test_method") || function.starts_with("_DOCTEST_ANON_FUNC_") ||
         function.starts_with("DOCTEST_ANON_FUNC_") || function.starts_with("C_A_T_C_H_T_E_S_T_") ||
         function.starts_with("____C_A_T_C_H____T_E_S_T____") ||
         function.starts_with("CATCH2_INTERNAL_TEST_");
}

namespace {

std::vector<std::string> find_routines(const Trace& trace) {
  std::vector<std::optional<std::string>> outermost(trace.stacks.size());
  std::vector<std::string> routines(trace.threads.size());
  for (const TracedCall& call : trace.calls) {
    if (call.thread >= routines.size() || !routines[call.thread].empty() ||
        call.stack >= trace.stacks.size())
      continue;
    auto& known = outermost[call.stack];
    if (!known) {
      const auto frames = own_frames(trace.stacks[call.stack]);
      known = frames.empty() ? "" : frames.back()->function;
    }
    routines[call.thread] = *known;
  }
  return routines;
}

// "worker-12" and "worker 3" are one kind of thread.
std::string without_number(std::string title) {
  const size_t digits = title.find_last_not_of("0123456789");
  if (digits == std::string::npos || digits + 1 == title.size()) return title;
  const size_t end = title.find_last_not_of("-_#/:. ", digits);
  return end == std::string::npos ? title : title.substr(0, end + 1);
}

// Two paths to one place (the first thread of a vector, and those for which it had to grow) start
// threads of one kind.
std::string started_at(const std::string& name) {
  const std::string place = thread_class_of(name);
  return place.substr(0, place.rfind('~'));
}

struct Routine {
  std::string function;
  bool starts_it = false;  // a lambda has no name of its own: it is known by who contains it
};

Routine routine_in(std::string function) {
  replace_all(function, "(anonymous namespace)::", "");
  const size_t lambda = std::min(function.find("::{lambda"), function.find("::<lambda"));
  if (lambda == std::string::npos) return {std::move(function)};
  function.resize(lambda);
  return {std::move(function), true};
}

std::string routine_words(const std::string& whole, bool several) {
  const Routine routine = routine_in(whole);
  if (!routine.starts_it) return fmt::format("{} `{}`", several ? "run" : "runs", routine.function);
  return is_test_itself(routine.function) ? "the test started"
                                          : fmt::format("`{}` started", routine.function);
}

}  // namespace

ThreadRoles::ThreadRoles(const Trace& trace)
    : trace_(trace), routines_(find_routines(trace)), places_(trace.threads.size()) {
  std::map<std::string, std::set<std::string>> known;  // what the threads of a kind run
  for (uint32_t i = 0; i < trace.threads.size(); ++i) {
    const TracedThread& thread = trace.threads[i];
    kinds_.push_back(fmt::format("{}\n{}\n{}", thread.process, started_at(thread.name.text),
                                 without_number(thread.title)));
    if (!routines_[i].empty()) known[kinds_.back()].insert(routines_[i]);
  }
  std::map<std::string, std::vector<uint32_t>> members;
  for (uint32_t i = 0; i < trace.threads.size(); ++i) {
    const bool is_nameless = trace.threads[i].title.empty();
    if (is_nameless && known[kinds_[i]].size() > 1) kinds_[i] += "\n" + routines_[i];
    members[kinds_[i]].push_back(i);
  }
  for (const auto& [kind, all] : members)
    for (size_t i = 0; i < all.size(); ++i) places_[all[i]] = {i + 1, all.size()};
}

std::string ThreadRoles::of(uint32_t thread) const {
  if (thread >= trace_.threads.size() || trace_.threads[thread].parent == no_index) return "";
  const std::string& title = trace_.threads[thread].title;
  const auto [number, all] = places_[thread];
  if (!title.empty()) {
    const bool is_enough = all < 2 || title != without_number(title);
    return is_enough ? fmt::format("the thread `{}`", title)
                     : fmt::format("thread {} of {} named `{}`", number, all, title);
  }
  if (routines_[thread].empty()) return "";
  if (all < 2) return "the thread that " + routine_words(routines_[thread], false);
  return fmt::format("thread {} of {} that {}", number, all,
                     routine_words(routines_[thread], true));
}

std::string ThreadRoles::shared_by(uint32_t thread) const {
  if (thread >= trace_.threads.size()) return "";
  const TracedThread& one = trace_.threads[thread];
  if (!one.title.empty()) return without_number(one.title);
  if (one.parent == no_index || routines_[thread].empty()) return started_at(one.name.text);
  const Routine routine = routine_in(routines_[thread]);
  if (!routine.starts_it) return routine.function;
  return is_test_itself(routine.function) ? "started by the test"
                                          : "started by " + routine.function;
}

std::string role_of(const Trace& trace, uint32_t thread) {
  return ThreadRoles(trace).of(thread);
}

std::string who_is(const Trace& trace, uint32_t thread) {
  if (thread >= trace.threads.size()) return "a thread";
  std::string role = role_of(trace, thread);
  return role.empty() ? trace.threads[thread].name.text : role;
}

}  // namespace unflake
