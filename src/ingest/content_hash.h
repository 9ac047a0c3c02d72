#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace unflake {

// SHA-256, a piece at a time.
class ContentHash {
 public:
  ContentHash();
  void add(std::string_view bytes);
  // A text and where it ends, so that two neighbours cannot be taken for others.
  void add_field(std::string_view text);
  std::string hex() &&;

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

}  // namespace unflake
