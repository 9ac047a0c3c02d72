#include <algorithm>

#include "agent_runs.h"
#include "trace/time_values.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Action = Intervention::Action;

struct TimedWay {
  const char* name;
  const char* api;
  const char* function = name;  // that makes the call
};

constexpr TimedWay sleeps[] = {{"sleep_for", "nanosleep"},
                               {"sleep_until_steady", "nanosleep"},
                               {"sleep_until_system", "nanosleep"},
                               {"with_usleep", "usleep"},
                               {"with_nanosleep", "nanosleep"},
                               {"clock_nanosleep_span", "clock_nanosleep"},
                               {"clock_nanosleep_moment", "clock_nanosleep"},
                               {"with_thrd_sleep", "thrd_sleep"},
                               {"interrupted_sleep", "nanosleep"},
                               {"timer_file_span", "timerfd_settime", "timer_file"},
                               {"timer_file_moment", "timerfd_settime", "timer_file"},
                               {"timer_file_date", "timerfd_settime", "timer_file"},
                               {"timer_signal", "timer_settime"},
                               {"interval_timer", "setitimer"}};

// They cannot take less than a second, and are only shortened.
constexpr TimedWay whole_seconds[] = {{"with_sleep", "sleep"}, {"with_alarm", "alarm"}};

constexpr TimedWay waits[] = {{"condition_wait_for", "pthread_cond_clockwait"},
                              {"condition_wait_until_steady", "pthread_cond_clockwait"},
                              {"condition_wait_until_system", "pthread_cond_timedwait"},
                              {"condition_with_predicate", "pthread_cond_clockwait"},
                              {"notified_in_vain", "pthread_cond_clockwait"},
                              {"any_condition", "pthread_cond_clockwait"},
                              {"future_wait_for", "futex_wait"},
                              {"future_wait_until", "futex_wait"},
                              {"counting_semaphore", "futex_wait"},
                              {"timed_mutex_for", "pthread_mutex_clocklock"},
                              {"timed_mutex_until", "pthread_mutex_timedlock"},
                              {"recursive_mutex", "pthread_mutex_clocklock"},
                              {"shared_mutex_alone", "pthread_rwlock_clockwrlock"},
                              {"shared_mutex_shared", "pthread_rwlock_timedrdlock"},
                              {"cond_timedwait", "pthread_cond_timedwait"},
                              {"cond_clockwait", "pthread_cond_clockwait"},
                              {"timed_semaphore", "sem_timedwait"},
                              {"timed_join", "pthread_timedjoin_np"},
                              {"with_poll", "poll"},
                              {"with_ppoll", "ppoll"},
                              {"with_select", "select"},
                              {"with_pselect", "pselect"},
                              {"with_epoll", "epoll_wait"},
                              {"receive_timeout", "setsockopt"},
                              {"signal_wait", "sigtimedwait"}};

// What a program is given with and without optimisation; the C++ library's part of it is inlined
// or not.
class ChangedTimes : public testing::TestWithParam<const char*> {
 protected:
  template <size_t size>
  void change(const TimedWay (&ways)[size], Action action, Duration duration,
              const char* expected) {
    for (const TimedWay& way : ways) {
      Intervention change = at(profile_, way.function, way.api);
      change.action = action;
      change.duration = duration;
      if (changes_.empty() || changes_.back().site != change.site) changes_.push_back(change);
      expected_.push_back(std::string(way.name) + ": " + expected);
    }
  }

  void expect_change(const std::vector<std::string>& arguments) {
    runs_.pass(arguments);
    const ExperimentResult result = runs_.intervene(changes_);
    EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
    for (const std::string& line : expected_)
      EXPECT_THAT(result.process.output.text(), testing::HasSubstr(line + "\n"));
    for (size_t i = 0; i < changes_.size(); ++i)
      EXPECT_GE(result.trace->interventions.at(i).fired, 1u) << to_string(changes_[i].site);
  }

  AgentRuns runs_{{GetParam(), "1", "0"}};
  const ExperimentResult profile_ = runs_.profile();
  std::vector<Intervention> changes_;
  std::vector<std::string> expected_;
};

// Signals are not seen to come.
bool is_judged(const TimedWay& way) {
  return way.api != std::string_view("setitimer") && way.api != std::string_view("timer_settime");
}

TEST_P(ChangedTimes, Unchanged_every_time_is_seen_to_run_out) {
  const Trace* const runs[] = {&*profile_.trace};
  const std::vector<TimeValue> values = time_values(runs);
  const auto check = [&](const TimedWay& way) {
    const SiteName site = at(profile_, way.function, way.api).site;
    const auto found = std::ranges::find(values, site, &TimeValue::site);
    ASSERT_NE(found, values.end()) << way.name;
    EXPECT_EQ(found->ran_out > 0, is_judged(way)) << way.name;
    EXPECT_TRUE(found->is_project) << way.name;
  };
  for (const TimedWay& way : sleeps) check(way);
  for (const TimedWay& way : waits)
    if (way.name != std::string_view("notified_in_vain")) check(way);
}

TEST_P(ChangedTimes, Scaled_down_every_wait_ends_early) {
  change(sleeps, Action::scale_time, 250us, "shorter");
  change(whole_seconds, Action::scale_time, 250us, "shorter");
  change(waits, Action::scale_time, 250us, "timed out");
  expect_change({"20000", "0"});
}

TEST_P(ChangedTimes, Replaced_by_less_every_wait_ends_early) {
  change(sleeps, Action::replace_time, 5ms, "shorter");
  change(whole_seconds, Action::replace_time, 5ms, "shorter");
  change(waits, Action::replace_time, 5ms, "timed out");
  expect_change({"20000", "0"});
}

// What is asked for must not be over before it is asked for, on a busy machine neither.
TEST_P(ChangedTimes, Scaled_up_every_wait_lasts_until_the_event) {
  change(sleeps, Action::scale_time, 6s, "longer");
  change(waits, Action::scale_time, 10000s, "came");
  expect_change({"30", "90"});
}

TEST_P(ChangedTimes, Replaced_by_more_every_wait_lasts_until_the_event) {
  change(sleeps, Action::replace_time, 180ms, "longer");
  change(waits, Action::replace_time, 50s, "came");
  expect_change({"30", "90"});
}

INSTANTIATE_TEST_SUITE_P(, ChangedTimes, testing::Values("timed_O0", "timed_O2"),
                         [](const auto& info) { return std::string(info.param).substr(6); });

}  // namespace
}  // namespace unflake
