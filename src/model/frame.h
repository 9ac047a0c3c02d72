#pragma once

#include <cstdint>
#include <string>

namespace unflake {

// One source position of an address. An address has several when calls were inlined there.
struct Frame {
  std::string function;  // demangled and qualified, without parameters: "Server::push"
  std::string file;      // absolute where the compiler said so; empty without debug information
  int line = 0;
  uint64_t function_start = 0;  // of the function that the linker sees
  bool inlined = false;         // into the next frame
};

struct CodeSpot {
  std::string file;  // as full as the trace knows it
  int line = 0;      // 0: not known
  std::string function;
  bool operator==(const CodeSpot&) const = default;
};

}  // namespace unflake
