#include <fmt/format.h>

#include <algorithm>

#include "explain/call_order.h"
#include "report/explanation_pages.h"
#include "report/layout.h"
#include "util/text.h"

namespace unflake {
namespace {

std::string without_template_arguments(const std::string& name) {
  if (name.find("operator") != std::string::npos) return name;
  std::string plain;
  int depth = 0;
  for (const char c : name) {
    depth += c == '<';
    if (depth == 0) plain += c;
    depth -= c == '>';
  }
  return depth == 0 ? plain : name;
}

// "details::thread_pool::post" -> "thread_pool::post"
std::string class_and_function(const std::string& name) {
  size_t from = name.rfind("::");
  if (from != std::string::npos && from > 0) from = name.rfind("::", from - 1);
  return from == std::string::npos ? name : name.substr(from + 2);
}

}  // namespace

std::string spoken_function(std::string name) {
  replace_all(name, "(anonymous namespace)::", "");
  for (const char* end : {"::{lambda", "::<lambda", "::operator()"})
    name = name.substr(0, name.find(end));
  return class_and_function(without_template_arguments(name));
}

namespace {

// Whatever is quoted as code.
std::string with_spoken_functions(const std::string& text) {
  std::string spoken;
  size_t from = 0;
  for (size_t open = text.find('`'); open != std::string::npos; open = text.find('`', from)) {
    const size_t close = text.find('`', open + 1);
    if (close == std::string::npos) break;
    const std::string quoted = text.substr(open + 1, close - open - 1);
    const bool is_function = quoted.find("::") != std::string::npos;
    spoken +=
        text.substr(from, open + 1 - from) + (is_function ? spoken_function(quoted) : quoted) + "`";
    from = close + 1;
  }
  return spoken + text.substr(from);
}

constexpr const char* the_test = "the test";

class FirstSentence {
 public:
  explicit FirstSentence(const ExplanationReport& report)
      : repro_(report.repro),
        found_(report.explanation),
        has_slack_(report.repro.slack && is_late_as_recorded(report)) {}

  std::string operator()() const {
    if (!found_.unseen.empty()) return "";
    const std::string said = what_happens();
    return said.empty() ? "" : one_line(with_spoken_functions(said + doubt() + lateness()));
  }

 private:
  // Of an order that two runs suggest, and for which experiments were made in vain.
  std::string doubt() const {
    const RootCauseKind kind = found_.causes.front().kind;
    const bool is_about_order =
        kind == RootCauseKind::ordering || kind == RootCauseKind::lost_wakeup;
    const bool is_guess = found_.pair && !found_.pair->is_shown && !found_.pair->is_gap &&
                          !CauseFacts::holds(found_.facts.late_as_a_whole) &&
                          found_.facts.waiting_first.hits == 0;
    if (!is_about_order || !is_guess || found_.experiments.empty()) return "";
    return " That is what two runs suggest, and no experiment has shown it.";
  }

  std::string what_happens() const {
    switch (found_.causes.front().kind) {
      case RootCauseKind::async_wait:
        return found_.wait         ? about_wait("done")
               : has_two_threads() ? about_order()
                                   : "A time-out that the test serves itself runs out before it "
                                     "gets to what it waits for.";
      case RootCauseKind::process_handover:
        return found_.wait ? about_wait("ready") : about_hand_over();
      case RootCauseKind::ordering:
        return about_order();
      case RootCauseKind::lost_wakeup:
        return about_wake_up();
      case RootCauseKind::teardown_race:
        return about_teardown();
      case RootCauseKind::exact_timing:
        return "The test checks how long something takes, and a busy machine takes longer.";
      case RootCauseKind::deadlock:
        return "Threads wait for each other's locks, and none of them can go on.";
      case RootCauseKind::starvation:
        return "A thread waits a limited time for what others keep to themselves for longer.";
      case RootCauseKind::resource:
        return about_resource();
      case RootCauseKind::unknown:
        return "Why the test fails could not be shown.";
    }
    return "";
  }

  bool has_two_threads() const {
    return found_.pair && found_.pair->first.thread != found_.pair->second.thread;
  }

  std::string about_wait(const char* state) const {
    const CoveringWait& wait = *found_.wait;
    const Duration time = wait.asked.value_or(wait.failing) * (wait.asked ? wait.times : 1);
    const std::string waiter = capital(who(wait.moment));
    const std::string what = found_.pair ? deed(found_.pair->first) : "another thread";
    std::string text =
        wait.is_sleep
            ? fmt::format("{} sleeps {} and relies on {} to be {} by then.", waiter,
                          format_duration(time), what, state)
            : fmt::format("{} waits at most {} for {}.", waiter, format_duration(time), what);
    if (wait.needed)
      text += fmt::format(" That takes {} when nobody is late.", format_duration(*wait.needed));
    return text;
  }

  std::string about_order() const {
    if (!found_.pair) return "The order of two threads decides, and nothing keeps it.";
    const auto [first, second] = deeds();
    if (found_.pair->is_gap)
      return fmt::format("Nothing keeps other threads out between {} and {}.", second, first);
    if (second == the_test) return fmt::format("The test does not wait for {}.", first);
    if (first == the_test) return fmt::format("{} does not wait for the test.", capital(second));
    return fmt::format("Nothing makes {} come before {}, and the test needs that order.", first,
                       second);
  }

  std::string about_hand_over() const {
    if (!found_.pair) return "One process relies on another one that it does not wait for.";
    const auto [first, second] = deeds();
    return fmt::format("{} does not wait for another process to get to {}.", capital(second),
                       first);
  }

  std::string about_wake_up() const {
    if (!found_.pair) return "A wake-up can come before anybody waits for it, and is forgotten.";
    const auto [first, second] = deeds();
    return fmt::format("The wake-up by {} can come before {} waits for it, and is then forgotten.",
                       second, first);
  }

  std::string about_teardown() const {
    if (!found_.pair) return "A thread is still at work when what it uses is taken away.";
    const auto [first, second] = deeds();
    if (found_.pair->is_gap)
      return fmt::format("{} takes away what another thread uses until {} is over.",
                         capital(second), first);
    if (found_.pair->first.place.function.find("::~") != std::string::npos)
      return fmt::format("{} goes on as long as {} has not ended it, and uses what may be gone.",
                         capital(second), first);
    return fmt::format("{} may still have to come when {} takes away what it uses.", capital(first),
                       second);
  }

  std::string about_resource() const {
    if (!found_.pair) return "The test uses something that is not there at every moment.";
    const auto [first, second] = deeds();
    return fmt::format("{} relies on something that is only there once {} is over.",
                       capital(second), first);
  }

  // How little it takes, where that is known of a single thread.
  std::string lateness() const {
    if (repro_.passes_under_plan) return " The test fails by itself in most runs.";
    if (!has_slack_ || found_.late.empty()) return "";
    const bool is_one = std::ranges::all_of(found_.late, [&](const Lateness& late) {
      return late.thread == found_.late.front().thread;
    });
    return fmt::format(" It fails as soon as {} late by {}.",
                       is_one ? who(found_.late.front()) + " is" : "threads are",
                       format_duration(repro_.slack->fails));
  }

  template <class Actor>
  static std::string who(const Actor& actor) {
    if (actor.thread == "main") return the_test;
    if (actor.role.ends_with("runs `main`")) return "another process";
    if (!actor.role.empty()) return one_of_several(actor.role);
    return actor.started_by.empty() ? "another process" : "another thread";
  }

  // The slack is that of one delay, wherever on its way the thread has it.
  static bool is_late_as_recorded(const ExplanationReport& report) {
    if (!report.recorded_plan) return true;
    const auto &then = report.recorded_plan->interventions, &now = report.repro.plan.interventions;
    return then.size() == 1 && now.size() == 1 &&
           then.front().action == Intervention::Action::delay &&
           then.front().thread == now.front().thread;
  }

  // What is done there: a function of the program, or all that the test does after it.
  static std::string deed(const Moment& moment) {
    if (moment.what == Moment::What::thread_end) return "the end of " + who(moment);
    const std::string function = spoken_function(moment.place.function);
    if (function.empty() || is_test_itself(function)) return who(moment);
    return "`" + function + "`";
  }

  static std::string deed_of_caller(const Moment& moment) {
    const std::string function = moment.caller ? spoken_function(moment.caller->function) : "";
    return function.empty() || is_test_itself(function) ? "" : "`" + function + "`";
  }

  // "thread 2 of 3 that run `x`": which one it is differs from run to run.
  static std::string one_of_several(const std::string& role) {
    const size_t of = role.find(" of "), that = role.find(" that ");
    if (!role.starts_with("thread ") || of == std::string::npos || of > that) return role;
    return fmt::format("one of {} threads{}", role.substr(of + 4, that - of - 4),
                       role.substr(that));
  }

  // Of both; by their callers, or else with the threads, where they would read the same.
  std::pair<std::string, std::string> deeds() const {
    const Moment &one = found_.pair->first, &other = found_.pair->second;
    std::pair<std::string, std::string> both{deed(one), deed(other)};
    if (both.first != both.second) return both;
    const std::string caller = deed_of_caller(one), other_caller = deed_of_caller(other);
    if (caller != other_caller && !caller.empty() && !other_caller.empty())
      return {caller, other_caller};
    if (who(one) == who(other)) return {"one call of " + both.first, "another one"};
    return {both.first + " in " + who(one), both.second + " in " + who(other)};
  }

  static std::string capital(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
      text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
  }

  const Repro& repro_;
  const Explanation& found_;
  const bool has_slack_;  // of what was late in the runs that are shown
};

}  // namespace

std::string first_sentence(const ExplanationReport& report) {
  return FirstSentence(report)();
}

}  // namespace unflake
