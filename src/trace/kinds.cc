#include <array>
#include <utility>

#include "trace/outcome.h"

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

}  // namespace

std::string_view to_string(OutcomeKind kind) {
  return name_of(outcome_names, kind);
}

std::string_view to_string(FailureKind kind) {
  return name_of(failure_names, kind);
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

}  // namespace unflake
