#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "agent_runs.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Sampler samplers[] = {Sampler::stay, Sampler::random_walk, Sampler::pct, Sampler::pos,
                                Sampler::surw};

// A program whose threads take turns.
class Scheduled {
 public:
  explicit Scheduled(const std::string& action) : runs_({"scheduled", action}) {}
  explicit Scheduled(std::vector<std::string> argv) : runs_(std::move(argv)) {}

  ExperimentResult run(const Schedule& schedule) {
    Plan plan = AgentRuns::watching();
    plan.schedule = schedule;
    ExperimentResult result = runs_.run(plan, 90s);
    EXPECT_TRUE(result.trace && result.trace->controlled);
    return result;
  }

  ExperimentResult run(Sampler sampler, uint64_t seed) {
    Schedule schedule;
    schedule.sampler = sampler;
    schedule.seed = seed;
    return run(schedule);
  }

 private:
  AgentRuns runs_;
};

const ControlledRun& control_of(const ExperimentResult& result) {
  return *result.trace->controlled;
}

// The decisions of a run, as a list that leaves nothing to a sampler.
Schedule as_list(const ControlledRun& run) {
  Schedule schedule;
  for (size_t i = 0; i < run.points.size(); ++i)
    schedule.decisions.push_back({i, run.points[i].chosen});
  return schedule;
}

// The same up to this point, where another thread goes on.
Schedule other_choice_at(const ControlledRun& run, size_t point) {
  Schedule schedule = as_list(run);
  schedule.decisions.resize(point + 1);
  const SwitchPoint& there = run.points[point];
  const auto other = std::ranges::find_if(
      there.enabled, [&](ThreadNumber thread) { return thread != there.chosen; });
  schedule.decisions.back().thread = *other;
  return schedule;
}

TEST(Schedule, Everything_that_threads_wait_for_works_under_every_sampler) {
  Scheduled program("everything");
  for (const Sampler sampler : samplers)
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const ExperimentResult result = program.run(sampler, seed);
      EXPECT_EQ(result.process.output.text(), "all went well\n");
      EXPECT_THAT(control_of(result).not_repeatable, IsEmpty());
    }
}

TEST(Schedule, The_same_schedule_gives_the_same_run) {
  Scheduled program("everything");
  for (const Sampler sampler : samplers) {
    const ExperimentResult first = program.run(sampler, 7);
    for (int i = 0; i < 5; ++i) {
      const ExperimentResult again = program.run(sampler, 7);
      EXPECT_EQ(control_of(again).digest, control_of(first).digest);
      EXPECT_EQ(control_of(again).points_in_all, control_of(first).points_in_all);
      EXPECT_EQ(control_of(again).virtual_time, control_of(first).virtual_time);
    }
  }
}

TEST(Schedule, Different_seeds_give_different_orders) {
  Scheduled program("letters");
  std::set<std::string> texts;
  for (uint64_t seed = 1; seed <= 30; ++seed)
    texts.insert(program.run(Sampler::random_walk, seed).process.output.text());
  EXPECT_GT(texts.size(), 5u);
}

TEST(Schedule, A_list_of_decisions_takes_a_run_again) {
  Scheduled program("letters");
  const ExperimentResult drawn = program.run(Sampler::random_walk, 5);
  const ExperimentResult listed = program.run(as_list(control_of(drawn)));
  EXPECT_EQ(listed.process.output.text(), drawn.process.output.text());
  EXPECT_EQ(control_of(listed).digest, control_of(drawn).digest);
}

TEST(Schedule, Every_thread_that_was_enabled_can_be_chosen_instead) {
  Scheduled program("letters");
  const ControlledRun first = control_of(program.run(Sampler::stay, 1));
  ASSERT_GT(first.points.size(), 3u);
  for (size_t point = 0; point < first.points.size(); ++point) {
    if (first.points[point].enabled.size() < 2) continue;
    const Schedule schedule = other_choice_at(first, point);
    const ControlledRun other = control_of(program.run(schedule));
    ASSERT_GT(other.points.size(), point);
    EXPECT_EQ(other.points[point].enabled, first.points[point].enabled);
    EXPECT_EQ(other.points[point].chosen, schedule.decisions.back().thread);
  }
}

TEST(Schedule, A_switch_point_tells_its_thread_site_and_object) {
  Scheduled program("letters");
  const ExperimentResult result = program.run(Sampler::random_walk, 3);
  std::set<uint64_t> locked;
  for (const SwitchPoint& point : control_of(result).points) {
    ASSERT_NE(scheduled_thread(*result.trace, point.thread), nullptr);
    ASSERT_GE(point.enabled.size(), 1u);
    if (point.site >= result.trace->sites.size()) continue;
    const TracedSite& site = result.trace->sites[point.site];
    if (site.name.api == "pthread_mutex_lock") locked.insert(point.object);
  }
  EXPECT_EQ(locked.size(), 1u);
}

TEST(Schedule, Threads_can_be_exchanged_where_they_touch_shared_memory) {
  Scheduled program("tickets");
  Schedule schedule;
  schedule.find_accesses = true;
  const ExperimentResult profile = program.run(schedule);
  EXPECT_EQ(profile.process.output.text(), "2\n");
  schedule.find_accesses = false;
  schedule.accesses = control_of(profile).shared_accesses;
  ASSERT_FALSE(schedule.accesses.empty());
  schedule.sampler = Sampler::random_walk;
  std::set<std::string> texts;
  for (schedule.seed = 1; schedule.seed <= 40; ++schedule.seed) {
    const ExperimentResult result = program.run(schedule);
    texts.insert(result.process.output.text());
    EXPECT_THAT(control_of(result).not_repeatable, IsEmpty());
  }
  EXPECT_EQ(texts, (std::set<std::string>{"1\n", "2\n"}));
}

Schedule finding_accesses() {
  Schedule schedule;
  schedule.find_accesses = true;
  return schedule;
}

TEST(Schedule, What_all_touch_under_one_lock_is_no_switch_point) {
  const ControlledRun profile = control_of(Scheduled("one-lock").run(finding_accesses()));
  EXPECT_THAT(profile.shared_accesses, IsEmpty());
  EXPECT_GT(profile.guarded_accesses, 0u);
}

TEST(Schedule, What_is_touched_under_different_locks_is_a_switch_point) {
  const ControlledRun profile = control_of(Scheduled("two-locks").run(finding_accesses()));
  EXPECT_THAT(profile.shared_accesses, Not(IsEmpty()));
  EXPECT_EQ(profile.guarded_accesses, 0u);
}

TEST(Schedule, An_access_with_very_many_visits_is_a_switch_point_at_the_first_ones) {
  Scheduled program("very-many");
  const ControlledRun profile = control_of(program.run(finding_accesses()));
  EXPECT_THAT(profile.hot_accesses, Not(IsEmpty()));
  Schedule schedule;
  schedule.accesses = profile.shared_accesses;
  schedule.hot_accesses = profile.hot_accesses;
  const ExperimentResult result = program.run(schedule);
  EXPECT_EQ(result.process.output.text(), "240000\n");
  EXPECT_GT(control_of(result).points_in_all, exchanges_at_hot_access);
  EXPECT_LT(control_of(result).points_in_all,
            3 * exchanges_at_hot_access * schedule.accesses.size());
}

TEST(Schedule, Accesses_have_stacks_and_variables_when_races_are_watched) {
  Scheduled program("tickets");
  Schedule schedule;
  schedule.accesses = control_of(program.run(finding_accesses())).shared_accesses;
  schedule.watch_races = true;
  const ExperimentResult result = program.run(schedule);
  const ControlledRun& run = control_of(result);
  ASSERT_EQ(run.variables.size(), 1u);
  EXPECT_THAT(run.variables[0].name, HasSubstr("tickets"));
  ASSERT_FALSE(run.instructions.empty());
  EXPECT_EQ(run.instructions[0].size, 4);
  EXPECT_FALSE(run.instructions[0].is_atomic);
  size_t stacks = 0;
  for (const SwitchPoint& point : run.points) stacks += point.stack < result.trace->stacks.size();
  EXPECT_GE(stacks, 2u);
}

TEST(Schedule, Freed_memory_is_not_given_out_again_when_races_are_watched) {
  Schedule schedule;
  EXPECT_EQ(Scheduled("allocate").run(schedule).process.output.text(), "the same\n");
  schedule.watch_races = true;
  EXPECT_EQ(Scheduled("allocate").run(schedule).process.output.text(), "another\n");
}

TEST(Schedule, Calls_alone_do_not_show_what_memory_accesses_show) {
  Scheduled program("tickets");
  for (uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_EQ(program.run(Sampler::random_walk, seed).process.output.text(), "2\n");
}

// Also those of a thread that goes on while all others wait.
TEST(Schedule, Every_call_is_a_point_once_there_are_two_threads) {
  Scheduled program("letters");
  const ExperimentResult result = program.run(Sampler::stay, 1);
  std::map<std::string, int> calls;
  for (const SwitchPoint& point : control_of(result).points)
    if (point.site < result.trace->sites.size()) ++calls[result.trace->sites[point.site].name.api];
  EXPECT_EQ(calls["pthread_mutex_lock"], 6);
}

TEST(Schedule, A_deadlock_ends_the_run_at_once_and_tells_who_waits_for_whom) {
  Scheduled program("forks");
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const ExperimentResult result = program.run(Sampler::random_walk, seed);
    const ControlledRun& run = control_of(result);
    if (run.deadlock.empty()) continue;
    EXPECT_EQ(result.outcome.kind, OutcomeKind::timeout);
    EXPECT_LT(result.process.duration, 5s);
    ASSERT_EQ(run.deadlock.size(), 3u);  // main joins one of them
    EXPECT_EQ(run.deadlock[1].held_by, run.deadlock[2].thread);
    EXPECT_EQ(run.deadlock[2].held_by, run.deadlock[1].thread);
    EXPECT_EQ(result.trace->sites[run.deadlock[1].site].name.function,
              "(anonymous namespace)::eat");
    EXPECT_THAT(result.outcome.failures.front().message, HasSubstr("deadlock: main waits at"));
    return;
  }
  FAIL() << "no deadlock";
}

TEST(Schedule, Waiting_for_what_nobody_will_do_is_a_deadlock_too) {
  const ExperimentResult result = Scheduled("nobody").run(Sampler::stay, 1);
  ASSERT_EQ(control_of(result).deadlock.size(), 1u);
  EXPECT_EQ(control_of(result).deadlock[0].held_by, std::nullopt);
  EXPECT_THAT(result.outcome.failures.front().message, HasSubstr("nobody is left"));
}

TEST(Schedule, Sleeping_takes_no_time) {
  const ExperimentResult result = Scheduled("sleep").run(Sampler::random_walk, 1);
  EXPECT_EQ(result.process.output.text(), "slept\n");
  EXPECT_LT(result.process.duration, 5s);
  EXPECT_GE(control_of(result).virtual_time, 10s);
}

TEST(Schedule, All_waits_with_a_time_out_run_out_in_virtual_time) {
  Scheduled program("time-out");
  for (const Sampler sampler : samplers) {
    const ExperimentResult result = program.run(sampler, 1);
    EXPECT_EQ(result.process.output.text(), "timed out\n");
    EXPECT_LT(result.process.duration, 3s);
    EXPECT_THAT(control_of(result).not_repeatable, IsEmpty());
  }
}

TEST(Schedule, Timers_go_off_in_virtual_time) {
  const ExperimentResult ticked = Scheduled("timers").run(Sampler::stay, 1);
  EXPECT_EQ(ticked.process.output.text(), "ticked\n");
  EXPECT_LT(ticked.process.duration, 5s);
  EXPECT_THAT(control_of(ticked).not_repeatable, IsEmpty());
  const ExperimentResult alarmed = Scheduled("alarms").run(Sampler::stay, 1);
  EXPECT_EQ(alarmed.process.output.text(), "alarmed\n");
  EXPECT_LT(alarmed.process.duration, 5s);
}

std::set<std::string> texts_with(Scheduled program, Duration stall) {
  std::set<std::string> texts;
  Schedule schedule;
  schedule.sampler = Sampler::random_walk;
  schedule.stall = stall;
  for (schedule.seed = 1; schedule.seed <= 30; ++schedule.seed)
    texts.insert(program.run(schedule).process.output.text());
  return texts;
}

TEST(Schedule, Time_passes_over_threads_that_could_go_on_only_as_far_as_they_may_be_stalled) {
  EXPECT_EQ(texts_with(Scheduled("worker"), 0ms), std::set<std::string>{"in time\n"});
  EXPECT_EQ(texts_with(Scheduled("worker"), 20ms), std::set<std::string>{"in time\n"});
  EXPECT_EQ(texts_with(Scheduled("worker"), 100ms), (std::set<std::string>{"in time\n", "late\n"}));
}

TEST(Schedule, A_timer_goes_off_before_a_thread_that_may_be_stalled_that_long) {
  EXPECT_EQ(texts_with(Scheduled("timer-race"), 0ms), std::set<std::string>{"mt\n"});
  EXPECT_EQ(texts_with(Scheduled("timer-race"), 100ms), (std::set<std::string>{"mt\n", "tm\n"}));
}

TEST(Schedule, Who_looks_at_the_clock_again_and_again_sees_time_pass) {
  const ExperimentResult result = Scheduled("clocks").run(Sampler::stay, 1);
  EXPECT_EQ(result.process.output.text(), "looked\n");
}

TEST(Schedule, Who_yields_again_and_again_lets_others_go_on_and_time_pass) {
  Scheduled program("yield");
  for (const Sampler sampler : samplers)
    EXPECT_EQ(program.run(sampler, 1).process.output.text(), "yielded\n");
}

// As programs do that poll without waiting, or look at the clock with every message.
TEST(Schedule, Who_looks_and_goes_on_takes_no_time_that_others_would_run_out_of) {
  Scheduled program("glance");
  for (const Sampler sampler : samplers)
    EXPECT_EQ(program.run(sampler, 1).process.output.text(), "told\n");
}

TEST(Schedule, Addresses_and_random_numbers_are_the_same_in_every_run) {
  Scheduled program("vary");
  const std::string first = program.run(Sampler::stay, 1).process.output.text();
  EXPECT_THAT(first, HasSubstr("0x"));
  EXPECT_EQ(program.run(Sampler::stay, 1).process.output.text(), first);
}

TEST(Schedule, The_end_of_main_is_a_choice_like_any_other) {
  Scheduled program("leave");
  std::set<std::string> texts;
  for (uint64_t seed = 1; seed <= 300 && texts.size() < 2; ++seed)
    texts.insert(program.run(Sampler::random_walk, seed).process.output.text());
  EXPECT_EQ(texts, (std::set<std::string>{"", "a thread\n"}));
}

TEST(Schedule, A_call_out_of_sight_does_not_hold_the_others_up_and_is_named) {
  const ExperimentResult result = Scheduled("block").run(Sampler::stay, 1);
  EXPECT_EQ(result.process.output.text(), "blocked\n");
  EXPECT_THAT(control_of(result).not_repeatable, HasSubstr("blocked in a call"));
}

TEST(Schedule, A_loop_that_only_looks_at_memory_loses_its_turn) {
  const ExperimentResult result = Scheduled("spin").run(Sampler::stay, 1);
  EXPECT_EQ(result.process.output.text(), "spun\n");
  EXPECT_THAT(control_of(result).not_repeatable, HasSubstr("computed without a switch point"));
}

TEST(Schedule, A_child_takes_turns_with_its_parent) {
  for (const Sampler sampler : samplers) {
    const ExperimentResult result = Scheduled("child").run(sampler, 1);
    EXPECT_EQ(result.process.output.text(), "a child\n");
    EXPECT_THAT(control_of(result).not_repeatable, IsEmpty());
  }
}

// The texts of some seeds, each of which gives the same run again.
std::set<std::string> orders_of_processes(const std::string& action) {
  Scheduled program(action);
  std::set<std::string> texts;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const ExperimentResult first = program.run(Sampler::random_walk, seed);
    const ExperimentResult again = program.run(Sampler::random_walk, seed);
    EXPECT_EQ(first.outcome.kind, OutcomeKind::pass);
    EXPECT_THAT(control_of(first).not_repeatable, IsEmpty());
    EXPECT_EQ(again.process.output.text(), first.process.output.text());
    EXPECT_EQ(control_of(again).digest, control_of(first).digest);
    EXPECT_EQ(control_of(again).virtual_time, control_of(first).virtual_time);
    texts.insert(first.process.output.text());
  }
  return texts;
}

TEST(Schedule, Threads_of_all_processes_take_turns_and_share_locks_and_clock) {
  EXPECT_GT(orders_of_processes("family").size(), 2u);
}

TEST(Schedule, Programs_that_the_test_starts_take_turns_with_it) {
  EXPECT_GT(orders_of_processes("programs").size(), 1u);
}

TEST(Schedule, Processes_can_be_in_a_deadlock_with_each_other) {
  Scheduled program("family-quarrel");
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const ExperimentResult result = program.run(Sampler::random_walk, seed);
    const ControlledRun& run = control_of(result);
    if (run.deadlock.empty()) continue;
    EXPECT_EQ(result.outcome.kind, OutcomeKind::timeout);
    EXPECT_LT(result.process.duration, 5s);
    ASSERT_EQ(run.deadlock.size(), 2u);
    EXPECT_EQ(run.deadlock[0].held_by, run.deadlock[1].thread);
    EXPECT_EQ(run.deadlock[1].held_by, run.deadlock[0].thread);
    return;
  }
  FAIL() << "no deadlock";
}

TEST(Schedule, A_program_that_cannot_be_controlled_is_waited_for_in_real_time_and_named) {
  const ExperimentResult result = Scheduled("static-program").run(Sampler::stay, 1);
  EXPECT_EQ(result.process.output.text(), "ended\n");
  EXPECT_THAT(control_of(result).not_repeatable, HasSubstr("static_agent"));
}

// A server that answers every client, late.
class SlowServer {
 public:
  SlowServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    ::bind(socket_, reinterpret_cast<const sockaddr*>(&own), size);
    ::listen(socket_, 16);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size);
    ::setenv("UNFLAKE_TEST_PORT", std::to_string(ntohs(own.sin_port)).c_str(), 1);
  }
  ~SlowServer() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  void start() {
    thread_ = std::thread([this] {
      for (int client; (client = ::accept(socket_, nullptr, nullptr)) >= 0; ::close(client)) {
        ::poll(nullptr, 0, 50);
        ::send(client, "!", 1, MSG_NOSIGNAL);
      }
    });
  }

 private:
  int socket_;
  std::thread thread_;
};

TEST(Schedule, Who_waits_for_somebody_outside_waits_in_real_time) {
  SlowServer server;
  Scheduled program("ask-outside");  // before there are threads
  server.start();
  for (const Sampler sampler : samplers) {
    const ExperimentResult result = program.run(sampler, 1);
    EXPECT_EQ(result.process.output.text(), "answered\n");
    EXPECT_THAT(control_of(result).not_repeatable, HasSubstr("outside of the test"));
  }
}

TEST(Schedule, A_process_that_crashes_or_is_killed_holds_nobody_up) {
  Scheduled program("lost-children");
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const ExperimentResult result = program.run(Sampler::random_walk, seed);
    EXPECT_EQ(result.process.output.text(), "lost\n");
    EXPECT_LT(result.process.duration, 5s);
  }
}

TEST(Schedule, The_time_stamp_counter_is_a_clock_like_others) {
  const ExperimentResult result = Scheduled("stamps").run(Sampler::stay, 1);
  EXPECT_EQ(result.process.output.text(), "stamped\n");
}

TEST(Schedule, Threads_of_the_C_library_read_time_stamps_unharmed) {
  const ExperimentResult result = Scheduled("names").run(Sampler::stay, 1);
  EXPECT_EQ(result.process.output.text(), "looked up\n");
}

TEST(Schedule, Random_numbers_from_everywhere_are_those_of_the_seed) {
  Scheduled program("random");
  const std::string first = program.run(Sampler::stay, 1).process.output.text();
  EXPECT_EQ(std::ranges::count(first, ' '), 6);
  EXPECT_EQ(program.run(Sampler::stay, 1).process.output.text(), first);
  EXPECT_NE(program.run(Sampler::stay, 2).process.output.text(), first);
}

TEST(Schedule, Time_outs_of_sockets_run_out_in_virtual_time) {
  const ExperimentResult result = Scheduled("silent-sockets").run(Sampler::stay, 1);
  EXPECT_EQ(result.process.output.text(), "silent\n");
  EXPECT_LT(result.process.duration, 5s);
  EXPECT_THAT(control_of(result).not_repeatable, IsEmpty());
}

TEST(Schedule, Signals_between_threads_and_processes_come_at_the_same_point_in_every_run) {
  Scheduled program("signals");
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const ExperimentResult first = program.run(Sampler::random_walk, seed);
    const ExperimentResult again = program.run(Sampler::random_walk, seed);
    EXPECT_EQ(first.process.output.text(), "heard\n");
    EXPECT_THAT(control_of(first).not_repeatable, IsEmpty());
    EXPECT_EQ(control_of(again).digest, control_of(first).digest);
  }
}

// --- What programs do to themselves, and the run must survive ---

struct Trouble {
  std::string action;
  std::string output;
  std::string reason;  // a part of why the run may be another one next time; empty: it is not
};

class Troubled : public testing::TestWithParam<Trouble> {};

TEST_P(Troubled, Run_ends_and_tells) {
  Scheduled program(GetParam().action);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const ExperimentResult result = program.run(Sampler::random_walk, seed);
    EXPECT_EQ(result.process.output.text(), GetParam().output);
    EXPECT_LT(result.process.duration, 60s);
    if (GetParam().reason.empty())
      EXPECT_THAT(control_of(result).not_repeatable, IsEmpty());
    else
      EXPECT_THAT(control_of(result).not_repeatable, HasSubstr(GetParam().reason));
  }
}

INSTANTIATE_TEST_SUITE_P(Schedule, Troubled,
                         testing::Values(Trouble{"cancel", "cancelled\n", ""},
                                         Trouble{"many-threads", "started\n", ""},
                                         Trouble{"threads-at-once", "started\n", ""},
                                         Trouble{"leave-main", "left\n", ""},
                                         Trouble{"exit-elsewhere", "exited\n", ""},
                                         Trouble{"traced", "traced\n", "blocked in a call"},
                                         Trouble{"vfork", "xx\n", "neither fork nor posix_spawn"}),
                         [](const auto& info) {
                           std::string name = info.param.action;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(Schedule, A_long_computation_ends_whether_or_not_it_loses_its_turn) {
  const ExperimentResult result = Scheduled("compute").run(Sampler::stay, 1);
  EXPECT_EQ(result.process.output.text(), "computed\n");
}

TEST(Schedule, A_program_that_forbids_what_the_agent_needs_ends_and_the_run_says_how) {
  const ExperimentResult result = Scheduled("no-futexes").run(Sampler::stay, 1);
  EXPECT_EQ(result.outcome.kind, OutcomeKind::crash);
  EXPECT_LT(result.process.duration, 10s);
}

TEST(Schedule, A_realtime_priority_changes_nothing) {
  Scheduled program("realtime");
  const std::string first = program.run(Sampler::random_walk, 3).process.output.text();
  EXPECT_EQ(first, Scheduled("letters").run(Sampler::random_walk, 3).process.output.text());
}

// Written before the program was changed: what it names is not there any more.
TEST(Schedule, Decisions_about_what_is_not_there_are_passed_over) {
  Schedule schedule;
  for (uint64_t point = 0; point < 100'000; point += 3) schedule.decisions.push_back({point, 900});
  const ExperimentResult result = Scheduled("letters").run(schedule);
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_EQ(result.process.output.text().size(), 7u);
}

TEST(Schedule, A_program_with_ThreadSanitizer_is_not_controlled_and_says_why) {
  const ExperimentResult result =
      Scheduled(std::vector<std::string>{"scheduled_tsan", "letters"}).run(Sampler::stay, 1);
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_THAT(control_of(result).not_repeatable, HasSubstr("ThreadSanitizer"));
}

TEST(Schedule, Every_timing_api_returns_what_it_would_without_a_schedule) {
  const ExperimentResult result =
      Scheduled(std::vector<std::string>{"every_api"}).run(Sampler::stay, 1);
  EXPECT_EQ(result.process.output.text(), "every call returned what it should\n")
      << deadlock_text(*result.trace);
}

}  // namespace
}  // namespace unflake
