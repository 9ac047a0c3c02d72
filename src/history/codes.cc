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

using Event = LifecycleEvent::Kind;
constexpr std::array<std::pair<Event, int64_t>, 6> events{{
    {Event::quarantined, 0},
    {Event::lifted, 1},
    {Event::expired, 2},
    {Event::report_opened, 3},
    {Event::report_closed, 4},
    {Event::report_reopened, 5},
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

int64_t code_of(LifecycleEvent::Kind kind) {
  return find_code(events, kind, 0);
}

LifecycleEvent::Kind lifecycle_from_code(int64_t code) {
  return find_kind(events, code, LifecycleEvent::Kind::quarantined);
}

int64_t code_of(CauseRecord::State state) {
  return state == CauseRecord::State::closed ? 1 : 0;
}

CauseRecord::State cause_state_from_code(int64_t code) {
  return code == 1 ? CauseRecord::State::closed : CauseRecord::State::open;
}

}  // namespace unflake
