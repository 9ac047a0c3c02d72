#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace unflake {

// One line of a stack as a sanitizer or Valgrind prints it.
struct StackFrame {
  std::string function;  // "server+0x1f" where only the address is known
  std::string file;
  int line = 0;
  std::string module;  // the executable or library, without its folder
  auto operator<=>(const StackFrame&) const = default;
};

//     #0 0x55d1 in app::Server::push(int) /src/server.cc:9:12 (server+0x1f) (BuildId: 15)
std::optional<StackFrame> parse_sanitizer_frame(std::string_view line);

//    at 0x10B607: app::Server::push(int) (server.cc:9)
std::optional<StackFrame> parse_valgrind_frame(std::string_view line);

// Frames that are the same whatever the mistake: allocator, C and C++ libraries, the tool itself.
bool is_runtime_frame(const StackFrame& frame);

}  // namespace unflake
