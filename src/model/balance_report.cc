#include "model/balance_report.h"

#include <algorithm>

namespace unflake {
namespace {

double rate_of(const TriedSetting& setting) {
  return static_cast<double>(setting.failures.hits) / setting.failures.runs;
}

bool has_run_time(const TriedSetting& setting) {
  return setting.failures.runs > 0 && setting.run_time.count > 0;
}

bool is_better(const TriedSetting& one, const TriedSetting& other) {
  const double rate = rate_of(one), other_rate = rate_of(other);
  const double time = one.run_time.median, other_time = other.run_time.median;
  return rate <= other_rate && time <= other_time && (rate < other_rate || time < other_time);
}

const TriedSetting* setting_at(const std::vector<TriedSetting>& settings, LoadLevel load) {
  const auto found = std::ranges::find(settings, load, &TriedSetting::load);
  return found == settings.end() ? nullptr : &*found;
}

double saved_by(const TriedSetting* after, const BalanceReport& report) {
  const TriedSetting* before = setting_at(report.base, LoadLevel::idle);
  const bool is_changed = std::ranges::any_of(report.values, &BalancedValue::is_changed);
  if (!is_changed || !before || !after) return 0;
  if (!has_run_time(*before) || !has_run_time(*after)) return 0;
  return before->run_time.median - after->run_time.median;
}

}  // namespace

std::string_view to_string(LoadLevel load) {
  switch (load) {
    case LoadLevel::idle:
      return "idle";
    case LoadLevel::busy:
      return "busy";
    case LoadLevel::one_core:
      break;
  }
  return "one core";
}

void mark_front(std::vector<TriedSetting>& settings) {
  for (TriedSetting& one : settings)
    one.on_front =
        has_run_time(one) && std::ranges::none_of(settings, [&](const TriedSetting& other) {
          return other.load == one.load && has_run_time(other) && is_better(other, one);
        });
}

const TriedSetting* BalanceReport::final_setting(LoadLevel load) const {
  const auto found = std::ranges::find_if(
      tried, [&](const TriedSetting& setting) { return setting.is_final && setting.load == load; });
  return found == tried.end() ? nullptr : &*found;
}

bool BalanceReport::may_weaken() const {
  return std::ranges::any_of(values, &BalancedValue::may_weaken);
}

const TriedSetting* BalanceReport::careful_setting() const {
  if (!may_weaken()) return final_setting(LoadLevel::idle);
  const auto found = std::ranges::find_if(tried, [](const TriedSetting& setting) {
    return setting.is_careful && setting.verdict != TriedSetting::Verdict::fails;
  });
  return found == tried.end() ? nullptr : &*found;
}

double BalanceReport::saved_ms() const {
  return saved_by(final_setting(LoadLevel::idle), *this);
}

double BalanceReport::saved_carefully_ms() const {
  return saved_by(careful_setting(), *this);
}

}  // namespace unflake
