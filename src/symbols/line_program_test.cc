#include "symbols/dwarf.h"

#include <dwarf.h>
#include <gtest/gtest.h>

namespace unflake {
namespace {

// A table of DWARF 4 with this program; the numbers in the header are those that compilers use.
std::vector<uint8_t> table_of(const std::vector<uint8_t>& program) {
  const std::vector<uint8_t> header = {1, 1, 1, 0xfb, 14, 13,  // line base -5, range 14
                                       0, 1, 1, 1,    1,  0,  0,
                                       0, 1, 0, 0,    1,  0,  0};  // no folders, no files
  std::vector<uint8_t> table;
  const auto put = [&](uint64_t value, int size) {
    for (int i = 0; i < size; ++i) table.push_back(static_cast<uint8_t>(value >> (8 * i)));
  };
  put(2 + 4 + header.size() + program.size(), 4);
  put(4, 2);
  put(header.size(), 4);
  table.insert(table.end(), header.begin(), header.end());
  table.insert(table.end(), program.begin(), program.end());
  return table;
}

const std::vector<uint8_t> set_address_0x1000 = {0, 9, DW_LNE_set_address, 0, 0x10, 0, 0, 0, 0,
                                                 0, 0};

std::vector<uint8_t> operator+(std::vector<uint8_t> a, const std::vector<uint8_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(LineProgram, Gives_the_rows_of_a_sequence) {
  const auto table = table_of(
      set_address_0x1000 + std::vector<uint8_t>{DW_LNS_advance_line, 9, DW_LNS_copy,
                                                13 + 5 + 2 + 14 * 3,  // 2 lines, 3 bytes on
                                                DW_LNS_advance_pc, 4, 0, 1, DW_LNE_end_sequence});
  const auto sequences = read_line_program(table, 0);
  ASSERT_EQ(sequences.size(), 1u);
  ASSERT_EQ(sequences[0].size(), 3u);
  EXPECT_EQ(sequences[0][0].address, 0x1000u);
  EXPECT_EQ(sequences[0][0].line, 10);
  EXPECT_TRUE(sequences[0][0].is_statement);
  EXPECT_EQ(sequences[0][1].address, 0x1003u);
  EXPECT_EQ(sequences[0][1].line, 12);
  EXPECT_EQ(sequences[0][2].address, 0x1007u);
  EXPECT_TRUE(sequences[0][2].is_end);
}

TEST(LineProgram, Lines_may_go_back) {
  const auto table = table_of(set_address_0x1000 +
                              std::vector<uint8_t>{DW_LNS_advance_line, 20, DW_LNS_advance_line,
                                                   0x76,  // -10
                                                   DW_LNS_copy, 0, 1, DW_LNE_end_sequence});
  EXPECT_EQ(read_line_program(table, 0).at(0).at(0).line, 11);
}

TEST(LineProgram, A_sequence_without_an_end_does_not_count) {
  EXPECT_TRUE(read_line_program(table_of(set_address_0x1000 + std::vector<uint8_t>{DW_LNS_copy}), 0)
                  .empty());
}

TEST(LineProgram, There_is_none_behind_the_section) {
  EXPECT_TRUE(read_line_program(table_of({}), 100000).empty());
  EXPECT_TRUE(read_line_program({}, 0).empty());
}

TEST(LineProgram, May_be_cut_anywhere) {
  const auto table = table_of(set_address_0x1000 + set_address_0x1000);
  for (size_t size = 0; size < table.size(); ++size)
    EXPECT_TRUE(read_line_program(std::span(table).first(size), 0).empty());
}

}  // namespace
}  // namespace unflake
