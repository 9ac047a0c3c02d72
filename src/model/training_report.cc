#include "model/training_report.h"

#include <algorithm>
#include <numeric>

namespace unflake {

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
