
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "run/agent_session.h"
#include "support/fake_agent.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using namespace protocol;

LoweredPlan small_plan() {
  LoweredPlan plan;
  plan.flags = record_events;
  plan.groups = 5;
  plan.images = {{"/build/test", "\x01\x02\x03", true, {{10, 5}, {20, 5}}},
                 {"/build/lib.so", "", true, {{30, 1}}}};
  plan.sites.resize(2);
  plan.sites[1].offset = 0x99;
  plan.rules.resize(3);
  plan.rules[2].duration_ns = 77;
  plan.probes.resize(5);
  plan.system_prefixes = {"/usr/"};
  return plan;
}

// The memory as a process would map it.
class Mapped {
 public:
  explicit Mapped(const AgentMemory& memory) : size_(memory.size()) {
    data_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, memory.file(), 0);
    EXPECT_TRUE(find_tables(static_cast<char*>(data_), header(), tables_));
  }
  ~Mapped() { ::munmap(data_, size_); }
  const Header& header() const { return *static_cast<const Header*>(data_); }
  const Tables& tables() const { return tables_; }
  const Table* table(TableKind kind) const {
    return std::ranges::find(header().tables, static_cast<uint32_t>(kind), &Table::kind);
  }
  char* at(uint32_t offset) const { return static_cast<char*>(data_) + offset; }

 private:
  void* data_;
  Tables tables_;
  size_t size_;
};

TEST(AgentMemory, Holds_the_tables_of_a_plan) {
  const auto memory = AgentMemory::create(small_plan());
  ASSERT_TRUE(memory);
  Mapped mapped(*memory);
  const Header& header = mapped.header();
  const Tables& plan = mapped.tables();
  EXPECT_EQ(header.magic, magic);
  EXPECT_EQ(header.size, memory->size());
  EXPECT_EQ(header.plan.groups, 5u);
  ASSERT_EQ(plan.plan_images.count, 2u);
  EXPECT_STREQ(&plan.text[plan.plan_images[1].path], "/build/lib.so");
  EXPECT_EQ(plan.plan_images[0].build_id_size, 3u);
  EXPECT_EQ(plan.plan_images[1].first_skip, 2u);
  EXPECT_EQ(plan.skips[2].start, 30u);
  EXPECT_EQ(plan.plan_sites[1].offset, 0x99u);
  EXPECT_EQ(plan.rules[2].duration_ns, 77u);
  EXPECT_STREQ(&plan.text[plan.system_prefixes[0]], "/usr/");
}

// As an agent of another language finds them, which has none of these structs.
TEST(AgentMemory, Tells_an_agent_where_every_table_is_and_what_number_an_api_has) {
  LoweredPlan plan = small_plan();
  plan.schedule.emplace();
  const auto memory = AgentMemory::create(plan);
  ASSERT_TRUE(memory);
  const Mapped mapped(*memory);
  const Header& header = mapped.header();
  EXPECT_EQ(header.table_count, table_kinds);
  for (uint32_t kind = 0; kind < table_kinds; ++kind)
    EXPECT_EQ(std::ranges::count(std::span(header.tables, header.table_count), kind, &Table::kind),
              1)
        << kind;
  const Table& names = *mapped.table(TableKind::api_names);
  const Table& text = *mapped.table(TableKind::text);
  ASSERT_EQ(names.count, static_cast<uint32_t>(Api::count));
  const auto api = static_cast<uint32_t>(Api::nanosleep);
  const auto* offset =
      reinterpret_cast<uint32_t*>(mapped.at(names.offset + api * names.element_size));
  EXPECT_STREQ(mapped.at(text.offset + *offset), "nanosleep");
}

TEST(AgentMemory, Probe_hits_do_not_share_a_page_with_what_must_not_change) {
  const auto memory = AgentMemory::create(small_plan());
  ASSERT_TRUE(memory);
  const Mapped mapped(*memory);
  const Header& header = mapped.header();
  EXPECT_EQ(header.plan_end % page, 0u);
  EXPECT_EQ(header.plan_begin % page, 0u);
  EXPECT_GE(mapped.table(TableKind::probe_hits)->offset, header.plan_end);
  EXPECT_EQ(mapped.tables().probe_hits.count, 5u);
}

TEST(AgentMemory, Reads_what_was_written_into_it) {
  const auto memory = AgentMemory::create(small_plan());
  ASSERT_TRUE(memory);
  Mapped mapped(*memory);
  FakeAgent agent(mapped.tables());
  agent.image("/build/test");
  mapped.tables().probe_hits[4].store(3);
  mapped.tables().rule_states[2].fired.store(8);
  const auto raw = memory->read();
  ASSERT_TRUE(raw);
  EXPECT_EQ(raw->images.size(), 1u);
  EXPECT_EQ(raw->probe_hits[4], 3u);
  EXPECT_EQ(raw->rules[2].fired, 8u);
  EXPECT_TRUE(raw->problems.empty());
}

TEST(AgentMemory, Nobody_can_change_its_size) {
  const auto memory = AgentMemory::create({});
  ASSERT_TRUE(memory);
  EXPECT_NE(::ftruncate(memory->file(), 0), 0);
  EXPECT_NE(::ftruncate(memory->file(), 1 << 30), 0);
}

TEST(AgentMemory, Is_found_by_its_address) {
  const auto memory = AgentMemory::create({});
  ASSERT_TRUE(memory);
  const std::string address = memory->address();
  EXPECT_EQ(std::filesystem::file_size(address.substr(address.find(':') + 1)), memory->size());
}

TEST(AgentMemory, No_two_have_the_same_generation) {
  const auto one = AgentMemory::create({});
  const auto other = AgentMemory::create({});
  EXPECT_NE(Mapped(*one).header().generation, Mapped(*other).header().generation);
}

TEST(AgentMemory, Too_many_rules_are_refused) {
  LoweredPlan plan;
  plan.rules.resize(max_rules + 1);
  EXPECT_FALSE(AgentMemory::create(plan));
}

TEST(PreloadedLibrary, A_path_that_LD_PRELOAD_cannot_hold_gets_a_link) {
  const TempFolder folder;
  const std::string library = folder.file("my: folder") + "/agent.so";
  std::filesystem::create_directory(folder.file("my: folder"));
  std::ofstream(library) << "library";
  std::string link;
  {
    const auto agent = PreloadedLibrary::open(library);
    ASSERT_TRUE(agent);
    link = agent->path();
    EXPECT_EQ(link.find_first_of(" :"), std::string::npos);
    EXPECT_EQ(std::filesystem::read_symlink(link), library);
  }
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(link).parent_path()));
}

TEST(PreloadedLibrary, A_plain_path_is_taken_as_it_is) {
  EXPECT_EQ(PreloadedLibrary::open("/opt/lib/agent.so")->path(), "/opt/lib/agent.so");
}

std::string value_of(const std::vector<EnvChange>& changes, const std::string& name) {
  const auto found = std::ranges::find(changes, name, &EnvChange::name);
  return found == changes.end() ? "" : found->value.value_or("");
}

TEST(AgentLoader, Keeps_what_a_test_preloads_and_asks_of_its_sanitizer) {
  Command command;
  command.env = {{"LD_PRELOAD", "/lib/mine.so"}, {"ASAN_OPTIONS", "detect_leaks=0"}};
  const Loading loading = NativeLoader("/lib/agent.so").loading(variables_of(command));
  EXPECT_EQ(value_of(loading.environment, "LD_PRELOAD"), "/lib/agent.so:/lib/mine.so");
  EXPECT_EQ(value_of(loading.environment, "ASAN_OPTIONS"),
            "detect_leaks=0:verify_asan_link_order=0");
  EXPECT_TRUE(loading.arguments.empty());
}

TEST(AgentLoader, What_a_test_takes_out_stays_out) {
  Command command;
  command.env = {
      {"LD_PRELOAD", "/lib/mine.so"}, {"LD_PRELOAD", std::nullopt}, {"ASAN_OPTIONS", std::nullopt}};
  const Loading loading = NativeLoader("/lib/agent.so").loading(variables_of(command));
  EXPECT_EQ(value_of(loading.environment, "LD_PRELOAD"), "/lib/agent.so");
  EXPECT_EQ(value_of(loading.environment, "ASAN_OPTIONS"), "verify_asan_link_order=0");
}

TEST(AgentLoader, What_is_loaded_already_is_not_loaded_again) {
  Command command;
  command.env = {{"LD_PRELOAD", "/lib/mine.so:/lib/agent.so"}, {"ASAN_OPTIONS", ""}};
  const NativeLoader loader("/lib/agent.so");
  apply(loader.loading(variables_of(command)), command);
  apply(loader.loading(variables_of(command)), command);
  EXPECT_EQ(variables_of(command)("LD_PRELOAD"), "/lib/mine.so:/lib/agent.so");
  EXPECT_EQ(variables_of(command)("ASAN_OPTIONS"), "verify_asan_link_order=0");
}

TEST(AgentLoader, A_library_whose_name_begins_like_the_agents_is_another_one) {
  Command command;
  command.env = {{"LD_PRELOAD", "/lib/agent.so.1"}};
  const EnvChange joined = preload(variables_of(command), "/lib/agent.so", Preloaded::last);
  EXPECT_EQ(joined.value, "/lib/agent.so.1:/lib/agent.so");
}

TEST(AgentLoader, Arguments_of_an_agent_come_right_behind_the_program) {
  Command command;
  command.argv = {"python3", "test.py"};
  apply({{{"A", "1"}}, {"-m", "agent"}}, command);
  EXPECT_THAT(command.argv, testing::ElementsAre("python3", "-m", "agent", "test.py"));
  EXPECT_EQ(variables_of(command)("A"), "1");
}

}  // namespace
}  // namespace unflake
