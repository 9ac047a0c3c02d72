#include "store/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "util/text.h"
#include "util/time.h"

namespace unflake {

std::string_view to_string(LifecycleStep::Kind kind) {
  switch (kind) {
    case LifecycleStep::Kind::quarantined:
      return "quarantined";
    case LifecycleStep::Kind::lifted:
      return "lifted";
    case LifecycleStep::Kind::expired:
      return "expired";
    case LifecycleStep::Kind::report_opened:
      return "report opened";
    case LifecycleStep::Kind::report_closed:
      return "report closed";
    case LifecycleStep::Kind::report_reopened:
      return "report reopened";
    case LifecycleStep::Kind::detected:
      return "detected";
    case LifecycleStep::Kind::introduced:
      return "introduced";
  }
  return "";
}

int64_t to_microseconds(TimePoint time) {
  return std::chrono::floor<std::chrono::microseconds>(time.time_since_epoch()).count();
}

std::optional<int64_t> to_microseconds(const std::optional<TimePoint>& time) {
  if (!time) return std::nullopt;
  return to_microseconds(*time);
}

TimePoint to_time(int64_t microseconds) {
  const int64_t bounded = std::clamp(microseconds, to_microseconds(TimePoint::min()) + 1,
                                     to_microseconds(TimePoint::max()));
  return TimePoint(std::chrono::microseconds(bounded));
}

int64_t recorded_us(Duration duration) {
  return duration == unknown_duration ? duration.count() : std::max<int64_t>(duration.count(), 0);
}

std::string join_argv(const std::vector<std::string>& argv) {
  std::string joined;
  for (const std::string& word : argv) joined.append(word.c_str()).push_back('\0');
  return joined;
}

std::vector<std::string> split_argv(std::string_view joined) {
  std::vector<std::string> argv;
  for (size_t end = 0; (end = joined.find('\0')) != std::string_view::npos;) {
    argv.emplace_back(joined.substr(0, end));
    joined.remove_prefix(end + 1);
  }
  return argv;
}

int64_t cut_off(const std::optional<Duration>& kept, TimePoint now) {
  if (!kept) return INT64_MIN;
  return to_microseconds(now) - std::clamp<int64_t>(kept->count(), 0, INT64_MAX / 2);
}

TrialBounds trial_bounds(const Retention& retention, TimePoint now) {
  if (retention.most_trials == 0) return {.before_us = INT64_MAX};
  return {.before_us = cut_off(retention.trials, now),
          .newer = retention.most_trials ? *retention.most_trials - 1 : INT64_MAX};
}

std::string make_session_uuid() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

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

using Step = LifecycleStep::Kind;
constexpr std::array<std::pair<Step, int64_t>, 8> steps{{
    {Step::quarantined, 0},
    {Step::lifted, 1},
    {Step::expired, 2},
    {Step::report_opened, 3},
    {Step::report_closed, 4},
    {Step::report_reopened, 5},
    {Step::detected, 6},
    {Step::introduced, 7},
}};

constexpr std::array<std::pair<FunctionKind, int64_t>, 3> function_kinds{{
    {FunctionKind::project, 0},
    {FunctionKind::call, 1},
    {FunctionKind::library, 2},
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

int64_t code_of(LifecycleStep::Kind kind) {
  return find_code(steps, kind, 0);
}

LifecycleStep::Kind lifecycle_from_code(int64_t code) {
  return find_kind(steps, code, LifecycleStep::Kind::quarantined);
}

int64_t code_of(CauseRecord::State state) {
  return state == CauseRecord::State::closed ? 1 : 0;
}

CauseRecord::State cause_state_from_code(int64_t code) {
  return code == 1 ? CauseRecord::State::closed : CauseRecord::State::open;
}

int64_t code_of(FunctionKind kind) {
  return find_code(function_kinds, kind, 0);
}

FunctionKind function_kind_from_code(int64_t code) {
  return find_kind(function_kinds, code, FunctionKind::project);
}

std::string packed_rows(std::span<const int64_t> ascending) {
  std::string packed;
  uint64_t last = 0;
  for (const int64_t row : ascending) {
    uint64_t distance = static_cast<uint64_t>(row) - std::exchange(last, row);
    for (; distance > 0x7f; distance >>= 7) packed += static_cast<char>(0x80 | (distance & 0x7f));
    packed += static_cast<char>(distance);
  }
  return packed;
}

std::vector<int64_t> unpacked_rows(std::string_view packed) {
  std::vector<int64_t> rows;
  uint64_t last = 0, distance = 0;
  int shift = 0;
  for (const char letter : packed) {
    const auto byte = static_cast<uint8_t>(letter);
    if (shift > 56) break;
    distance |= uint64_t{byte & 0x7fu} << shift;
    shift += 7;
    if ((byte & 0x80) != 0) continue;
    if (distance == 0 || distance > INT64_MAX - last) break;
    rows.push_back(static_cast<int64_t>(last += distance));
    distance = 0;
    shift = 0;
  }
  return rows;
}

int64_t hash_of_members(std::string_view packed) {
  return static_cast<int64_t>(fnv1a(packed));
}

void TraceReader::add(TestId test, TimePoint at, std::string commit, std::string_view members) {
  traces_.tests.push_back({std::move(test), at, std::move(commit), {}});
  rows_.push_back(unpacked_rows(members));
  for (const int64_t row : rows_.back()) numbers_.try_emplace(row, 0);
}

void TraceReader::name(int64_t row, FunctionId function) {
  const auto number = numbers_.find(row);
  if (number == numbers_.end() || number->second != 0) return;
  traces_.functions.push_back(std::move(function));
  number->second = static_cast<uint32_t>(traces_.functions.size());
}

FunctionTraces TraceReader::take() {
  for (size_t i = 0; i < rows_.size(); ++i) {
    std::vector<uint32_t>& functions = traces_.tests[i].functions;
    for (const int64_t row : rows_[i])
      if (const uint32_t number = numbers_[row]; number != 0) functions.push_back(number - 1);
    std::ranges::sort(functions);
  }
  return std::move(traces_);
}

}  // namespace unflake
