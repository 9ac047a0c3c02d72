#include "symbols/entry_jumps.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace unflake {
namespace {

constexpr uint64_t code_base = 0x1000;

class CodeImage : public Image {
 public:
  explicit CodeImage(std::vector<uint8_t> code) : code_(std::move(code)) {
    functions_.resize(1);
    functions_[0].start = code_base;
    functions_[0].size = code_.size();
  }
  const std::string& path() const override { return text_; }
  const std::string& build_id() const override { return text_; }
  bool has_debug_information() const override { return false; }
  std::string why_no_debug_information() const override { return ""; }
  std::vector<Frame> frames_at(uint64_t) const override { return {}; }
  std::span<const Function> functions() const override { return functions_; }
  std::span<const LineRow> lines() const override { return {}; }
  std::span<const std::string> files() const override { return {}; }
  std::span<const uint8_t> code_at(uint64_t address, size_t size) const override {
    if (address < code_base || address - code_base >= code_.size()) return {};
    const auto rest = std::span(code_).subspan(address - code_base);
    return rest.first(std::min(size, rest.size()));
  }

  std::string text_;
  std::vector<uint8_t> code_;
  std::vector<Function> functions_;
};

// How many bytes move away from the first function's entry; 0: there may be no jump.
int moved(const CodeImage& image) {
  const auto moved = EntryJumps(image, image.functions()).at(code_base);
  return moved ? moved->size : 0;
}

int moved(std::vector<uint8_t> code) {
  return moved(CodeImage(std::move(code)));
}

TEST(EntryJumps, Whole_instructions_move_until_a_jump_has_room) {
  EXPECT_EQ(moved({0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0xc3}), 6);  // push, mov, push
}

TEST(EntryJumps, A_displacement_is_told) {
  // endbr64; mov 0x10(%rip), %eax; ret
  const CodeImage image({0xf3, 0x0f, 0x1e, 0xfa, 0x8b, 0x05, 0x10, 0, 0, 0, 0xc3});
  const auto moved = EntryJumps(image, image.functions()).at(code_base);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->size, 10);
  EXPECT_EQ(moved->relative, 6);
}

TEST(EntryJumps, A_branch_to_behind_the_entry_forbids_it) {
  // push; L: dec %edi; test %eax, %eax; jne L; ret
  EXPECT_EQ(moved({0x53, 0xff, 0xcf, 0x85, 0xc0, 0x75, 0xfa, 0xc3}), 0);
  EXPECT_EQ(moved({0x53, 0xff, 0xcf, 0x85, 0xc0, 0x75, 0xf9, 0xc3}), 5);  // to the entry
}

TEST(EntryJumps, So_does_one_in_another_function) {
  CodeImage image({0x53, 0xff, 0xcf, 0x85, 0xc0, 0xc3, 0xeb, 0xf9});  // ...; jmp to the second
  image.functions_[0].size = 6;
  image.functions_.push_back(image.functions_[0]);
  image.functions_[1].start = code_base + 6;
  image.functions_[1].size = 2;
  EXPECT_EQ(moved(image), 0);
}

TEST(EntryJumps, A_jump_that_may_go_anywhere_forbids_it_unless_one_instruction_moves) {
  // push; mov; jmp *%rax
  EXPECT_EQ(moved({0x53, 0x48, 0x89, 0xfb, 0x31, 0xc0, 0xff, 0xe0}), 0);
  // mov $1, %eax; jmp *%rax
  EXPECT_EQ(moved({0xb8, 1, 0, 0, 0, 0xff, 0xe0}), 5);
}

TEST(EntryJumps, Calls_and_conditions_stay_where_they_are) {
  EXPECT_EQ(moved({0x50, 0xe8, 0, 0, 0, 0, 0xc3}), 0);
  EXPECT_EQ(moved({0x85, 0xff, 0x74, 0x02, 0x31, 0xc0, 0xc3}), 0);
}

TEST(EntryJumps, A_short_function_needs_padding_behind_it) {
  EXPECT_EQ(moved({0x31, 0xc0, 0xc3, 0x66, 0x90}), 3);
  EXPECT_EQ(moved({0x31, 0xc0, 0xc3, 0x53, 0x5b}), 0);
  EXPECT_EQ(moved({0x31, 0xc0, 0xc3}), 0);
}

TEST(EntryJumps, The_next_function_is_not_overwritten) {
  CodeImage image({0xc3, 0x90, 0x90, 0x90, 0x90, 0xc3});
  image.functions_.push_back(image.functions_[0]);
  image.functions_[0].size = image.functions_[1].size = 1;
  image.functions_[1].start = code_base + 4;
  EXPECT_EQ(moved(image), 0);
  image.functions_[1].start = code_base + 5;
  EXPECT_EQ(moved(image), 1);
}

TEST(EntryJumps, Code_that_expects_flags_from_its_caller_is_left_alone) {
  EXPECT_EQ(moved({0x48, 0x83, 0xd0, 0x00, 0x90, 0xc3}), 0);  // adc $0, %rax
  EXPECT_EQ(moved({0x48, 0x83, 0xc0, 0x00, 0x90, 0xc3}), 5);  // add $0, %rax
}

TEST(EntryJumps, Bytes_that_are_no_instruction_make_a_function_unsure) {
  EXPECT_EQ(moved({0x53, 0x48, 0x89, 0xfb, 0x31, 0xc0, 0xc3, 0x06}), 0);
}

}  // namespace
}  // namespace unflake
