#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"

// What both kinds of databases do with the functions that a test executed.
namespace unflake {

// Of names and files: a mangled template may have as many letters as its author's patience allows.
constexpr size_t longest_function_name = 4096;

// A set of rows, ascending, in few bytes: the distance of each from the one before it. Reading
// stops at what cannot have been written so.
std::string packed_rows(std::span<const int64_t> ascending);
std::vector<int64_t> unpacked_rows(std::string_view packed);

int64_t hash_of_members(std::string_view packed);

// Puts traces together from their rows. Names may come after the sets that they are in.
class TraceReader {
 public:
  void add(TestId test, TimePoint at, std::string commit, std::string_view members);
  // Ignored when no set has it.
  void name(int64_t row, FunctionId function);
  FunctionTraces take();

 private:
  FunctionTraces traces_;
  std::vector<std::vector<int64_t>> rows_;  // of each test
  std::map<int64_t, uint32_t> numbers_;     // of rows, from 1; 0: has no name
};

}  // namespace unflake
