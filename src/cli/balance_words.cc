#include "cli/balance_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "cli/machine_speed.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr double most_scale = 100;

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

}  // namespace

Result<double> parse_share(const std::string& text, const std::string& option, double most) {
  const bool is_percent = text.ends_with('%');
  const auto number = number_in(trim(is_percent ? text.substr(0, text.size() - 1) : text));
  const double share = number ? (is_percent ? *number / 100 : *number) : 0;
  if (share > most && share < 1)
    return usage_error("this is too much", option + " " + printable(text),
                       fmt::format("give at most {:g}%", most * 100));
  if (share > 0 && share < 1) return share;
  return usage_error("this is no share between none and all", option + " " + printable(text),
                     "write a percentage, as in 0.1%");
}

Result<std::vector<LoadLevel>> parse_loads(const std::string& text) {
  constexpr std::pair<std::string_view, LoadLevel> words[] = {
      {"idle", LoadLevel::idle}, {"busy", LoadLevel::busy}, {"one-core", LoadLevel::one_core}};
  std::vector<LoadLevel> loads{LoadLevel::idle};
  for (const std::string& word : split(text, ',')) {
    const auto known =
        std::ranges::find(words, trim(word), &std::pair<std::string_view, LoadLevel>::first);
    if (known == std::end(words))
      return usage_error("there is no load '" + printable(word) + "'", "--load",
                         "take some of idle, busy, one-core");
    if (std::ranges::find(loads, known->second) == loads.end()) loads.push_back(known->second);
  }
  return loads;
}

Result<double> parse_scale(const std::string& text) {
  const auto factor = number_in(text.ends_with('x') ? text.substr(0, text.size() - 1) : text);
  const auto there = parse_duration(text);
  if (!factor && (!there || *there <= Duration::zero()))
    return usage_error("this is neither a factor nor a time", "--scale " + printable(text),
                       "write 1.5, or the time that `unflake balance --benchmark` shows there");
  const double scale = factor ? *factor
                              : static_cast<double>(there->count()) /
                                    static_cast<double>(measure_machine_speed().median.count());
  if (scale >= 1 / most_scale && scale <= most_scale) return scale;
  return usage_error("no machine is so much slower or faster", "--scale " + printable(text),
                     fmt::format("give a factor from {:g} to {:g}", 1 / most_scale, most_scale));
}

}  // namespace unflake
