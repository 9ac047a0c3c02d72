#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace unflake {

// A numeric literal as it is written: "200", "200'000u", "0.5", and "200ms" with its suffix.
struct NumberText {
  double value = 0;
  size_t length = 0;  // with the suffix
  std::string suffix;
  bool is_floating = false;
  bool has_separators = false;
};

// The literal at the beginning of the text.
std::optional<NumberText> number_at_start(std::string_view text);

// Another number in the same shape. Only for whole numbers, unless the shape is floating.
std::string in_the_shape_of(const NumberText& shape, double value);

}  // namespace unflake
