#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace unflake {

// Without "." and "..", as far as the text alone can tell.
std::string normal_path(std::string_view path);

// Source files by number. The compiler names one file in many ways; here it has one.
class FileTable {
 public:
  // As libdw gives it, with the compile folder in front. It must stay where it is as long as the
  // table lives: the same pointer comes again and again.
  uint32_t number_of(const char* raw);
  const std::string& name(uint32_t number) const { return names_[number]; }
  size_t size() const { return names_.size(); }

 private:
  std::unordered_map<const void*, uint32_t> by_pointer_;
  std::unordered_map<std::string, uint32_t> by_name_;
  std::deque<std::string> names_;
};

}  // namespace unflake
