#include "store/function_sets.h"

#include <algorithm>
#include <utility>

#include "util/text.h"

namespace unflake {

std::string packed_rows(std::span<const int64_t> ascending) {
  std::string packed;
  uint64_t last = 0;
  for (const int64_t row : ascending) {
    uint64_t distance = static_cast<uint64_t>(row) - std::exchange(last, row);
    for (; distance > 0x7f; distance >>= 7) packed += static_cast<char>(0x80 | (distance & 0x7f));
    packed += static_cast<char>(distance);
  }
  return packed;
}

std::vector<int64_t> unpacked_rows(std::string_view packed) {
  std::vector<int64_t> rows;
  uint64_t last = 0, distance = 0;
  int shift = 0;
  for (const char letter : packed) {
    const auto byte = static_cast<uint8_t>(letter);
    if (shift > 56) break;
    distance |= uint64_t{byte & 0x7fu} << shift;
    shift += 7;
    if ((byte & 0x80) != 0) continue;
    if (distance == 0 || distance > INT64_MAX - last) break;
    rows.push_back(static_cast<int64_t>(last += distance));
    distance = 0;
    shift = 0;
  }
  return rows;
}

int64_t hash_of_members(std::string_view packed) {
  return static_cast<int64_t>(fnv1a(packed));
}

void TraceReader::add(TestId test, TimePoint at, std::string commit, std::string_view members) {
  traces_.tests.push_back({std::move(test), at, std::move(commit), {}});
  rows_.push_back(unpacked_rows(members));
  for (const int64_t row : rows_.back()) numbers_.try_emplace(row, 0);
}

void TraceReader::name(int64_t row, FunctionId function) {
  const auto number = numbers_.find(row);
  if (number == numbers_.end() || number->second != 0) return;
  traces_.functions.push_back(std::move(function));
  number->second = static_cast<uint32_t>(traces_.functions.size());
}

FunctionTraces TraceReader::take() {
  for (size_t i = 0; i < rows_.size(); ++i) {
    std::vector<uint32_t>& functions = traces_.tests[i].functions;
    for (const int64_t row : rows_[i])
      if (const uint32_t number = numbers_[row]; number != 0) functions.push_back(number - 1);
    std::ranges::sort(functions);
  }
  return std::move(traces_);
}

}  // namespace unflake
