#include "search/schedule/races.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "protocol/agent_protocol.h"
#include "support/controlled_test.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t seats = 0x1000, flag = 0x2000, door = 0x3000, other_door = 0x3100, bell = 0x4000;

// A run written down by hand, as it happened: each thread does one thing after the other, and
// whoever does something has been chosen for it.
class WrittenRun {
 public:
  WrittenRun() { trace_.controlled.emplace(); }

  WrittenRun& spawn(ThreadNumber creator, ThreadNumber created) {
    act(creator, site("main.cc:1", "pthread_create", "thread", protocol::Api::pthread_create), 0);
    threads_ = std::max(threads_, created + 1);
    return act(creator,
               site("main.cc:1", "pthread_create", "thread", protocol::Api::pthread_create), 0);
  }
  WrittenRun& join(ThreadNumber thread, ThreadNumber joined) {
    return act(thread, site("main.cc:9", "pthread_join", "thread", protocol::Api::pthread_join),
               joined | uint64_t{1} << 61, false);
  }
  WrittenRun& lock(ThreadNumber thread, uint64_t mutex) {
    return act(thread,
               site("a.cc:1", "pthread_mutex_lock", "lock", protocol::Api::pthread_mutex_lock),
               mutex);
  }
  WrittenRun& unlock(ThreadNumber thread, uint64_t mutex) {
    return act(thread,
               site("a.cc:2", "pthread_mutex_unlock", "lock", protocol::Api::pthread_mutex_unlock),
               mutex);
  }
  WrittenRun& read_lock(ThreadNumber thread, uint64_t lock) {
    return act(
        thread,
        site("a.cc:3", "pthread_rwlock_rdlock", "lock", protocol::Api::pthread_rwlock_rdlock), lock,
        false);
  }
  WrittenRun& read_unlock(ThreadNumber thread, uint64_t lock) {
    return act(
        thread,
        site("a.cc:4", "pthread_rwlock_unlock", "lock", protocol::Api::pthread_rwlock_unlock),
        lock);
  }
  // In two parts: the mutex is given back, and taken again.
  WrittenRun& wait(ThreadNumber thread, uint64_t condition) {
    return act(thread,
               site("a.cc:5", "pthread_cond_wait", "condition", protocol::Api::pthread_cond_wait),
               condition);
  }
  WrittenRun& post(ThreadNumber thread, uint64_t semaphore) {
    return act(thread, site("a.cc:6", "sem_post", "semaphore", protocol::Api::sem_post), semaphore);
  }
  WrittenRun& take(ThreadNumber thread, uint64_t semaphore) {
    return act(thread, site("a.cc:7", "sem_wait", "semaphore", protocol::Api::sem_wait), semaphore);
  }
  WrittenRun& meet(ThreadNumber thread, uint64_t barrier) {
    return act(
        thread,
        site("a.cc:8", "pthread_barrier_wait", "barrier", protocol::Api::pthread_barrier_wait),
        barrier);
  }

  WrittenRun& read(ThreadNumber thread, const std::string& place, uint64_t address) {
    return act(thread, instruction(place, true, false, false), address, false);
  }
  WrittenRun& write(ThreadNumber thread, const std::string& place, uint64_t address) {
    return act(thread, instruction(place, false, true, false), address);
  }
  WrittenRun& load(ThreadNumber thread, const std::string& place, uint64_t address) {
    return act(thread, instruction(place, true, false, true), address, false);
  }
  WrittenRun& store(ThreadNumber thread, const std::string& place, uint64_t address) {
    return act(thread, instruction(place, false, true, true), address);
  }
  WrittenRun& exchange(ThreadNumber thread, const std::string& place, uint64_t address) {
    return act(thread, instruction(place, true, true, true), address);
  }

  // "a.cc:1 a.cc:2", in the order of names.
  std::vector<std::string> races() const {
    AtomicSites atomic_sites;
    add_atomic_sites(trace_, atomic_sites);
    std::vector<std::string> found;
    for (const RacyPair& pair : find_races(trace_, atomic_sites)) {
      std::string a = to_string(trace_.sites[pair.first.site].name);
      std::string b = to_string(trace_.sites[pair.second.site].name);
      found.push_back(std::min(a, b) + " " + std::max(a, b));
    }
    std::ranges::sort(found);
    found.erase(std::ranges::unique(found).begin(), found.end());
    return found;
  }

  Trace& trace() { return trace_; }

 private:
  uint32_t site(const std::string& place, const std::string& api, const std::string& group,
                protocol::Api number) {
    TracedSite added;
    added.name.file = place.substr(0, place.find(':'));
    added.name.line = std::stoi(place.substr(place.find(':') + 1));
    added.name.api = api;
    added.group = group;
    added.api = static_cast<uint16_t>(number);
    const auto known = std::ranges::find(trace_.sites, added.name, &TracedSite::name);
    if (known != trace_.sites.end()) return static_cast<uint32_t>(known - trace_.sites.begin());
    trace_.sites.push_back(added);
    return static_cast<uint32_t>(trace_.sites.size() - 1);
  }

  uint32_t instruction(const std::string& place, bool reads, bool writes, bool is_atomic) {
    const uint32_t number = site(place, "", "probe", protocol::Api{});
    auto& all = trace_.controlled->instructions;
    if (std::ranges::count(all, number, &AccessInstruction::site) == 0)
      all.push_back({number, 4, reads, writes, is_atomic});
    return number;
  }

  WrittenRun& act(ThreadNumber thread, uint32_t site, uint64_t object, bool writes = true) {
    SwitchPoint point;
    point.thread = point.chosen = thread;
    point.site = site;
    point.object = object;
    point.writes = writes;
    for (ThreadNumber i = 0; i < threads_; ++i) point.enabled.push_back(i);
    trace_.controlled->points.push_back(point);
    return *this;
  }

  Trace trace_;
  ThreadNumber threads_ = 1;
};

WrittenRun two_threads() {
  WrittenRun run;
  return run.spawn(0, 1).spawn(0, 2);
}

TEST(Races, Two_threads_that_write_without_an_order_race) {
  WrittenRun run = two_threads().write(1, "x.cc:1", seats).write(2, "x.cc:2", seats);
  EXPECT_THAT(run.races(), ElementsAre("x.cc:1 x.cc:2"));
}

TEST(Races, Two_reads_do_not_race) {
  WrittenRun run = two_threads().read(1, "x.cc:1", seats).read(2, "x.cc:2", seats);
  EXPECT_THAT(run.races(), IsEmpty());
}

TEST(Races, A_read_and_a_write_race_in_either_order) {
  EXPECT_THAT(two_threads().read(1, "x.cc:1", seats).write(2, "x.cc:2", seats).races(),
              ElementsAre("x.cc:1 x.cc:2"));
  EXPECT_THAT(two_threads().write(1, "x.cc:1", seats).read(2, "x.cc:2", seats).races(),
              ElementsAre("x.cc:1 x.cc:2"));
}

TEST(Races, One_lock_orders_and_two_do_not) {
  const auto run = [](uint64_t second) {
    return two_threads()
        .lock(1, door)
        .write(1, "x.cc:1", seats)
        .unlock(1, door)
        .lock(2, second)
        .write(2, "x.cc:2", seats)
        .unlock(2, second)
        .races();
  };
  EXPECT_THAT(run(door), IsEmpty());
  EXPECT_THAT(run(other_door), ElementsAre("x.cc:1 x.cc:2"));
}

TEST(Races, Readers_of_a_lock_are_not_ordered_among_themselves) {
  WrittenRun run = two_threads()
                       .read_lock(1, door)
                       .write(1, "x.cc:1", seats)
                       .read_unlock(1, door)
                       .read_lock(2, door)
                       .write(2, "x.cc:2", seats)
                       .read_unlock(2, door);
  EXPECT_THAT(run.races(), ElementsAre("x.cc:1 x.cc:2"));
}

TEST(Races, Creation_and_join_order) {
  WrittenRun run;
  run.spawn(0, 1)
      .write(0, "x.cc:1", flag)  // after the creation
      .write(1, "x.cc:2", flag)
      .write(1, "x.cc:3", seats)
      .join(0, 1)
      .write(0, "x.cc:4", seats);
  EXPECT_THAT(run.races(), ElementsAre("x.cc:1 x.cc:2"));
  WrittenRun before;
  before.spawn(0, 1).write(0, "x.cc:1", seats).spawn(0, 2).write(2, "x.cc:2", seats);
  EXPECT_THAT(before.races(), IsEmpty());
}

TEST(Races, The_mutex_of_a_condition_is_given_back_and_taken_again) {
  WrittenRun run = two_threads()
                       .lock(1, door)
                       .write(1, "x.cc:1", seats)
                       .wait(1, bell)
                       .lock(2, door)
                       .write(2, "x.cc:2", seats)
                       .unlock(2, door)
                       .wait(1, bell)
                       .write(1, "x.cc:3", seats)
                       .unlock(1, door);
  EXPECT_THAT(run.races(), IsEmpty());
}

TEST(Races, A_semaphore_and_a_barrier_order) {
  EXPECT_THAT(two_threads()
                  .write(1, "x.cc:1", seats)
                  .post(1, bell)
                  .take(2, bell)
                  .write(2, "x.cc:2", seats)
                  .races(),
              IsEmpty());
  EXPECT_THAT(two_threads()
                  .write(1, "x.cc:1", seats)
                  .meet(1, bell)
                  .write(2, "x.cc:2", flag)
                  .meet(2, bell)
                  .write(2, "x.cc:3", seats)
                  .meet(1, bell)
                  .write(1, "x.cc:4", flag)
                  .races(),
              IsEmpty());
}

TEST(Races, Atomics_do_not_race_and_order_what_came_before) {
  WrittenRun run = two_threads()
                       .write(1, "x.cc:1", seats)
                       .store(1, "x.cc:2", flag)
                       .load(2, "x.cc:3", flag)
                       .write(2, "x.cc:4", seats);
  EXPECT_THAT(run.races(), IsEmpty());
}

TEST(Races, A_plain_access_races_with_an_atomic_one) {
  WrittenRun run = two_threads();
  run.write(1, "x.cc:1", seats).write(1, "x.cc:2", flag).read(2, "x.cc:3", flag);
  run.write(2, "x.cc:4", seats);
  EXPECT_THAT(run.races(), ElementsAre("x.cc:1 x.cc:4", "x.cc:2 x.cc:3"));
}

// A store of an atomic variable is a plain instruction; an exchange of the same one tells.
TEST(Races, Whatever_touches_what_is_exchanged_atomically_is_atomic) {
  WrittenRun run = two_threads()
                       .exchange(1, "x.cc:5", flag)
                       .write(1, "x.cc:1", seats)
                       .write(1, "x.cc:2", flag)
                       .read(2, "x.cc:3", flag)
                       .write(2, "x.cc:4", seats);
  EXPECT_THAT(run.races(), IsEmpty());
}

TEST(Races, The_type_of_a_variable_tells_that_it_is_atomic) {
  WrittenRun run = two_threads().write(1, "x.cc:1", flag).read(2, "x.cc:2", flag);
  run.trace().controlled->variables.push_back({flag, "flag", "atomic_int", true});
  EXPECT_THAT(run.races(), IsEmpty());
}

TEST(Races, Accesses_meet_where_their_bytes_do) {
  EXPECT_THAT(two_threads().write(1, "x.cc:1", seats).write(2, "x.cc:2", seats + 2).races(),
              ElementsAre("x.cc:1 x.cc:2"));
  EXPECT_THAT(two_threads().write(1, "x.cc:1", seats).write(2, "x.cc:2", seats + 4).races(),
              IsEmpty());
}

RaceReport races_in(const simulated::ControlledProgram& program) {
  MockExecutor executor = simulated::executor_of(program);
  auto test = std::make_shared<unflake::Test>();
  test->id = {"simulated", "Controlled"};
  EventStream events;
  RaceOptions options;
  options.limits.budget = 20s;
  TrialRunner runner(executor, test, events);
  auto report = look_for_races(runner, options);
  EXPECT_TRUE(report.has_value());
  return std::move(*report);
}

TEST(RaceSearch, Unites_what_runs_under_several_schedules_show) {
  simulated::ControlledProgram program = simulated::lost_update();
  program.memory_needs_accesses = true;
  const RaceReport report = races_in(program);
  EXPECT_EQ(report.answer, RaceReport::Answer::found);
  EXPECT_EQ(report.runs, 20u);
  ASSERT_FALSE(report.races.empty());
  EXPECT_TRUE(report.races.front().first.writes);
  EXPECT_GT(report.races.front().runs, 0u);
}

TEST(RaceSearch, Is_done_when_no_memory_is_shared) {
  simulated::ControlledProgram program = simulated::crossed_locks();
  const RaceReport report = races_in(program);
  EXPECT_EQ(report.answer, RaceReport::Answer::none);
  EXPECT_EQ(report.access_sites, 0u);
  EXPECT_EQ(report.runs, 0u);
}

}  // namespace
}  // namespace unflake
