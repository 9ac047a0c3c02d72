#include "trace/translation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/fake_agent.h"
#include "support/fake_image.h"

namespace unflake {
namespace {

using namespace protocol;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t t0 = FakeMemory::made_ns;

Frame frame(const std::string& function, const std::string& file, int line, uint64_t start,
            bool inlined = false) {
  return {function, file, line, start, inlined};
}

// A test in one executable, with code that the test below says something about.
class Raising : public testing::Test {
 protected:
  Raising()
      : image_(std::make_shared<FakeImage>("/build/server_test")),
        code_(ProjectCode({}),
              [this](const std::string& path) -> Result<std::shared_ptr<const unflake::Image>> {
                if (path == image_->path()) return std::shared_ptr<const unflake::Image>(image_);
                return internal_error("no such file", path);
              }) {
    number_ = agent_.image("/build/server_test");
    process_ = agent_.process(number_, t0 + 1000);
    main_ = agent_.thread(process_, main_thread, main_thread, t0 + 2000);
  }

  Address at(uint64_t offset) const { return make_address(number_, offset); }
  Trace raised() { return raise(memory_.read(), plan_, code_, test_); }

  std::vector<std::string> sites_of(const Trace& trace) {
    std::vector<std::string> names;
    for (const TracedSite& site : trace.sites) names.push_back(to_string(site.name));
    return names;
  }

  std::shared_ptr<FakeImage> image_;
  CodeMap code_;
  FakeMemory memory_{2, 2};
  FakeAgent agent_{memory_.report()};
  LoweredPlan plan_;
  TestMemory test_;
  uint32_t number_, process_, main_;
};

TEST_F(Raising, A_call_is_named_by_the_line_before_its_return_address) {
  image_->set(0x100, {frame("Queue::pop", "/src/queue.cc", 57, 0x100)});
  image_->set(0x120, {frame("Queue::push", "/src/queue.cc", 80, 0x120)});
  agent_.past(main_, agent_.site(at(0x120), Api::pthread_cond_wait), 3, 5'000'000);
  const Trace trace = raised();
  EXPECT_THAT(sites_of(trace), ElementsAre("queue.cc:57:pthread_cond_wait"));
  EXPECT_EQ(trace.sites[0].location, "src/queue.cc:57 in Queue::pop");
  EXPECT_EQ(trace.sites[0].group, "condition");
  ASSERT_EQ(trace.visits.size(), 1u);
  EXPECT_EQ(trace.visits[0].visits, 3u);
  EXPECT_EQ(trace.visits[0].waited, Duration(5000));
  EXPECT_THAT(trace.problems, IsEmpty());
}

// As the agent of an interpreter would write it: none of the script is in an image.
TEST_F(Raising, Code_that_is_in_no_image_has_the_names_that_its_agent_gave) {
  memory_.report().processes[process_].agent = AgentKind::python;
  const Address get = agent_.name("Queue.get", "/src/app/queue.py", 40);
  const Address wait = agent_.name("Condition.wait", "/usr/lib/python3.11/threading.py", 320);
  const Address test = agent_.name("test_queue", "/src/app/test_queue.py", 12);
  const uint32_t stack = agent_.stack({wait, get, test});
  const uint32_t worker =
      agent_.thread(process_, 21, 22, t0 + 3000, main_, agent_.stack({test}), 0);
  const uint32_t site = agent_.site(wait, Api::sem_wait);
  agent_.past(worker, site, 1);
  agent_.event(worker, site, t0 + 4000, t0 + 5000, stack);
  agent_.failure(protocol::FailureKind::exception, worker, t0 + 6000, {get, test});
  const Trace trace = raised();
  EXPECT_THAT(trace.problems, IsEmpty());
  EXPECT_EQ(trace.processes[0].agent, "python");
  EXPECT_THAT(sites_of(trace), ElementsAre("queue.py:40:sem_wait"));
  EXPECT_EQ(trace.sites[0].location, "app/queue.py:40 in Queue.get");
  ASSERT_EQ(trace.calls.size(), 1u);
  const std::vector<TracedFrame>& frames = trace.stacks[trace.calls[0].stack].frames;
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0].source[0].function, "Condition.wait");
  EXPECT_EQ(frames[0].first_project, no_index);
  EXPECT_EQ(frames[1].source[0].function, "Queue.get");
  EXPECT_EQ(frames[1].first_project, 0u);
  EXPECT_EQ(trace.threads[1].name.text, "test_queue.py:12#1");
  ASSERT_EQ(trace.failures.size(), 1u);
  EXPECT_EQ(trace.failures[0].line, 40);
}

// The numbers of names differ from run to run.
TEST_F(Raising, A_named_site_is_the_same_in_every_run) {
  const Address first = agent_.name("first", "/src/a.py", 1);
  agent_.past(main_, agent_.site(first, Api::nanosleep), 1);
  EXPECT_THAT(sites_of(raised()), ElementsAre("a.py:1:nanosleep"));
  FakeMemory later;
  FakeAgent agent(later.report());
  const uint32_t process = agent.process(agent.image("/build/server_test"), t0 + 1000);
  const uint32_t main = agent.thread(process, main_thread, main_thread, t0 + 2000);
  const Address second = agent.name("second", "/src/a.py", 2);
  const Address again = agent.name("first", "/src/a.py", 1);
  agent.past(main, agent.site(again, Api::nanosleep), 1);
  agent.past(main, agent.site(second, Api::nanosleep), 1);
  EXPECT_THAT(sites_of(raise(later.read(), plan_, code_, test_)),
              testing::UnorderedElementsAre("a.py:1:nanosleep", "a.py:2:nanosleep"));
}

TEST_F(Raising, No_plan_can_act_at_code_that_is_in_no_image) {
  agent_.past(main_, agent_.site(agent_.name("f", "/src/a.py", 1), Api::nanosleep), 1);
  const Trace trace = raised();
  unflake::Plan plan;
  plan.interventions.resize(1);
  plan.interventions[0].site = trace.sites[0].name;
  const auto refused = lower(plan, code_, test_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("in no program or library file"));
}

TEST_F(Raising, What_a_header_of_the_system_inlined_is_passed_over) {
  image_->set(0x100,
              {frame("std::lock_guard::lock_guard", "/usr/include/c++/12/mutex", 229, 0x80, true),
               frame("Queue::pop", "/src/queue.cc", 57, 0x80)});
  agent_.past(main_, agent_.site(at(0x110), Api::pthread_mutex_lock), 1);
  EXPECT_THAT(sites_of(raised()), ElementsAre("queue.cc:57:pthread_mutex_lock"));
}

TEST_F(Raising, A_stack_tells_more_than_the_agents_own_attribution) {
  image_->set(0x100, {frame("std::wait", "/usr/include/c++/12/condition_variable", 100, 0x100)});
  image_->set(0x200, {frame("Queue::pop", "/src/queue.cc", 57, 0x200)});
  image_->set(0x300, {frame("Pool::take", "/src/pool.cc", 12, 0x300)});
  const uint32_t shared = agent_.site(at(0x110), Api::pthread_cond_wait);
  const uint32_t pop = agent_.stack({at(0x110), at(0x210)});
  const uint32_t take = agent_.stack({at(0x110), at(0x310)});
  agent_.event(main_, shared, t0 + 3000, t0 + 4000, pop);
  agent_.event(main_, shared, t0 + 5000, t0 + 6000, take);
  agent_.event(main_, shared, t0 + 7000, t0 + 8000, take);
  agent_.tally(main_, shared, 3, 3000);
  const Trace trace = raised();
  EXPECT_THAT(sites_of(trace),
              ElementsAre("queue.cc:57:pthread_cond_wait", "pool.cc:12:pthread_cond_wait"));
  EXPECT_EQ(trace.calls[1].site, 1u);
  ASSERT_EQ(trace.visits.size(), 2u);
  EXPECT_EQ(trace.visits[0].visits, 1u);
  EXPECT_EQ(trace.visits[1].visits, 2u);
}

TEST_F(Raising, Two_calls_on_one_line_are_numbered_by_their_addresses) {
  image_->set(0x100, {frame("swap", "/src/pair.cc", 9, 0x100)});
  agent_.past(main_, agent_.site(at(0x140), Api::read), 1);
  agent_.past(main_, agent_.site(at(0x120), Api::read), 2);
  const Trace trace = raised();
  EXPECT_THAT(sites_of(trace), ElementsAre("pair.cc:9:read", "pair.cc:9:read#2"));
  EXPECT_EQ(trace.sites[0].address, 0x120u);
}

TEST_F(Raising, Copies_of_a_line_in_several_functions_are_one_site) {
  image_->set(0x100, {frame("pop<int>", "/src/queue.h", 9, 0x100)});
  image_->set(0x200, {frame("pop<long>", "/src/queue.h", 9, 0x200)});
  agent_.past(main_, agent_.site(at(0x110), Api::read), 1);
  agent_.past(main_, agent_.site(at(0x210), Api::read), 2);
  const Trace trace = raised();
  EXPECT_THAT(sites_of(trace), ElementsAre("queue.h:9:read"));
  EXPECT_EQ(trace.visits[0].visits, 3u);
  EXPECT_EQ(test_.sites.find(trace.sites[0].name)->addresses.size(), 2u);
}

TEST_F(Raising, A_function_that_was_inlined_twice_is_one_site) {
  const auto inlined_at = [](int line) {
    return std::vector{frame("pop", "/src/queue.h", 9, 0x100, true),
                       frame("main", "/src/main.cc", line, 0x100)};
  };
  image_->set(0x100, inlined_at(20));
  image_->set(0x200, inlined_at(30));
  agent_.past(main_, agent_.site(at(0x110), Api::read), 1);
  agent_.past(main_, agent_.site(at(0x210), Api::read), 1);
  EXPECT_THAT(sites_of(raised()), ElementsAre("queue.h:9:read"));
}

TEST_F(Raising, A_number_stays_when_a_later_run_shows_a_call_before_it) {
  image_->set(0x100, {frame("swap", "/src/pair.cc", 9, 0x100)});
  agent_.past(main_, agent_.site(at(0x140), Api::read), 1);
  raised();
  agent_.past(main_, agent_.site(at(0x120), Api::read), 1);
  EXPECT_THAT(sites_of(raised()), ElementsAre("pair.cc:9:read#2", "pair.cc:9:read"));
}

TEST_F(Raising, Without_lines_a_function_and_an_offset_name_the_call) {
  image_->set(0x100, {frame("Queue::pop", "", 0, 0x100)});
  agent_.past(main_, agent_.site(at(0x13c), Api::sem_wait), 1);
  EXPECT_THAT(sites_of(raised()), ElementsAre("Queue::pop+0x3c:sem_wait"));
}

TEST_F(Raising, Without_a_function_the_image_and_the_address_name_the_call) {
  image_->set(0x100, {frame("", "", 0, 0x100)});
  agent_.past(main_, agent_.site(at(0x13c), Api::sem_wait), 1);
  EXPECT_THAT(sites_of(raised()), ElementsAre("server_test+0x13c:sem_wait"));
}

TEST_F(Raising, Threads_are_named_by_the_project_line_that_started_them) {
  image_->set(0x100, {frame("Pool::start", "/src/pool.cc", 31, 0x100)});
  const uint32_t libstdcpp = agent_.image("/usr/lib/libstdc++.so.6", false);
  const uint32_t spawn = agent_.stack({make_address(libstdcpp, 0x50), at(0x110)});
  agent_.thread(process_, 71, 7, t0 + 5000, main_, spawn, 0);
  agent_.thread(process_, 72, 7, t0 + 6000, main_, spawn, 1);
  const Trace trace = raised();
  EXPECT_EQ(trace.threads[0].name.text, "main");
  EXPECT_EQ(trace.threads[1].name.text, "pool.cc:31#1");
  EXPECT_EQ(trace.threads[2].name.text, "pool.cc:31#2");
  EXPECT_EQ(trace.threads[2].started, Duration(5));
}

TEST_F(Raising, Sites_and_threads_of_another_program_carry_its_name) {
  const uint32_t server = agent_.image("/build/server");
  const uint32_t other = agent_.process(server, t0 + 3000, process_);
  const uint32_t thread = agent_.thread(other, main_thread, main_thread, t0 + 3000);
  agent_.past(thread, agent_.site(make_address(server, 0x99), Api::accept), 1);
  const Trace trace = raised();
  EXPECT_THAT(sites_of(trace), ElementsAre("server+0x99:accept"));
  EXPECT_EQ(trace.threads[1].name.text, "server!main");
  EXPECT_THAT(trace.problems, Contains(HasSubstr("no such file")));
}

TEST_F(Raising, A_signal_happens_at_its_address_and_not_before_it) {
  image_->set(0x100, {frame("before", "/src/a.cc", 1, 0x100)});
  image_->set(0x200, {frame("crashes", "/src/a.cc", 2, 0x200)});
  agent_.failure(protocol::FailureKind::signal, main_, t0 + 9000, {at(0x200), at(0x200)});
  const Trace trace = raised();
  ASSERT_EQ(trace.failures.size(), 1u);
  EXPECT_EQ(trace.failures[0].stack.frames[0].source[0].function, "crashes");
  EXPECT_EQ(trace.failures[0].stack.frames[1].source[0].function, "before");
}

TEST_F(Raising, Interventions_report_in_the_order_of_the_plan) {
  plan_.rule_of = {1, 0};
  memory_.report().rule_states[1].fired.store(7);
  memory_.report().rule_states[1].added_ns.store(2'000'000);
  const Trace trace = raised();
  ASSERT_EQ(trace.interventions.size(), 2u);
  EXPECT_EQ(trace.interventions[0].fired, 7u);
  EXPECT_EQ(trace.interventions[0].added, Duration(2000));
  EXPECT_EQ(trace.interventions[1].fired, 0u);
}

TEST_F(Raising, One_shot_probes_that_were_hit_are_executed_functions) {
  image_->set(0x100, {frame("never", "/src/a.cc", 1, 0x100)});
  image_->set(0x200, {frame("called", "/src/a.cc", 2, 0x200)});
  plan_.images = {{"/build/server_test", "", true, {}}};
  plan_.probes.resize(2);
  plan_.probes[0] = {make_address(0, 0x100), 0, none, 1, {}, 0, probe_one_shot, 0, {}};
  plan_.probes[1] = {make_address(0, 0x200), 0, none, 1, {}, 0, probe_one_shot, 0, {}};
  plan_.probe_names.resize(2);
  memory_.report().probe_hits[1].store(1);
  const Trace trace = raised();
  ASSERT_EQ(trace.functions.size(), 1u);
  EXPECT_EQ(trace.functions[0].name, "called");
}

TEST_F(Raising, Calls_of_other_libraries_are_told_from_the_projects_own_functions) {
  image_->imports_ = {{"_ZNSt13random_device9_M_getvalEv", 0x300}};
  plan_.images = {{"/build/server_test", "", true, {}}};
  plan_.probes = {{make_address(0, 0x300), 0, none, 6, {}, 0, probe_of_call, 0, {}}};
  plan_.probe_names.resize(1);
  memory_.report().probe_hits[0].store(1);
  const Trace trace = raised();
  ASSERT_EQ(trace.functions.size(), 1u);
  EXPECT_EQ(trace.functions[0].kind, FunctionKind::call);
  EXPECT_EQ(trace.functions[0].name, "std::random_device::_M_getval");
}

TEST_F(Raising, An_executed_function_has_the_lines_of_its_project_file) {
  image_->set(0x200, {frame("called", "/src/a.cc", 7, 0x200)});
  image_->functions_ = {{"called()", "called", 0x200, 0x40, "/src/a.cc", 7},
                        {"next()", "next", 0x240, 0x10, "/src/a.cc", 20}};
  image_->files_ = {"/usr/include/c++/12/thread", "/src/a.cc", "/src/b.cc"};
  image_->lines_ = {{0x200, 0, 99}, {0x204, 1, 9}, {0x210, 1, 7}, {0x220, 2, 50},
                    {0x230, 1, 9},  {0x238, 1, 0}, {0x240, 1, 20}};
  plan_.images = {{"/build/server_test", "", true, {}}};
  plan_.probes = {{make_address(0, 0x200), 0, none, 1, {}, 0, probe_one_shot, 0, {}}};
  plan_.probe_names.resize(1);
  memory_.report().probe_hits[0].store(1);
  const Trace trace = raised();
  ASSERT_EQ(trace.functions.size(), 1u);
  EXPECT_EQ(trace.functions[0].file, "a.cc");
  EXPECT_THAT(trace.functions[0].lines, ElementsAre(7, 9));
}

TEST_F(Raising, No_process_means_that_the_agent_was_not_loaded) {
  FakeMemory nothing;
  const Trace trace = raise(nothing.read(), plan_, code_, test_);
  EXPECT_THAT(trace.problems, Contains(HasSubstr("not loaded into any process")));
}

}  // namespace
}  // namespace unflake
