#pragma once

#include <string>
#include <vector>

namespace unflake {

// The machine as a run finds it: what can be made scarce without touching the test.
struct Conditions {
  bool one_core = false;  // all threads share one core
  double cpu_share =
      1;                // the part of the time in which the test may run; in the rest it is stopped
  int competitors = 0;  // busy processes on the cores that the test may use

  bool operator==(const Conditions&) const = default;
};

// A field as files and people have it. In words, `{n}` is its number, `{s}` the end of a plural.
struct ConditionField {
  const char* name;
  double least, most;       // that a file may hold
  double shown;             // what people are shown of 1
  const char* in_short;     // "one core"
  const char* as_a_clause;  // behind "it fails when"
};

// The one list of all fields: whoever writes, reads, sends or tells conditions goes through it.
template <class SomeConditions, class Visit>
void for_each_field(SomeConditions&& conditions, Visit visit) {
  visit(ConditionField{"one_core", 0, 1, 1, "one core", "all threads share one core"},
        conditions.one_core);
  visit(ConditionField{"cpu_share", 0.001, 1, 100, "{n:.0f} % of the time",
                       "it may run for {n:.0f} % of the time"},
        conditions.cpu_share);
  visit(ConditionField{"competitors", 0, 1000, 1, "{n:.0f} busy neighbour{s}",
                       "{n:.0f} busy processes compete with it"},
        conditions.competitors);
}

template <class Json>
Json json_of(const Conditions& conditions) {
  Json json = Json::object();
  for_each_field(conditions,
                 [&](const ConditionField& field, auto value) { json[field.name] = value; });
  return json;
}

// What is scarce, in words of the one kind or the other.
std::vector<std::string> scarcity_words(const Conditions& conditions,
                                        const char* ConditionField::*kind);

// Different for different conditions.
std::string to_string(const Conditions& conditions);

}  // namespace unflake
