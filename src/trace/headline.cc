#include <fmt/format.h>

#include "trace/message.h"
#include "trace/outcome.h"
#include "trace/scan.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_bytes = 200;

std::string place_of(const Failure& failure) {
  const std::string_view name = base_name(failure.file);
  return failure.line > 0 ? fmt::format("{}:{}", name, failure.line) : std::string(name);
}

std::string_view tool_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::address_sanitizer:
      return "AddressSanitizer";
    case FailureKind::thread_sanitizer:
      return "ThreadSanitizer";
    case FailureKind::undefined_behaviour_sanitizer:
      return "UndefinedBehaviorSanitizer";
    case FailureKind::memory_sanitizer:
      return "MemorySanitizer";
    case FailureKind::leak_sanitizer:
      return "LeakSanitizer";
    default:
      return "Valgrind";
  }
}

std::string first_line_said(const Failure& failure) {
  const std::string said = said_in(failure.message);
  return said.substr(0, said.find('\n'));
}

std::string report_headline(const Failure& failure) {
  std::string text = fmt::format("{} {}", tool_of(failure.kind), first_line_said(failure));
  if (!failure.function.empty()) text.append(" in ").append(failure.function);
  if (!failure.file.empty()) text.append(" ").append(place_of(failure));
  return text;
}

std::string timeout_headline(const Failure& failure) {
  if (!failure.function.empty())
    return fmt::format("timeout in {} {}", failure.function, place_of(failure));
  if (failure.file.empty()) return "timeout";
  return fmt::format("timeout after {}", place_of(failure));
}

std::string check_headline(const Failure& failure) {
  std::string text = place_of(failure);
  for (const std::string& part : {failure.expression, first_line_said(failure)}) {
    if (part.empty()) continue;
    if (!text.empty()) text += ": ";
    text += part;
  }
  return text.empty() ? std::string(to_string(failure.kind)) : text;
}

std::string full_headline(const Failure& failure) {
  if (is_sanitizer(failure.kind)) return report_headline(failure);
  if (failure.kind == FailureKind::timeout) return timeout_headline(failure);
  return check_headline(failure);
}

}  // namespace

std::string headline(const Failure& failure) {
  return shorten(printable(full_headline(failure)), most_bytes);
}

}  // namespace unflake
