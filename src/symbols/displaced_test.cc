#include "symbols/probe_plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace unflake {
namespace {

using protocol::ProbeKind;

Displaced displaced(std::vector<uint8_t> bytes) {
  return displace(bytes);
}

TEST(Displaced, A_move_between_registers_is_copied) {
  const Displaced move = displaced({0x48, 0x89, 0xe5});  // mov rbp, rsp
  EXPECT_EQ(move.refusal, "");
  EXPECT_EQ(move.length, 3);
  EXPECT_EQ(move.kind, ProbeKind::copy);
}

TEST(Displaced, A_load_relative_to_the_instruction_names_its_displacement) {
  const Displaced load = displaced({0x48, 0x8b, 0x05, 1, 2, 3, 4});  // mov rax, [rip + ..]
  EXPECT_EQ(load.kind, ProbeKind::copy_relative);
  EXPECT_EQ(load.aux, 3);
}

TEST(Displaced, A_displacement_before_an_immediate_is_found) {
  const Displaced compare = displaced({0x83, 0x3d, 1, 2, 3, 4, 7});  // cmp dword [rip + ..], 7
  EXPECT_EQ(compare.kind, ProbeKind::copy_relative);
  EXPECT_EQ(compare.aux, 2);
  EXPECT_EQ(compare.length, 7);
}

TEST(Displaced, A_vector_load_relative_to_the_instruction_names_its_displacement) {
  const Displaced load = displaced({0xc5, 0xfc, 0x28, 0x05, 1, 2, 3, 4});  // vmovaps ymm0, [rip ..]
  EXPECT_EQ(load.kind, ProbeKind::copy_relative);
  EXPECT_EQ(load.aux, 4);
}

TEST(Displaced, A_relative_call_has_its_target) {
  const Displaced call = displaced({0xe8, 0xfb, 0xff, 0xff, 0xff});
  EXPECT_EQ(call.kind, ProbeKind::call);
  EXPECT_EQ(call.target, -5);
}

TEST(Displaced, The_padded_call_of_thread_local_storage_is_a_call) {
  const Displaced call = displaced({0x66, 0x66, 0x48, 0xe8, 0x10, 0, 0, 0});
  EXPECT_EQ(call.kind, ProbeKind::call);
  EXPECT_EQ(call.length, 8);
  EXPECT_EQ(call.target, 0x10);
}

TEST(Displaced, A_call_through_memory_names_its_operand) {
  const Displaced call = displaced({0xff, 0x15, 1, 2, 3, 4});  // call [rip + ..]
  EXPECT_EQ(call.kind, ProbeKind::call_indirect);
  EXPECT_EQ(call.aux, 1);
  EXPECT_EQ(displaced({0x41, 0xff, 0xd4}).aux, 2);  // call r12
}

TEST(Displaced, A_call_through_the_stack_is_taken_only_when_its_operand_can_be_moved) {
  EXPECT_EQ(displaced({0xff, 0x54, 0x24, 0x08}).refusal, "");  // call [rsp + 8]
  EXPECT_EQ(displaced({0x41, 0xff, 0x14, 0x24}).refusal, "");  // call [r12]
  EXPECT_NE(displaced({0xff, 0x14, 0x24}).refusal, "");        // call [rsp]
  EXPECT_NE(displaced({0xff, 0x54, 0x24, 0x78}).refusal, "");  // call [rsp + 120]
  EXPECT_NE(displaced({0xff, 0x54, 0x24, 0xf8}).refusal, "");  // call [rsp - 8]
  EXPECT_NE(displaced({0xff, 0xd4}).refusal, "");              // call rsp
}

TEST(Displaced, Jumps_know_their_condition_and_target) {
  const Displaced near_jump = displaced({0x0f, 0x85, 0x00, 0x01, 0, 0});  // jnz
  EXPECT_EQ(near_jump.kind, ProbeKind::jump_if);
  EXPECT_EQ(near_jump.aux, 5);
  EXPECT_EQ(near_jump.target, 0x100);
  const Displaced short_jump = displaced({0x7f, 0xf0});  // jg
  EXPECT_EQ(short_jump.aux, 15);
  EXPECT_EQ(short_jump.target, -16);
  EXPECT_EQ(displaced({0xeb, 0x02}).kind, ProbeKind::jump);
}

TEST(Displaced, An_indirect_jump_is_copied) {
  EXPECT_EQ(displaced({0xff, 0xe0}).kind, ProbeKind::copy);                       // jmp rax
  EXPECT_EQ(displaced({0xff, 0x25, 1, 2, 3, 4}).kind, ProbeKind::copy_relative);  // jmp [rip + ..]
}

TEST(Displaced, A_return_knows_what_it_pops) {
  EXPECT_EQ(displaced({0xc3}).kind, ProbeKind::ret);
  EXPECT_EQ(displaced({0xf3, 0xc3}).length, 2);
  EXPECT_EQ(displaced({0xc2, 0x10, 0x00}).target, 16);
}

TEST(Displaced, The_beginning_of_a_function_needs_no_copy) {
  EXPECT_EQ(displaced({0x55}).kind, ProbeKind::push_rbp);
  EXPECT_EQ(displaced({0x41, 0x55}).kind, ProbeKind::copy);  // push r13
  EXPECT_EQ(displaced({0xf3, 0x0f, 0x1e, 0xfa}).kind, ProbeKind::nothing);
  EXPECT_EQ(displaced({0x0f, 0x1f, 0x05, 1, 2, 3, 4}).kind, ProbeKind::nothing);  // nop [rip + ..]
}

TEST(Displaced, What_cannot_run_elsewhere_is_refused_with_a_reason) {
  for (const auto& bytes : std::vector<std::vector<uint8_t>>{
           {0xcc},                          // int3
           {0xcd, 0x80},                    // int 0x80
           {0xe3, 0x02},                    // jrcxz
           {0xe2, 0xfe},                    // loop
           {0xc7, 0xf8, 0, 0, 0, 0},        // xbegin
           {0xcb},                          // far return
           {0x48, 0xcf},                    // iretq
           {0x67, 0x8b, 0x05, 0, 0, 0, 0},  // mov eax, [eip]
       })
    EXPECT_NE(displaced(bytes).refusal, "") << std::hex << int(bytes[0]);
}

TEST(Displaced, Bytes_that_are_no_instruction_have_no_length) {
  EXPECT_EQ(displaced({0x06}).length, 0);
  EXPECT_EQ(displaced({0xe8, 0x00}).length, 0);
  EXPECT_EQ(displace({}).length, 0);
}

}  // namespace
}  // namespace unflake
