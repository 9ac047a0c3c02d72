#include "repro/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "util/hexadecimal.h"
#include "util/text.h"

namespace unflake {
namespace {

using nlohmann::json;

std::optional<std::string> from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    unsigned value = 0;
    const char* from = digits.data() + i;
    if (i + 2 > digits.size() || std::from_chars(from, from + 2, value, 16).ptr != from + 2)
      return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::optional<std::string> text_in(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  const auto hex = value.is_object() ? value.find("hex") : value.end();
  if (!value.is_object() || hex == value.end() || !hex->is_string()) return std::nullopt;
  return from_hex(hex->get_ref<const std::string&>());
}

}  // namespace

nlohmann::ordered_json text_to_json(const std::string& text) {
  if (is_utf8(text)) return text;
  return {{"hex", hexadecimal(text)}};
}

void JsonField::complain(std::string what, std::string next) const {
  if (!wrong_) wrong_ = Wrong{std::move(what), path_, std::move(next)};
}

void JsonField::is_no(std::string_view type) const {
  if (value_) complain(fmt::format("this is not {}", type));
}

JsonField JsonField::operator[](const char* key) const {
  const std::string path = path_ + "." + key;
  if (!value_) return {nullptr, path, wrong_};
  if (!value_->is_object()) {
    is_no("an object");
    return {nullptr, path, wrong_};
  }
  const auto found = value_->find(key);
  if (found != value_->end()) return {&*found, path, wrong_};
  const JsonField missing{nullptr, path, wrong_};
  missing.complain("this member is missing");
  return missing;
}

bool JsonField::has(const char* key) const {
  return value_ && value_->is_object() && value_->contains(key);
}

void JsonField::allow_only(std::initializer_list<std::string_view> keys) const {
  if (!value_ || !value_->is_object()) return is_no("an object");
  for (const auto& [key, value] : value_->items())
    if (std::ranges::find(keys, key) == keys.end())
      return complain(fmt::format("there is no member '{}' here", printable(shorten(key, 100))),
                      "choose from " + join({keys.begin(), keys.end()}, ", "));
}

std::string JsonField::text(size_t most) const {
  if (!value_) return "";
  auto text = text_in(*value_);
  if (!text) {
    is_no("a text");
    return "";
  }
  if (text->size() > most) {
    complain(fmt::format("this text is longer than {} bytes", most));
    return "";
  }
  return std::move(*text);
}

bool JsonField::flag() const {
  if (value_ && value_->is_boolean()) return value_->get<bool>();
  is_no("true or false");
  return false;
}

int64_t JsonField::whole(int64_t low, int64_t high) const {
  if (!value_) return low;
  const bool is_large = value_->is_number_unsigned() && value_->get<uint64_t>() > INT64_MAX;
  if (!value_->is_number_integer() || is_large) {
    is_no("a whole number that can be used here");
    return low;
  }
  const auto number = value_->get<int64_t>();
  if (number >= low && number <= high) return number;
  complain(fmt::format("{} is out of range", number), fmt::format("give {} to {}", low, high));
  return low;
}

double JsonField::real(double low, double high) const {
  if (!value_) return high;
  if (!value_->is_number()) {
    is_no("a number");
    return high;
  }
  const auto number = value_->get<double>();
  if (number >= low && number <= high) return number;
  complain(fmt::format("{} is out of range", number), fmt::format("give {} to {}", low, high));
  return high;
}

Duration JsonField::duration(Duration low, Duration high) const {
  if (!value_) return low;
  const std::string written = text(100);
  const auto duration = parse_duration_with_unit(written);
  if (!duration) {
    complain(duration.error().what, duration.error().next);
    return low;
  }
  if (*duration >= low && *duration <= high) return *duration;
  complain(fmt::format("{} is out of range", printable(written)),
           fmt::format("give {} to {}", duration_word(low), duration_word(high)));
  return low;
}

size_t JsonField::choice(std::initializer_list<std::string_view> words) const {
  if (!value_) return 0;
  const std::string chosen = text(1000);
  const auto found = std::ranges::find(words, chosen);
  if (found != words.end()) return static_cast<size_t>(found - words.begin());
  complain(fmt::format("'{}' is not known here", printable(shorten(chosen, 100))),
           "choose from " + join({words.begin(), words.end()}, ", "));
  return 0;
}

std::vector<JsonField> JsonField::items(size_t most) const {
  std::vector<JsonField> all;
  if (!value_ || !value_->is_array()) {
    is_no("a list");
    return all;
  }
  if (value_->size() > most) {
    complain(fmt::format("these are {} and at most {} can be used", value_->size(), most));
    return all;
  }
  for (size_t i = 0; i < value_->size(); ++i)
    all.push_back({&(*value_)[i], fmt::format("{}[{}]", path_, i), wrong_});
  return all;
}

std::vector<std::string> JsonField::texts(size_t most, size_t longest) const {
  std::vector<std::string> all;
  for (const JsonField& item : items(most)) all.push_back(item.text(longest));
  return all;
}

}  // namespace unflake
