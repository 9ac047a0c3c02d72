#include "history/codes.h"

#include <array>
#include <utility>

namespace unflake {
namespace {

constexpr std::array<std::pair<OutcomeKind, int64_t>, 5> outcomes{{
    {OutcomeKind::pass, 0},
    {OutcomeKind::fail, 1},
    {OutcomeKind::crash, 2},
    {OutcomeKind::timeout, 3},
    {OutcomeKind::skipped, 4},
}};

constexpr std::array<std::pair<FailureKind, int64_t>, 14> failures{{
    {FailureKind::exit_status, 0},
    {FailureKind::assertion, 1},
    {FailureKind::exception, 2},
    {FailureKind::signal, 3},
    {FailureKind::output_pattern, 4},
    {FailureKind::unexpected_pass, 5},
    {FailureKind::timeout, 6},
    {FailureKind::address_sanitizer, 7},
    {FailureKind::thread_sanitizer, 8},
    {FailureKind::undefined_behaviour_sanitizer, 9},
    {FailureKind::memory_sanitizer, 10},
    {FailureKind::leak_sanitizer, 11},
    {FailureKind::valgrind, 12},
    {FailureKind::not_started, 13},
}};

template <class Table, class Kind>
int64_t find_code(const Table& table, Kind kind, int64_t otherwise) {
  for (const auto& [known, code] : table)
    if (known == kind) return code;
  return otherwise;
}

template <class Table, class Kind>
Kind find_kind(const Table& table, int64_t code, Kind otherwise) {
  for (const auto& [kind, known] : table)
    if (known == code) return kind;
  return otherwise;
}

}  // namespace

int64_t code_of(OutcomeKind kind) {
  return find_code(outcomes, kind, 1);
}

OutcomeKind outcome_from_code(int64_t code) {
  return find_kind(outcomes, code, OutcomeKind::fail);
}

int64_t code_of(FailureKind kind) {
  return find_code(failures, kind, 0);
}

FailureKind failure_from_code(int64_t code) {
  return find_kind(failures, code, FailureKind::exit_status);
}

}  // namespace unflake
