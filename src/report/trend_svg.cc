#include "report/trend_svg.h"

#include <fmt/format.h>

#include <algorithm>

namespace unflake {
namespace {

constexpr double width = 600, height = 60, label = 16;
constexpr size_t most_bars = 400;  // the newest days of a longer window

}  // namespace

std::string trend_svg(std::span<const int64_t> per_day, Day first_day) {
  if (per_day.empty()) return "";
  const size_t skipped = per_day.size() - std::min(per_day.size(), most_bars);
  const auto shown = per_day.subspan(skipped);
  const double step = width / static_cast<double>(shown.size());
  const int64_t highest = std::ranges::max(shown);
  const double scale = height / static_cast<double>(std::max<int64_t>(1, highest));
  std::string svg = fmt::format(
      "<svg class=\"trend\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"failures per day, at most {}\">\n",
      width, height + label, highest);
  for (size_t day = 0; day < shown.size(); ++day) {
    const Day date = first_day + std::chrono::days(skipped + day);
    const double tall = scale * static_cast<double>(shown[day]);
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">"
        "<title>{}: {}</title></rect>\n",
        step * static_cast<double>(day), height - std::max(tall, 1.0), step * 0.8,
        std::max(tall, 1.0), format_day(date), shown[day]);
  }
  const Day last = first_day + std::chrono::days(per_day.size() - 1);
  return svg + fmt::format(
                   "<text x=\"0\" y=\"{0}\">{1}</text><text class=\"end\" x=\"{2}\" y=\"{0}\">{3}, "
                   "highest {4}</text></svg>\n",
                   height + label - 3, format_day(first_day + std::chrono::days(skipped)), width,
                   format_day(last), highest);
}

}  // namespace unflake
