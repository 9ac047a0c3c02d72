#include "symbols/probe_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace unflake {
namespace {

constexpr uint64_t base = 0x1000;

// An image whose code, functions and lines a test writes down.
class PaperImage : public Image {
 public:
  const std::string& path() const override { return path_; }
  const std::string& build_id() const override { return build_id_; }
  bool has_debug_information() const override { return true; }
  std::string why_no_debug_information() const override { return ""; }
  std::vector<Frame> frames_at(uint64_t) const override { return {}; }
  std::span<const Function> functions() const override { return functions_; }
  std::span<const LineRow> lines() const override { return lines_; }
  std::span<const std::string> files() const override { return files_; }
  std::span<const uint8_t> code_at(uint64_t address, size_t size) const override {
    if (address < base || address - base >= code_.size()) return {};
    const auto rest = std::span(code_).subspan(address - base);
    return rest.first(std::min(size, rest.size()));
  }

  std::string path_ = "/project/tests";
  std::string build_id_;
  std::vector<uint8_t> code_;
  std::vector<Function> functions_;
  std::vector<LineRow> lines_;
  std::vector<std::string> files_{"a.cc"};
};

Function function(uint64_t start, uint64_t size) {
  Function function;
  function.start = base + start;
  function.size = size;
  return function;
}

// push rbp; mov rbp, rsp; nop; pop rbp; ret, twice
PaperImage two_functions() {
  PaperImage image;
  for (int i = 0; i < 2; ++i)
    for (const int byte : {0x55, 0x48, 0x89, 0xe5, 0x90, 0x5d, 0xc3, 0x90})
      image.code_.push_back(static_cast<uint8_t>(byte));
  image.functions_ = {function(0, 7), function(8, 7)};
  return image;
}

std::vector<uint64_t> offsets(const ProbePlan& plan) {
  std::vector<uint64_t> offsets;
  for (const auto& probe : plan.probes)
    offsets.push_back(protocol::offset_of(probe.address) - base);
  return offsets;
}

ProbePlan plan_at(const Image& image, std::vector<uint64_t> addresses) {
  return plan_probes(image, addresses, {});
}

TEST(ProbePlan, Probes_are_ordered_and_unique) {
  const auto image = two_functions();
  const auto plan = plan_at(image, {base + 12, base + 1, base, base + 1});
  EXPECT_EQ(offsets(plan), (std::vector<uint64_t>{0, 1, 12}));
}

TEST(ProbePlan, A_probe_knows_its_image_instruction_and_flags) {
  const auto image = two_functions();
  const std::vector<uint64_t> addresses = {base + 1};
  const auto plan = plan_probes(image, addresses, {.image = 7, .flags = protocol::probe_one_shot});
  ASSERT_EQ(plan.probes.size(), 1u);
  EXPECT_EQ(protocol::image_of(plan.probes[0].address), 7u);
  EXPECT_EQ(plan.probes[0].length, 3);
  EXPECT_EQ(plan.probes[0].first_byte, 0x48);
  EXPECT_EQ(plan.probes[0].flags, protocol::probe_one_shot);
  EXPECT_EQ(plan.probes[0].site, protocol::none);
}

TEST(ProbePlan, The_middle_of_an_instruction_is_refused) {
  const auto plan = plan_at(two_functions(), {base + 2});
  EXPECT_TRUE(plan.probes.empty());
  ASSERT_EQ(plan.unprobeable.size(), 1u);
  EXPECT_EQ(plan.unprobeable[0].address, base + 2);
  EXPECT_EQ(plan.unprobeable[0].reason, "in the middle of an instruction");
}

TEST(ProbePlan, Places_outside_of_functions_are_refused) {
  const auto plan = plan_at(two_functions(), {base - 1, base + 7, base + 0x900});
  EXPECT_TRUE(plan.probes.empty());
  EXPECT_EQ(plan.unprobeable.size(), 3u);
}

TEST(ProbePlan, What_comes_behind_data_in_code_is_refused) {
  auto image = two_functions();
  image.code_[4] = 0x06;  // no instruction
  EXPECT_EQ(offsets(plan_at(image, {base + 1, base + 5})), (std::vector<uint64_t>{1}));
}

TEST(ProbePlan, A_function_around_a_nested_one_is_found) {
  auto image = two_functions();
  image.functions_ = {function(0, 16), function(8, 1)};
  EXPECT_EQ(offsets(plan_at(image, {base + 8, base + 9})), (std::vector<uint64_t>{8, 9}));
}

TEST(ProbePlan, A_function_without_size_ends_where_the_next_begins) {
  auto image = two_functions();
  image.functions_[0].size = 0;
  EXPECT_EQ(offsets(plan_at(image, {base + 5})), (std::vector<uint64_t>{5}));
}

TEST(ProbePlan, A_function_that_claims_more_than_the_file_holds_is_no_harm) {
  auto image = two_functions();
  image.functions_[1].size = uint64_t{1} << 60;
  EXPECT_EQ(offsets(plan_at(image, {base + 9, base + 0x900})), (std::vector<uint64_t>{9}));
}

TEST(ProbePlan, Aliases_of_a_function_share_one_entry) {
  auto image = two_functions();
  image.functions_.insert(image.functions_.begin(), function(0, 7));
  EXPECT_EQ(offsets(plan_entries(image, image.functions(), {})), (std::vector<uint64_t>{0, 8}));
}

TEST(ProbePlan, An_entry_without_code_is_refused) {
  auto image = two_functions();
  image.functions_.push_back(function(0x900, 4));
  EXPECT_EQ(plan_entries(image, image.functions(), {}).unprobeable.size(), 1u);
}

TEST(ProbePlan, Line_addresses_are_those_of_the_wanted_functions) {
  auto image = two_functions();
  image.lines_ = {
      {base, 0, 1}, {base + 1, 0, 2}, {base + 1, 0, 3}, {base + 4, 0, 0}, {base + 9, 0, 4}};
  const auto first = [](const Function& function) { return function.start == base; };
  EXPECT_EQ(line_addresses(image, first), (std::vector<uint64_t>{base, base + 1}));
}

TEST(ProbePlan, The_grounds_of_the_agent_are_never_probed) {
  EXPECT_NE(why_never_probed("/lib/x86_64-linux-gnu/libc.so.6"), "");
  EXPECT_NE(why_never_probed("/lib64/ld-linux-x86-64.so.2"), "");
  EXPECT_NE(why_never_probed("libtsan.so.2"), "");
  EXPECT_EQ(why_never_probed("/project/libcore.so"), "");
  auto image = two_functions();
  image.path_ = "/lib/libc.so.6";
  EXPECT_TRUE(plan_at(image, {base}).probes.empty());
  EXPECT_TRUE(plan_entries(image, image.functions(), {}).probes.empty());
}

TEST(ProbePlan, All_instructions_of_a_function_are_found) {
  const auto image = two_functions();
  EXPECT_EQ(instruction_addresses(image, image.functions_[0]),
            (std::vector<uint64_t>{base, base + 1, base + 4, base + 5, base + 6}));
}

// mov eax, [rip + 16]; add dword [rbx + rcx * 4 + 8], 1; lock inc dword [rdi]; lea rax, [rdi + 4];
// mov rax, fs:[40]; push rax; ret
TEST(MemoryAccesses, Are_told_with_how_their_addresses_are_computed) {
  PaperImage image;
  for (const int byte :
       {0x8b, 0x05, 0x10, 0,    0,    0,    0x83, 0x44, 0x8b, 0x08, 0x01, 0xf0, 0xff, 0x07, 0x48,
        0x8d, 0x47, 0x04, 0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0,    0,    0,    0x50, 0xc3})
    image.code_.push_back(static_cast<uint8_t>(byte));
  image.functions_ = {function(0, image.code_.size())};
  const std::vector<MemoryAccess> found = memory_accesses(image, image.functions_[0]);
  ASSERT_EQ(found.size(), 3u);

  EXPECT_EQ(found[0].address, base);
  EXPECT_EQ(found[0].access.flags, protocol::access_reads | protocol::access_in_image);
  EXPECT_EQ(found[0].access.displacement, static_cast<int64_t>(base + 6 + 16));

  const protocol::PlanAccess& sum = found[1].access;
  EXPECT_EQ(found[1].address, base + 6);
  EXPECT_EQ(sum.flags, protocol::access_reads | protocol::access_writes);
  EXPECT_EQ(std::vector<int>({sum.base, sum.index, sum.scale, sum.size}),
            std::vector<int>({3, 1, 4, 4}));
  EXPECT_EQ(sum.displacement, 8);

  EXPECT_EQ(found[2].access.base, 7);
  EXPECT_EQ(found[2].access.flags,
            protocol::access_reads | protocol::access_writes | protocol::access_is_atomic);
}

}  // namespace
}  // namespace unflake
