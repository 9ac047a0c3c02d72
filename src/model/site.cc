#include "model/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "protocol/timing_apis.h"
#include "util/text.h"

namespace unflake {

const protocol::ApiFacts* find_timing_api(std::string_view name) {
  const auto found = std::ranges::find(protocol::api_facts, name, &protocol::ApiFacts::name);
  return found == std::end(protocol::api_facts) ? nullptr : found;
}

const protocol::GroupFacts* find_timing_group(std::string_view name) {
  const auto found = std::ranges::find(protocol::group_facts, name, &protocol::GroupFacts::name);
  return found == std::end(protocol::group_facts) ? nullptr : found;
}

std::optional<ApiTime> time_of_api(std::string_view name) {
  const protocol::ApiFacts* api = find_timing_api(name);
  if (!api || api->time_argument == 0) return std::nullopt;
  return ApiTime{size_t{api->time_argument} - 1, api->time_unit_ns};
}

bool is_sleep(std::string_view name) {
  const protocol::ApiFacts* api = find_timing_api(name);
  return api && api->group_facts().traits & protocol::group_sleeps;
}

namespace {

constexpr std::string_view call_operator = "operator()";

// `!` and `@` divide what is written around a site, and what a terminal obeys must not be in it.
bool is_escaped(unsigned char c) {
  return c < ' ' || c == 0x7F || c == '%' || c == '!' || c == '@';
}

std::string escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_escaped(byte))
      escaped += fmt::format("%{:02x}", byte);
    else
      escaped += c;
  }
  return escaped;
}

std::string unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* digits = text.data() + i + 1;
    const bool is_escape = text[i] == '%' && i + 2 < text.size() &&
                           std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    plain += is_escape ? static_cast<char>(value) : text[i];
    if (is_escape) i += 2;
  }
  return plain;
}

std::optional<uint64_t> whole_number(std::string_view text, int base) {
  uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || failed != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

// Cuts off what follows the last `mark`, when it is a number.
std::optional<uint64_t> take_number(std::string_view& text, std::string_view mark, int base = 10) {
  const size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const auto number = whole_number(text.substr(at + mark.size()), base);
  if (number) text = text.substr(0, at);
  return number;
}

bool is_identifier(std::string_view text) {
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

// Whether the text ends like a place that a call can be made from: file:57 or function+0x3c.
bool ends_like_a_place(std::string_view text) {
  return take_number(text, ":") || take_number(text, "+0x", 16);
}

Result<std::string> take_api(std::string_view& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::string();
  const std::string_view word = text.substr(colon + 1);
  if (!is_identifier(word) || !ends_like_a_place(text.substr(0, colon))) return std::string();
  std::vector<std::string> known;
  for (const protocol::ApiFacts& api : protocol::api_facts) known.emplace_back(api.name);
  if (std::ranges::find(known, word) == known.end()) {
    const auto similar = nearest(word, known, 3);
    return usage_error(fmt::format("there is no timing API '{}'", printable(word)), "",
                       similar.empty() ? "`unflake trace` shows the sites of a test"
                                       : "did you mean " + join(similar, ", ") + "?");
  }
  text = text.substr(0, colon);
  return std::string(word);
}

std::string function_in(std::string_view text) {
  std::string function = unescape(text);
  if (!function.ends_with("()")) return function;
  const std::string without = function.substr(0, function.size() - 2);
  const bool is_operator_alone =
      function.ends_with(call_operator) && !without.ends_with(call_operator);
  return is_operator_alone ? function : without;
}

std::string place_of(const SiteName& site) {
  if (!site.file.empty()) return fmt::format("{}:{}", escape(site.file), site.line);
  if (site.api.empty() && site.offset == 0) return escape(site.function) + "()";
  return fmt::format("{}+{:#x}", escape(site.function), site.offset);
}

}  // namespace

std::string to_string(const SiteName& site) {
  std::string text = site.image.empty() ? "" : escape(site.image) + "!";
  text += place_of(site);
  if (!site.api.empty()) text += ":" + site.api;
  if (site.nth != 1) text += fmt::format("#{}", site.nth);
  return text;
}

Result<SiteName> parse_site(std::string_view text) {
  const std::string whole(text);
  SiteName site;
  if (const size_t mark = text.find('!'); mark != std::string_view::npos) {
    site.image = unescape(text.substr(0, mark));
    text.remove_prefix(mark + 1);
  }
  site.nth = static_cast<int>(std::min<uint64_t>(take_number(text, "#").value_or(1), 1'000'000));
  auto api = take_api(text);
  if (!api) return api.error();
  site.api = std::move(*api);
  if (const auto line = take_number(text, ":"); line && !text.empty()) {
    site.file = unescape(text);
    site.line = static_cast<int>(std::min<uint64_t>(*line, 1'000'000'000));
  } else if (const auto offset = take_number(text, "+0x", 16)) {
    site.function = unescape(text);
    site.offset = *offset;
  } else {
    site.function = function_in(text);
  }
  if ((site.file.empty() && site.function.empty() && site.offset == 0) || site.nth < 1)
    return usage_error(fmt::format("'{}' names no site", printable(whole)), "",
                       "write FILE:LINE:API, FILE:LINE or FUNCTION(), as `unflake trace` does");
  return site;
}

std::string told(const ThreadName& thread) {
  return thread.role.empty() ? thread.text : fmt::format("{} ({})", thread.role, thread.text);
}

std::string thread_class_of(const std::string& text) {
  return text.substr(0, text.rfind('#'));
}

}  // namespace unflake
