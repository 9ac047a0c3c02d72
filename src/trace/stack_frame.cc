#include "trace/stack_frame.h"

#include <algorithm>
#include <array>

#include "trace/scan.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr std::array runtime_prefixes{"__interceptor_",
                                      "___interceptor_",
                                      "__asan",
                                      "__tsan",
                                      "__msan",
                                      "__ubsan",
                                      "__lsan",
                                      "__hwasan",
                                      "__sanitizer",
                                      "__interception",
                                      "operator new",
                                      "operator delete",
                                      "__libc_",
                                      "__gthread",
                                      "pthread_",
                                      "std::",
                                      "void std::",
                                      "__gnu_cxx::",
                                      "__cxa_",
                                      "__GI_",
                                      "__assert_fail",
                                      "_dl_",
                                      "__pthread_",
                                      "__memcpy",
                                      "__memmove",
                                      "__memset",
                                      "__str",
                                      "void* std::",
                                      "bool std::",
                                      "__invoke_impl",
                                      "sem_",
                                      "asan_thread_start",
                                      "(<unknown module>"};

constexpr std::array runtime_functions{
    "malloc",        "calloc",  "realloc",      "free",    "memcpy", "memmove", "memset",
    "memcmp",        "strlen",  "strcpy",       "strncpy", "strcat", "strcmp",  "strdup",
    "strndup",       "sprintf", "printf",       "puts",    "abort",  "raise",   "gsignal",
    "clone",         "clone3",  "start_thread", "_start",  "???",    "<null>",  "posix_memalign",
    "aligned_alloc", "read",    "write",        "close"};

constexpr std::array runtime_files{"libsanitizer/", "compiler-rt/",  "/include/c++/",
                                   "sysdeps/",      "/csu/",         "../csu/",
                                   "/nptl/",        "/usr/include/", "/gthr-default.h"};

constexpr std::array runtime_modules{"libc.so",    "libc-2.",   "libstdc++",   "libc++",
                                     "libpthread", "libasan",   "libtsan",     "libubsan",
                                     "libm.so",    "ld-linux",  "vgpreload",   "liblsan",
                                     "libm-2.",    "libhwasan", "libclang_rt."};

std::string_view without_arguments(std::string_view function) {
  return function.substr(0, function.find('('));
}

// " (server+0x1f)", " (BuildId: 15)" and " (in /usr/lib/libc.so)" at the end.
std::optional<std::string_view> take_parenthesised_end(std::string_view& text) {
  if (!text.ends_with(')')) return std::nullopt;
  const size_t open = text.rfind(" (");
  if (open == std::string_view::npos) return std::nullopt;
  const std::string_view inside = text.substr(open + 2, text.size() - open - 3);
  text = text.substr(0, open);
  return inside;
}

// Cuts off "(/build/server+0x1f) (BuildId: 15)" and returns "server+0x1f", which is the same for as
// long as the file is.
std::string_view take_address(std::string_view& text) {
  std::string_view address;
  for (;;) {
    std::string_view shorter = text;
    const auto inside = take_parenthesised_end(shorter);
    if (!inside) return address;
    const bool is_address = contains(*inside, "+0x");
    if (!is_address && !inside->starts_with("BuildId: ")) return address;
    if (is_address) address = base_name(*inside);
    text = shorter;
  }
}

// Nobody knew the function's name.
bool is_address(const StackFrame& frame) {
  std::string_view rest = frame.function;
  return !frame.module.empty() && consume(rest, frame.module) && rest.starts_with("+0x");
}

// Copies that the optimiser made have the name of the function plus a tail of their own.
std::string clean_function(std::string_view name) {
  for (const auto* tail : {" [clone ", ".isra.", ".constprop.", ".part.", ".cold", ".llvm."})
    name = name.substr(0, name.find(tail));
  return std::string(trim(name));
}

bool skip_hex(std::string_view& text) {
  if (!consume(text, "0x")) return false;
  while (!text.empty() && is_hex_digit(text.front())) text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<StackFrame> parse_sanitizer_frame(std::string_view line) {
  line = trim(line);
  if (!consume(line, "#")) return std::nullopt;
  const size_t digits = leading_digits(line).size();
  if (digits == 0 || digits > 4) return std::nullopt;
  line.remove_prefix(digits);
  if (!line.starts_with(' ')) return std::nullopt;
  std::string_view behind_address = line.substr(1);
  if (skip_hex(behind_address)) line = behind_address;
  if (line.starts_with(" in ")) line.remove_prefix(3);

  StackFrame frame;
  const std::string_view address = take_address(line);
  frame.module = address.substr(0, address.rfind("+0x"));
  line = trim(line);
  const size_t space = line.rfind(' ');
  const std::string_view last = space == std::string_view::npos ? "" : line.substr(space + 1);
  const auto place = source_line_at_end(last);
  if (place) {
    frame.file = place->file;
    frame.line = place->line;
  }
  if (place || last == "<null>") line = line.substr(0, space);
  const bool nameless = line.empty() || line == "<null>";
  frame.function = nameless && !address.empty() ? std::string(address) : clean_function(line);
  return frame;
}

std::optional<StackFrame> parse_valgrind_frame(std::string_view line) {
  line = trim(line);
  if (!consume(line, "at ") && !consume(line, "by ")) return std::nullopt;
  if (!skip_hex(line) || !consume(line, ": ")) return std::nullopt;
  StackFrame frame;
  const auto inside = take_parenthesised_end(line);
  frame.function = clean_function(line);
  if (!inside) return frame;
  if (const auto place = source_line_at_end(*inside)) {
    frame.file = place->file;
    frame.line = place->line;
  } else {
    frame.module = base_name(*inside);
  }
  return frame;
}

bool is_runtime_frame(const StackFrame& frame) {
  const auto any = [](const auto& list, auto matches) {
    return std::any_of(list.begin(), list.end(), matches);
  };
  const std::string_view function = frame.function;
  const std::string_view module = frame.module;
  if (any(runtime_modules, [&](auto* start) { return module.starts_with(start); })) return true;
  if (is_address(frame)) return false;
  return function.empty() ||
         any(runtime_prefixes, [&](auto* start) { return function.starts_with(start); }) ||
         any(runtime_functions, [&](auto* name) { return without_arguments(function) == name; }) ||
         any(runtime_files, [&](auto* part) { return contains(frame.file, part); });
}

}  // namespace unflake
