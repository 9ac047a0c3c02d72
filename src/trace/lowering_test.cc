#include "trace/translation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_image.h"
#include "support/site_names.h"

namespace unflake {
namespace {

using protocol::Api;
using protocol::none;
using testing::HasSubstr;

SiteName call(int line, const std::string& api) {
  return call_site("queue.cc", line, api);
}

// A test of which one run was seen: two calls, one of them inlined into two functions.
class LoweringTest : public testing::Test {
 protected:
  LoweringTest()
      : image_(std::make_shared<FakeImage>("/build/server_test")),
        code_(ProjectCode({}),
              [this](const std::string&) -> Result<std::shared_ptr<const unflake::Image>> {
                return std::shared_ptr<const unflake::Image>(image_);
              }) {
    image_->functions_ = {{"Queue::pop()", "_ZN5Queue3popEv", 0x100, 0x40, "/src/queue.cc", 50},
                          {"Queue::push()", "_ZN5Queue4pushEv", 0x200, 0x40, "/src/queue.cc", 70}};
    image_->code_[0x100] = {0x55, 0x48, 0x89, 0xe5, 0xc3};  // push rbp; mov rbp, rsp; ret
    image_->code_[0x200] = image_->code_[0x100];
    memory_.images["/build/server_test"] = program_;
    memory_.sites.set_own_executable("/build/server_test");
    learn(57, 0x110, Api::pthread_cond_wait);
    learn(57, 0x210, Api::pthread_cond_wait);
    learn(60, 0x120, Api::nanosleep);
  }

  void learn(int line, uint64_t return_address, Api api) {
    NamedCode place;
    place.frames = {{"f", "/src/queue.cc", line, return_address & ~uint64_t{0xff}, false}};
    memory_.sites.learn_call(program_, place, return_address, static_cast<uint16_t>(api));
  }

  Intervention delay_at(const SiteName& site) {
    Intervention what;
    what.site = site;
    what.duration = std::chrono::milliseconds(200);
    return what;
  }

  Result<LoweredPlan> lowered() { return lower(plan_, code_, memory_); }

  const TracedImage program_{"/build/server_test", "", true};
  std::shared_ptr<FakeImage> image_;
  CodeMap code_;
  TestMemory memory_;
  unflake::Plan plan_;
};

TEST_F(LoweringTest, All_copies_of_a_call_share_its_rules) {
  plan_.interventions = {delay_at(call(57, "pthread_cond_wait"))};
  const auto plan = lowered();
  ASSERT_TRUE(plan) << to_string(plan.error());
  ASSERT_EQ(plan->sites.size(), 2u);
  EXPECT_EQ(plan->sites[0].offset, 0x110u);
  EXPECT_EQ(plan->sites[1].offset, 0x210u);
  ASSERT_EQ(plan->rules.size(), 1u);
  EXPECT_EQ(plan->sites[1].first_rule, 0u);
  EXPECT_EQ(plan->rules[0].duration_ns, 200'000'000u);
  EXPECT_EQ(plan->rules[0].executable, none);
}

TEST_F(LoweringTest, Rules_of_a_site_stand_together_whatever_the_order_of_the_plan) {
  plan_.interventions = {delay_at(call(60, "nanosleep")), delay_at(call(57, "pthread_cond_wait")),
                         delay_at(call(60, "nanosleep"))};
  plan_.interventions[2].position = Intervention::Position::after;
  const auto plan = lowered();
  ASSERT_TRUE(plan);
  const auto& sleep = *std::ranges::find(plan->sites, 0x120u, &protocol::PlanSite::offset);
  EXPECT_EQ(sleep.rule_count, 2u);
  EXPECT_EQ(plan->rule_of[0], sleep.first_rule);
  EXPECT_EQ(plan->rule_of[2], sleep.first_rule + 1);
}

TEST_F(LoweringTest, Sites_are_ordered_as_the_agent_searches_them) {
  plan_.interventions = {delay_at(call(57, "pthread_cond_wait")), delay_at(call(60, "nanosleep")),
                         delay_at(entry_site("Queue::push"))};
  const auto plan = lowered();
  ASSERT_TRUE(plan) << to_string(plan.error());
  EXPECT_TRUE(std::ranges::is_sorted(plan->sites, {}, [](const protocol::PlanSite& site) {
    return std::tuple(site.image, site.offset, site.api);
  }));
  ASSERT_EQ(plan->probes.size(), 1u);
  EXPECT_EQ(plan->sites[plan->probes[0].site].offset, 0x200u);
  EXPECT_EQ(plan->sites[plan->probes[0].site].api, protocol::probe_api);
}

TEST_F(LoweringTest, Holds_and_anchors_refer_to_rules) {
  plan_.interventions = {delay_at(call(60, "nanosleep")), delay_at(call(57, "pthread_cond_wait"))};
  plan_.interventions[0].action = Intervention::Action::watch;
  plan_.interventions[1].action = Intervention::Action::hold;
  plan_.interventions[1].until = 0;
  plan_.interventions[1].anchor = 0;
  const auto plan = lowered();
  ASSERT_TRUE(plan);
  const protocol::Rule& hold = plan->rules[plan->rule_of[1]];
  EXPECT_EQ(hold.other, plan->rule_of[0]);
  EXPECT_EQ(hold.anchor, plan->rule_of[0]);
}

TEST_F(LoweringTest, Main_means_the_main_thread_of_the_tests_own_program) {
  plan_.interventions = {delay_at(call(60, "nanosleep"))};
  plan_.interventions[0].threads = Intervention::Threads::named;
  plan_.interventions[0].thread = {"main", protocol::main_thread, protocol::main_thread};
  EXPECT_EQ(lowered()->rules[0].executable, 0u);
}

TEST_F(LoweringTest, An_unknown_call_names_the_nearest_ones) {
  plan_.interventions = {delay_at(call(58, "pthread_cond_wait"))};
  const auto plan = lowered();
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().next, HasSubstr("queue.cc:57:pthread_cond_wait"));
}

TEST_F(LoweringTest, An_unknown_function_names_the_nearest_ones) {
  plan_.interventions = {delay_at(entry_site("Queue::popp"))};
  const auto plan = lowered();
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().next, HasSubstr("Queue::pop()"));
}

TEST_F(LoweringTest, What_a_site_cannot_do_is_refused) {
  plan_.interventions = {delay_at(entry_site("Queue::pop"))};
  plan_.interventions[0].position = Intervention::Position::after;
  EXPECT_FALSE(lowered());
  plan_.interventions = {delay_at(call(57, "pthread_cond_wait"))};
  plan_.interventions[0].action = Intervention::Action::replace_time;
  EXPECT_FALSE(lowered());
  plan_.interventions[0].action = Intervention::Action::scale_time;
  EXPECT_FALSE(lowered());
  plan_.interventions = {delay_at(call(60, "nanosleep"))};
  plan_.interventions[0].position = Intervention::Position::start;
  EXPECT_FALSE(lowered());
}

SiteName instruction(const std::string& function, uint64_t offset) {
  SiteName site = entry_site(function);
  site.offset = offset;
  return site;
}

TEST_F(LoweringTest, Behind_an_instruction_is_before_the_next_one) {
  plan_.interventions = {delay_at(instruction("_ZN5Queue3popEv", 1)),
                         delay_at(instruction("_ZN5Queue3popEv", 4))};
  plan_.interventions[0].action = Intervention::Action::watch;
  plan_.interventions[0].position = Intervention::Position::after;
  const auto plan = lowered();
  ASSERT_TRUE(plan) << to_string(plan.error());
  ASSERT_EQ(plan->probes.size(), 1u);  // both are there
  EXPECT_EQ(protocol::offset_of(plan->probes[0].address), 0x104u);
  EXPECT_EQ(plan->sites[0].rule_count, 2u);
  EXPECT_EQ(plan->rules[plan->rule_of[0]].position, protocol::Position::before);
}

// The second line was inlined where the first one begins, and is somewhere else, too.
TEST_F(LoweringTest, A_watch_gives_way_where_another_line_begins_as_well) {
  image_->files_ = {"/src/queue.cc"};
  image_->set(0x100, {{"Queue::pop", "/src/queue.cc", 52, 0x100, false}});
  image_->set(0x200, {{"Queue::push", "/src/queue.cc", 52, 0x200, false}});
  image_->lines_ = {{0x100, 0, 51}, {0x100, 0, 52}, {0x101, 0, 51}, {0x201, 0, 52}};
  memory_.sites.files().add(image_->files_);
  SiteName first = entry_site(""), second = first;
  first.file = second.file = "queue.cc";
  first.line = 51;
  second.line = 52;
  plan_.interventions = {delay_at(first), delay_at(second)};
  EXPECT_FALSE(lowered());
  plan_.interventions[1].action = Intervention::Action::watch;
  const auto plan = lowered();
  ASSERT_TRUE(plan) << to_string(plan.error());
  ASSERT_EQ(plan->probes.size(), 2u);
  EXPECT_NE(plan->probes[0].site, plan->probes[1].site);
}

TEST_F(LoweringTest, Behind_a_return_is_anywhere) {
  plan_.interventions = {delay_at(instruction("Queue::pop", 4))};
  plan_.interventions[0].position = Intervention::Position::after;
  EXPECT_FALSE(lowered());
}

TEST_F(LoweringTest, The_end_of_a_thread_is_a_site) {
  const auto site = parse_site(to_string(end_of_thread()));
  ASSERT_TRUE(site);
  EXPECT_EQ(*site, end_of_thread());
  plan_.interventions = {delay_at(*site)};
  const auto plan = lowered();
  ASSERT_TRUE(plan) << to_string(plan.error());
  ASSERT_EQ(plan->sites.size(), 1u);
  EXPECT_EQ(plan->sites[0].api, protocol::thread_end_api);
  EXPECT_TRUE(plan->probes.empty());
}

TEST_F(LoweringTest, The_exit_is_a_site_of_the_program) {
  plan_.interventions = {delay_at(entry_site("exit"))};
  const auto plan = lowered();
  ASSERT_TRUE(plan) << to_string(plan.error());
  ASSERT_EQ(plan->sites.size(), 1u);
  EXPECT_EQ(plan->sites[0].api, protocol::exit_api);
  EXPECT_EQ(plan->sites[0].image, 0u);
  EXPECT_TRUE(plan->probes.empty());
  plan_.interventions[0].site.image = "another";
  EXPECT_FALSE(lowered());
}

TEST_F(LoweringTest, A_group_that_is_off_has_no_bit) {
  plan_.groups_off = {"sleep"};
  const auto plan = lowered();
  const auto bit = uint32_t{1} << static_cast<uint32_t>(protocol::Group::sleep_group);
  EXPECT_EQ(plan->groups & bit, 0u);
  EXPECT_NE(plan->groups, 0u);
  plan_.groups_off = {"slep"};
  EXPECT_FALSE(lowered());
}

TEST_F(LoweringTest, Every_function_gets_a_probe_for_one_hit) {
  plan_.functions = true;
  const auto plan = lowered();
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->probes.size(), 2u);
  EXPECT_EQ(plan->probes[0].flags, protocol::probe_one_shot);
  EXPECT_EQ(plan->probes[0].site, none);
  EXPECT_LT(plan->probes[0].address, plan->probes[1].address);
}

TEST_F(LoweringTest, Calls_of_other_libraries_get_probes_that_look_at_the_caller) {
  image_->imports_ = {{"memcpy", 0x300}, {"getenv", 0x310}};
  for (const Import& import : image_->imports_)
    image_->code_[import.entry] = {0xff, 0x25, 0xca, 0x2f, 0x00, 0x00};  // jmp *0x2fca(%rip)
  plan_.functions = plan_.callees = true;
  const auto plan = lowered();
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->probes.size(), 3u) << "nobody is interested in memcpy";
  EXPECT_EQ(plan->probes[2].flags, protocol::probe_of_call | protocol::probe_may_jump);
  EXPECT_EQ(protocol::offset_of(plan->probes[2].address), 0x310u);
  EXPECT_EQ(code_.kind_of(program_, 0x310), FunctionKind::call);
  EXPECT_EQ(code_.name_of_entry(program_, 0x310), "getenv");
}

TEST_F(LoweringTest, Functions_of_libraries_are_traced_by_name_alone) {
  image_->functions_.push_back({"std::hash<Node*>::operator()(Node*) const",
                                "_ZNKSt4hashIP4NodeEclES1_", 0x400, 0x40, "", 0});
  image_->code_[0x400] = image_->code_[0x100];
  plan_.functions = true;
  ASSERT_EQ(lowered()->probes.size(), 2u);
  plan_.library_functions = {"std::hash<*\\*>*"};
  ASSERT_EQ(lowered()->probes.size(), 3u);
  EXPECT_EQ(code_.kind_of(program_, 0x400), FunctionKind::library);
  plan_.library_functions = {"std::less<*\\*>*"};
  EXPECT_EQ(lowered()->probes.size(), 2u);
}

}  // namespace
}  // namespace unflake
