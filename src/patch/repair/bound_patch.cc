#include <fmt/format.h>

#include <cmath>
#include <regex>

#include "patch/literals/time_literal.h"
#include "patch/repair/assertions.h"
#include "patch/repair/repair_sources.h"
#include "util/text.h"
#include "util/time.h"

namespace unflake {
namespace {

constexpr double tolerance = 1.5;  // of what runs say about a bound

struct TimeUnit {
  std::string_view suffix, type;
  double microseconds;
};

constexpr TimeUnit time_units[] = {
    {"ns", "nanoseconds", 1e-3}, {"us", "microseconds", 1}, {"ms", "milliseconds", 1e3},
    {"s", "seconds", 1e6},       {"min", "minutes", 60e6},
};

struct NumberInText {
  size_t offset = 0;
  std::string digits;
  double microseconds = 0;  // of one; 0: the text does not say
};

double unit_of(const std::string& suffix, const std::string& type) {
  for (const TimeUnit& unit : time_units)
    if (unit.suffix == suffix || unit.type == type) return unit.microseconds;
  return 0;
}

// `100ms`, `std::chrono::milliseconds(100)`, `100`.
std::vector<NumberInText> numbers_in(const std::string& text) {
  static const std::regex number(
      R"((?:(\w+)\s*[({]\s*)?\b(\d[\d']*(?:\.\d+)?)(ns|us|ms|s|min)?\b)");
  std::vector<NumberInText> found;
  for (std::sregex_iterator each(text.begin(), text.end(), number), end; each != end; ++each)
    found.push_back({static_cast<size_t>(each->position(2)), each->str(2),
                     unit_of(each->str(3), each->str(1))});
  return found;
}

double value_of(std::string digits) {
  std::erase(digits, '\'');
  return std::stod(digits);
}

// A plain number counts what makes it the old time: seconds, milliseconds or microseconds.
std::optional<double> unit_that_fits(const NumberInText& number, Duration old_value) {
  const double wanted = static_cast<double>(old_value.count());
  for (const double unit : {1e6, 1e3, 1.0}) {
    if (number.microseconds != 0 && number.microseconds != unit) continue;
    if (std::abs(value_of(number.digits) * unit - wanted) < 0.5) return unit;
  }
  return std::nullopt;
}

// The unit of a number that may be the bound.
std::optional<double> unit_of_bound(const NumberInText& number, const NewBound& bound) {
  if (bound.old_value > Duration{}) return unit_that_fits(number, bound.old_value);
  const double value = value_of(number.digits) * number.microseconds;
  const bool fits = value >= static_cast<double>(bound.least_old.count()) / tolerance &&
                    value <= static_cast<double>(bound.most_old.count()) * tolerance;
  return fits && value > 0 ? std::optional(number.microseconds) : std::nullopt;
}

std::string old_words(const NewBound& bound) {
  if (bound.old_value > Duration{}) return format_duration(bound.old_value);
  return fmt::format("{} to {}", format_duration(bound.least_old), format_duration(bound.most_old));
}

Result<SourceEdit> edit_assertion(const PatchPlace& place, const NewBound& bound) {
  const std::string& text = place.unit->text_of(place.file);
  std::vector<SourceEdit> edits;
  for (const MacroUse& use : macro_uses(*place.unit, place.file)) {
    if (use.first_line > place.line || place.line > use.last_line) continue;
    for (const NumberInText& number : numbers_in(text.substr(use.begin, use.end - use.begin)))
      if (const auto unit = unit_of_bound(number, bound)) {
        const double count = std::ceil(static_cast<double>(bound.new_value.count()) / *unit);
        edits.push_back({place.file, place.line, use.begin + number.offset, number.digits,
                         fmt::format("{:.0f}", count), ""});
      }
  }
  if (edits.size() != 1)
    return usage_error(fmt::format("{} literal there is {}", edits.empty() ? "no" : "more than one",
                                   old_words(bound)),
                       short_place(place.file, place.line),
                       "change by hand what bounds the time there; " +
                           format_duration(bound.new_value) + " would hold");
  return edits[0];
}

}  // namespace

namespace {

std::string old_text(const SourceEdit& edit, const NewBound& bound) {
  return bound.old_value > Duration{} ? format_duration(bound.old_value) : edit.old_text;
}

}  // namespace

Result<DraftPatch> draft_bound(const PatchRequest& request, RepairSources& sources) {
  if (!request.bound) return usage_error("it is no test of how long something takes");
  const NewBound& bound = *request.bound;
  const auto place = sources.place(bound.place.spot);
  if (!place) return place.error();
  auto edit = bound.api.empty()
                  ? edit_assertion(*place, bound)
                  : edit_time_literal({place->file, place->line, bound.api, bound.old_value},
                                      bound.new_value, request.compile_commands_folder);
  if (!edit) return edit.error();
  DraftPatch draft;
  draft.idiom = RepairIdiom::bound;
  draft.what = fmt::format("{} allows {} instead of {}", short_place(place->file, place->line),
                           format_duration(bound.new_value), old_text(*edit, bound));
  if (!edit->caution.empty()) draft.cautions.push_back(edit->caution);
  draft.edits.push_back(std::move(*edit));
  return draft;
}

}  // namespace unflake
