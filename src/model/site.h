#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "util/result.h"

namespace unflake::protocol {
struct ApiFacts;
struct GroupFacts;
}  // namespace unflake::protocol

namespace unflake {

// What data/timing-apis.toml says about a call or a group of them; null: it does not know the
// name.
const protocol::ApiFacts* find_timing_api(std::string_view name);
const protocol::GroupFacts* find_timing_group(std::string_view name);

// Which argument of the C function of this name is its time, from 0, and what a plain number
// counts.
struct ApiTime {
  size_t argument = 0;
  uint32_t unit_ns = 1;
};
std::optional<ApiTime> time_of_api(std::string_view name);
bool is_sleep(std::string_view api);

// One source position of an address. An address has several when calls were inlined there.
struct Frame {
  std::string function;  // demangled and qualified, without parameters: "Server::push"
  std::string file;      // absolute where the compiler said so; empty without debug information
  int line = 0;
  uint64_t function_start = 0;  // of the function that the linker sees
  bool inlined = false;         // into the next frame
};

struct CodeSpot {
  std::string file;  // as fully as the trace knows it
  int line = 0;      // 0: not known
  std::string function;
  bool operator==(const CodeSpot&) const = default;
};

// A place where a thread can be acted on, named by what it is. Written
//   queue.cc:57:pthread_cond_wait      a call of a timing API, seen from the first project frame
//   queue.cc:57                        a source line
//   Queue::pop()                       a function's entry
//   server!queue.cc:57                 the same in an executable or library other than the test's
//   own
// without debug information Queue::pop+0x3c takes the place of queue.cc:57, in a stripped file
// server_test+0x1174, with the file's name and the address as tools like addr2line take it. #2
// after a name means the second of several such places, in the order of their addresses.
struct SiteName {
  std::string image;  // base name; empty: the test's own executable
  std::string file;   // short but unambiguous in the trace; empty without debug information
  int line = 0;
  std::string function;  // qualified, without parameters; of nameless code the image's base name
  uint64_t offset = 0;   // in the function or of the image, when there is no line
  std::string api;       // empty: a line or a function's entry
  int nth = 1;

  auto operator<=>(const SiteName&) const = default;
};

// "FUNCTION+0x3c"
inline bool is_instruction(const SiteName& site) {
  return site.api.empty() && site.file.empty() && !site.function.empty() && site.offset > 0;
}

std::string to_string(const SiteName& site);
Result<SiteName> parse_site(std::string_view text);

// The identity of a thread across runs. Written `main`, or by the place that started it and how
// many that place had started before: `pool.cc:31#2`; `pool.cc:31#*` is the class of all of them.
// Where two different call paths meet at one place, `~` and some digits of the path's hash tell
// them apart.
struct ThreadName {
  std::string text;
  uint64_t name = 0;          // as the agent hashes it
  uint64_t thread_class = 0;  // the same without the number
  // What people call it: "the thread `flusher`", "thread 2 of 4 that run `Pool::work`". It is no
  // part of the identity, and says less than that where a program has many. Empty: not known.
  std::string role{};

  bool operator==(const ThreadName& other) const {
    return text == other.text && name == other.name && thread_class == other.thread_class;
  }
};

// For a person: its role, and the text that plans know it by.
std::string told(const ThreadName& thread);

// The text of a thread's name without its number: what all threads of one class share.
std::string thread_class_of(const std::string& text);

}  // namespace unflake
