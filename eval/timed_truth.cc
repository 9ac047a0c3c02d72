#include "timed_truth.h"

#include <toml++/toml.h>

#include <algorithm>

namespace unflake::eval {
namespace {

std::string text_in(const toml::table& table, const char* key) {
  return table[key].value_or(std::string());
}

Result<std::optional<Duration>> duration_in(const toml::table& table, const char* key) {
  if (!table.contains(key)) return std::optional<Duration>();
  const auto duration = parse_duration(text_in(table, key));
  if (!duration) return duration.error();
  return std::optional(*duration);
}

Result<TimedValue> value_in(const toml::table& table) {
  const auto now = duration_in(table, "now"), needs = duration_in(table, "needs");
  if (!now) return now.error();
  if (!needs) return needs.error();
  return TimedValue{text_in(table, "line"),
                    text_in(table, "call"),
                    text_in(table, "kind"),
                    text_in(table, "spread"),
                    text_in(table, "expect"),
                    now->value_or(Duration::zero()),
                    *needs};
}

Result<TimedTruth> timed_truth_in(const std::string& name, const toml::table& table) {
  const auto together = duration_in(table, "together");
  if (!together) return together.error();
  TimedTruth truth{name,
                   text_in(table, "framework"),
                   text_in(table, "test"),
                   table["plain_failure_rate"].value_or(0.0),
                   *together,
                   {}};
  const toml::array* values = table["value"].as_array();
  for (size_t i = 0; values != nullptr && i < values->size(); ++i) {
    const toml::table* one = values->get(i)->as_table();
    auto value = one ? value_in(*one) : Result<TimedValue>(usage_error("[[value]] is no table"));
    if (!value) return value.error();
    truth.values.push_back(std::move(*value));
  }
  return truth;
}

}  // namespace

bool TimedTruth::is_flaky_anyway() const {
  return plain_failure_rate > 0 && std::ranges::none_of(values, [](const TimedValue& value) {
           return value.expect == "raise";
         });
}

bool TimedTruth::computes() const {
  return std::ranges::count(values, "cpu", &TimedValue::spread) > 0;
}

Result<std::vector<TimedTruth>> read_timed_truths(const std::string& folder,
                                                  const std::vector<std::string>& only) {
  const auto names = truth_names(folder, only);
  if (!names) return names.error();
  std::vector<TimedTruth> truths;
  for (const std::string& name : *names) {
    const std::string file = folder + "/" + name + ".toml";
    try {
      auto truth = timed_truth_in(name, toml::parse_file(file));
      if (!truth) return truth.error();
      truths.push_back(std::move(*truth));
    } catch (const toml::parse_error& error) {
      return internal_error(std::string(error.description()), file);
    }
  }
  return truths;
}

}  // namespace unflake::eval
