#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace unflake {

// What a command has to say that is no session: collected, then written to standard output at once.
class Page {
 public:
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  // The exit code: a reader that goes away early (`| head`) has what it wanted; a full disk is an
  // error.
  int write_out() const;

 private:
  std::string text_;
};

}  // namespace unflake
