#include "patch/literal_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "patch/time_calls.h"
#include "patch/time_expression.h"
#include "util/text.h"

namespace unflake {
namespace {

using Kind = TimeExpression::Kind;

// A number whose unit only the callee knows may be any of these.
constexpr double guessed_units[] = {1e6, 1e3, 1e9, 1};
constexpr size_t most_callers = 100;
constexpr size_t most_notes = 3;

Duration in_microseconds(const TimeExpression& time) {
  return Duration(std::llround(time.amount / 1e3));
}

class LiteralSearch {
 public:
  LiteralSearch(const SourceUnit& unit, const VariableUses& uses, const WantedLiteral& wanted,
                Duration most)
      : unit_(unit), uses_(uses), wanted_(wanted), most_(most) {}

  Result<FoundLiteral> find() {
    const auto calls = calls_at(unit_, wanted_.line);
    for (int distance = 0; distance <= most_call_distance; ++distance) {
      for (const bool is_known : {true, false}) {
        const auto found = matches(calls, distance, is_known);
        if (found.size() > 1) return several(found);
        if (found.size() == 1) return found[0];
      }
    }
    return nothing(calls.size());
  }

 private:
  std::vector<FoundLiteral> matches(const std::vector<CallAtLine>& calls, int distance,
                                    bool is_known) {
    std::vector<FoundLiteral> found;
    for (const CallAtLine& one : calls) {
      if (one.distance != distance) continue;
      for (const TimeArgument& argument : time_arguments(one.call, wanted_.api))
        if (argument.is_known == is_known) add_matches(argument, found);
    }
    return found;
  }

  void add_matches(const TimeArgument& argument, std::vector<FoundLiteral>& found) {
    size_t callers = 1;
    for (size_t caller = 0; caller < std::min(callers, most_callers); ++caller) {
      const auto time = evaluate_time(unit_, uses_, argument.expression, caller);
      callers = std::max(callers, time.callers);
      add_match(argument, time, found);
    }
  }

  void add_match(const TimeArgument& argument, const TimeExpression& plain,
                 std::vector<FoundLiteral>& found) {
    const bool is_guess = plain.kind == Kind::number && argument.unit == 0;
    for (const double unit : guessed_units) {
      TimeExpression time = in_unit(plain, is_guess ? unit : argument.unit);
      if (is_wanted(time) && !is_same(time, found))
        found.push_back({std::move(time), argument.callee, is_guess, unit, argument.is_default});
      if (!is_guess) break;
    }
    if (argument.is_known) note(argument, in_unit(plain, argument.unit));
  }

  bool is_wanted(const TimeExpression& time) const {
    if (time.kind != Kind::duration || time.numbers.empty()) return false;
    // Times that the agent saw are cut to microseconds, not rounded.
    const Duration rounded = in_microseconds(time);
    const Duration cut(static_cast<int64_t>(time.amount / 1e3));
    return (wanted_.value <= rounded && rounded < most_) || cut == wanted_.value;
  }

  // Two calls that take their time from one constant.
  static bool is_same(const TimeExpression& time, const std::vector<FoundLiteral>& found) {
    return std::any_of(found.begin(), found.end(), [&](const FoundLiteral& other) {
      const Spot& a = time.numbers[0].at;
      const Spot& b = other.time.numbers[0].at;
      return a.file == b.file && a.offset == b.offset;
    });
  }

  void note(const TimeArgument& argument, const TimeExpression& time) {
    const std::string callee = printable(argument.callee);
    notes_.insert(
        time.is_known()
            ? fmt::format("{}() is passed {}", callee, format_duration(in_microseconds(time)))
            : fmt::format("the time of {}() comes from {}", callee,
                          time.reason.empty() ? "what is computed at run time" : time.reason));
  }

  std::string place() const { return fmt::format("{}:{}", printable(wanted_.file), wanted_.line); }

  Error several(const std::vector<FoundLiteral>& found) const {
    std::vector<std::string> places;
    for (const FoundLiteral& one : found)
      places.push_back(fmt::format("{}() in line {}", one.callee, one.time.numbers[0].at.line));
    return usage_error(fmt::format("several calls here are passed {}: {}",
                                   format_duration(wanted_.value), printable(join(places, ", "))),
                       place(), "change the one that you mean by hand");
  }

  Error nothing(size_t calls) const {
    const std::string what = fmt::format("no literal here makes {} of {}", printable(wanted_.api),
                                         format_duration(wanted_.value));
    if (!notes_.empty())
      return usage_error(
          fmt::format(
              "{}: {}", what,
              join({notes_.begin(), std::next(notes_.begin(), static_cast<long>(std::min(
                                                                  notes_.size(), most_notes)))},
                   "; ")),
          place());
    if (calls > 0) return usage_error(what, place());
    if (const auto errors = unit_.errors(); !errors.empty())
      return usage_error(
          fmt::format("{}, as far as it can be read (`{}`): --compile-commands FOLDER may help",
                      what, printable(errors.front())),
          place());
    return usage_error(what, place(), "the source may have changed since the program was built");
  }

  const SourceUnit& unit_;
  const VariableUses& uses_;
  const WantedLiteral& wanted_;
  Duration most_;
  std::set<std::string> notes_;
};

}  // namespace

Result<FoundLiteral> find_literal(const SourceUnit& unit, const VariableUses& uses,
                                  const WantedLiteral& wanted, Duration most) {
  return LiteralSearch(unit, uses, wanted, most).find();
}

}  // namespace unflake
