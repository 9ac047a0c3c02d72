#include "suite/ctest_environment.h"

#include <map>
#include <string_view>

#include "util/text.h"

namespace unflake {
namespace {

using Value = std::optional<std::string>;

struct Modification {
  std::string name;
  std::string operation;
  std::string value;
};

std::optional<Modification> parse(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  const size_t colon = text.find(':', equals);
  if (colon == std::string::npos) return std::nullopt;
  return Modification{text.substr(0, equals), text.substr(equals + 1, colon - equals - 1),
                      text.substr(colon + 1)};
}

// The separator that a list operation puts between two values; none for an unknown operation.
std::optional<std::string> separator_of(std::string_view operation) {
  if (operation.starts_with("string_")) return "";
  if (operation.starts_with("path_list_")) return ":";
  if (operation.starts_with("cmake_list_")) return ";";
  return std::nullopt;
}

// The new value of a variable; no result when the operation is unknown.
std::optional<Value> apply(const Modification& change, const Value& before, const Value& original) {
  if (change.operation == "set") return Value(change.value);
  if (change.operation == "unset") return Value(std::nullopt);
  if (change.operation == "reset") return original;
  const auto separator = separator_of(change.operation);
  if (!separator) return std::nullopt;
  const std::string old = before.value_or("");
  const std::string between = old.empty() ? "" : *separator;
  if (change.operation.ends_with("_append")) return Value(old + between + change.value);
  if (change.operation.ends_with("_prepend")) return Value(change.value + between + old);
  return std::nullopt;
}

}  // namespace

Result<std::vector<EnvChange>> ctest_environment(const std::vector<std::string>& settings,
                                                 const std::vector<std::string>& modifications,
                                                 const EnvLookup& inherited) {
  std::map<std::string, Value> set, modified;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    if (name.empty()) continue;
    set[name] = equals == std::string::npos ? Value() : Value(setting.substr(equals + 1));
  }
  const auto original = [&](const std::string& name) {
    const auto found = set.find(name);
    return found == set.end() ? inherited(name) : found->second;
  };
  for (const std::string& text : modifications) {
    const auto change = parse(text);
    if (!change) return usage_error("ENVIRONMENT_MODIFICATION not understood: " + printable(text));
    const auto known = modified.find(change->name);
    const Value first = original(change->name);
    const auto after = apply(*change, known == modified.end() ? first : known->second, first);
    if (!after) return usage_error("ENVIRONMENT_MODIFICATION not understood: " + printable(text));
    modified[change->name] = *after;
  }
  modified.merge(set);
  std::vector<EnvChange> changes;
  for (const auto& [name, value] : modified) changes.push_back({name, value});
  return changes;
}

}  // namespace unflake
