#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "suite/test.h"

namespace unflake {

struct NameHash {
  size_t operator()(const std::string& name) const { return std::hash<std::string>()(name); }
  size_t operator()(const TestId& test) const {
    return (*this)(test.name) ^ (*this)(test.target) * 31;
  }
};

// The rows of names that were seen. Begins anew when it holds much: whoever takes in millions of
// tests must not keep all their names in memory.
template <class Name>
class RowCache {
 public:
  const int64_t* find(const Name& name) const {
    const auto found = rows_.find(name);
    return found != rows_.end() ? &found->second : nullptr;
  }

  int64_t add(const Name& name, int64_t row) {
    constexpr size_t most_bytes = 64 * 1024 * 1024;
    const size_t size = bytes_of(name) + sizeof(Name) + 64;
    if (bytes_ + size > most_bytes) clear();
    bytes_ += size;
    rows_[name] = row;
    return row;
  }

  void clear() {
    rows_.clear();
    bytes_ = 0;
  }

 private:
  static size_t bytes_of(const std::string& name) { return name.size(); }
  static size_t bytes_of(const TestId& test) { return test.target.size() + test.name.size(); }

  std::unordered_map<Name, int64_t, NameHash> rows_;
  size_t bytes_ = 0;
};

}  // namespace unflake
