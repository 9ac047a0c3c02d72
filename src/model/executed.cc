#include "model/executed.h"

#include <algorithm>
#include <numeric>

#include "util/text.h"

namespace unflake {

std::string_view to_string(FunctionKind kind) {
  switch (kind) {
    case FunctionKind::project:
      return "project";
    case FunctionKind::call:
      return "call";
    case FunctionKind::library:
      return "library";
  }
  return "project";
}

std::optional<FunctionKind> function_kind_from(std::string_view name) {
  for (const auto kind : {FunctionKind::project, FunctionKind::call, FunctionKind::library})
    if (name == to_string(kind)) return kind;
  return std::nullopt;
}

// Most names are told by how they begin: a program has tens of thousands.
bool names_function(std::string_view glob, std::string_view name) {
  if (!name.starts_with(glob.substr(0, glob.find_first_of("*?\\")))) return false;
  constexpr std::string_view star = "\x01";  // in no name that a compiler writes
  std::string wanted(glob), text(name);
  replace_all(wanted, "\\*", star);
  replace_all(text, "*", star);
  return glob_match(wanted, text);
}

std::vector<FunctionId> executed_functions(const Trace& trace) {
  std::vector<FunctionId> all;
  for (const TracedFunction& function : trace.functions)
    if (!function.name.empty()) all.push_back({function.kind, function.name, function.file});
  for (const TracedVisits& visits : trace.visits)
    if (visits.visits > 0 && visits.site < trace.sites.size())
      if (const std::string& api = trace.sites[visits.site].name.api; !api.empty())
        all.push_back({FunctionKind::call, api});
  std::ranges::sort(all);
  const auto same = std::ranges::unique(all);
  all.erase(same.begin(), same.end());
  return all;
}

int64_t TrainedSet::count(bool LearnedFunction::*trait) const {
  return std::ranges::count(functions, true, trait);
}

int64_t TrainedSet::count_remaining() const {
  return std::ranges::count_if(functions, &LearnedFunction::stays);
}

namespace {

std::vector<double> values_of(const CrossValidation& validation,
                              double (ExposedShares::*share)() const) {
  std::vector<double> values;
  for (const CrossValidation::Fold& fold : validation.folds)
    values.push_back((fold.shares.*share)());
  return values.empty() ? std::vector<double>{0} : values;
}

}  // namespace

double CrossValidation::least(double (ExposedShares::*share)() const) const {
  return std::ranges::min(values_of(*this, share));
}

double CrossValidation::mean(double (ExposedShares::*share)() const) const {
  const auto values = values_of(*this, share);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double CrossValidation::most(double (ExposedShares::*share)() const) const {
  return std::ranges::max(values_of(*this, share));
}

}  // namespace unflake
