#include "model/conditions.h"

#include <fmt/format.h>

namespace unflake {

std::vector<std::string> scarcity_words(const Conditions& conditions,
                                        const char* ConditionField::*kind) {
  std::vector<double> usual;
  for_each_field(Conditions{}, [&](const ConditionField&, auto value) { usual.push_back(value); });
  std::vector<std::string> words;
  size_t number = 0;
  for_each_field(conditions, [&](const ConditionField& field, auto value) {
    if (value == usual[number++]) return;
    words.push_back(fmt::format(fmt::runtime(field.*kind), fmt::arg("n", value * field.shown),
                                fmt::arg("s", value == 1 ? "" : "s")));
  });
  return words;
}

std::string to_string(const Conditions& conditions) {
  std::string text;
  for_each_field(conditions, [&](const ConditionField& field, auto value) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", field.name, value);
  });
  return text;
}

}  // namespace unflake
