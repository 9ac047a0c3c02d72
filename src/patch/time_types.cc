#include "patch/time_types.h"

#include <charconv>
#include <string_view>

namespace unflake {
namespace {

bool is_template(std::string_view type, std::string_view name) {
  const std::string_view plain = type.substr(0, type.find('<'));
  return plain.size() < type.size() && plain.ends_with(name);
}

bool is_structure(std::string_view type, std::string_view name) {
  return type == name || (type.starts_with("struct ") && type.substr(7) == name);
}

double number_in(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::optional<double> duration_unit(const std::string& type) {
  if (!is_template(type, "chrono::duration")) return std::nullopt;
  const size_t ratio = type.find("ratio<");
  if (ratio == std::string::npos) return 1e9;
  const std::string_view terms = std::string_view(type).substr(ratio + 6);
  const size_t comma = terms.find(", ");
  const size_t close = terms.find('>');
  const bool has_two = comma != std::string_view::npos && comma < close;
  const double divisor = has_two ? number_in(terms.substr(comma + 2)) : 1;
  const double unit = divisor > 0 ? number_in(terms) * 1e9 / divisor : 0;
  return unit > 0 ? std::optional(unit) : std::nullopt;
}

bool is_time_type(const std::string& type) {
  return is_template(type, "chrono::duration") || is_template(type, "chrono::time_point");
}

bool is_timer_structure(const std::string& type) {
  return is_structure(type, "itimerspec") || is_structure(type, "itimerval");
}

bool is_time_structure(const std::string& type) {
  return is_structure(type, "timespec") || is_structure(type, "timeval") ||
         is_timer_structure(type);
}

bool is_floating_duration(const std::string& type) {
  const auto counts_in = [&](std::string_view number) {
    return std::string_view(type).substr(type.find('<') + 1).starts_with(number);
  };
  return counts_in("double") || counts_in("float") || counts_in("long double");
}

}  // namespace unflake
