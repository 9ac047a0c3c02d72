#include "model/outcome.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <utility>

#include "util/text.h"

namespace unflake {
namespace {

constexpr std::array<std::pair<OutcomeKind, std::string_view>, 5> outcome_names{{
    {OutcomeKind::pass, "pass"},
    {OutcomeKind::fail, "fail"},
    {OutcomeKind::crash, "crash"},
    {OutcomeKind::timeout, "timeout"},
    {OutcomeKind::skipped, "skipped"},
}};

constexpr std::array<std::pair<FailureKind, std::string_view>, 14> failure_names{{
    {FailureKind::assertion, "assertion"},
    {FailureKind::exception, "exception"},
    {FailureKind::signal, "signal"},
    {FailureKind::exit_status, "exit_status"},
    {FailureKind::output_pattern, "output_pattern"},
    {FailureKind::unexpected_pass, "unexpected_pass"},
    {FailureKind::timeout, "timeout"},
    {FailureKind::address_sanitizer, "address_sanitizer"},
    {FailureKind::thread_sanitizer, "thread_sanitizer"},
    {FailureKind::undefined_behaviour_sanitizer, "undefined_behaviour_sanitizer"},
    {FailureKind::memory_sanitizer, "memory_sanitizer"},
    {FailureKind::leak_sanitizer, "leak_sanitizer"},
    {FailureKind::valgrind, "valgrind"},
    {FailureKind::not_started, "not_started"},
}};

template <class Names, class Kind>
std::string_view name_of(const Names& names, Kind kind) {
  for (const auto& [value, name] : names)
    if (value == kind) return name;
  return "?";
}

template <class Kind, size_t count>
std::optional<Kind> kind_named(const std::array<std::pair<Kind, std::string_view>, count>& names,
                               std::string_view wanted) {
  for (const auto& [value, name] : names)
    if (name == wanted) return value;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(OutcomeKind kind) {
  return name_of(outcome_names, kind);
}

std::optional<OutcomeKind> outcome_kind_from(std::string_view name) {
  return kind_named(outcome_names, name);
}

std::string_view to_string(FailureKind kind) {
  return name_of(failure_names, kind);
}

std::optional<FailureKind> failure_kind_from(std::string_view name) {
  return kind_named(failure_names, name);
}

bool is_without_place(const Failure& failure) {
  const bool needs_one =
      failure.kind == FailureKind::signal || failure.kind == FailureKind::timeout;
  return needs_one && failure.file.empty() && failure.function.empty();
}

bool is_sanitizer(FailureKind kind) {
  switch (kind) {
    case FailureKind::address_sanitizer:
    case FailureKind::thread_sanitizer:
    case FailureKind::undefined_behaviour_sanitizer:
    case FailureKind::memory_sanitizer:
    case FailureKind::leak_sanitizer:
    case FailureKind::valgrind:
      return true;
    default:
      return false;
  }
}

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
    return std::string(trim(fmt::format("timeout in {} {}", failure.function, place_of(failure))));
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
  if (failure.kind == FailureKind::signal && failure.line == 0 && !failure.function.empty())
    return fmt::format("{} in {}", first_line_said(failure), failure.function);
  if (is_sanitizer(failure.kind)) return report_headline(failure);
  if (failure.kind == FailureKind::timeout) return timeout_headline(failure);
  return check_headline(failure);
}

}  // namespace

std::string headline(const Failure& failure) {
  return shorten(printable(full_headline(failure)), most_bytes);
}

std::string CapturedOutput::text() const {
  if (dropped() == 0) return head + tail;
  return fmt::format("{}\n[... {} bytes not kept ...]\n{}", head, dropped(), tail);
}

bool lacks_something(const ProcessResult& process) {
  return process.end == ProcessResult::End::not_started &&
         (process.code == ENOENT || process.code == ENOTDIR);
}

std::string whole_output(const ProcessResult& process) {
  std::string text = process.output.text();
  if (process.errors.total == 0) return text;
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return text + process.errors.text();
}

}  // namespace unflake
