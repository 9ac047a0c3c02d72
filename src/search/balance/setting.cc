#include "search/balance/setting.h"

#include <cmath>

namespace unflake {

using namespace std::chrono_literals;

Duration scaled(Duration value, double factor) {
  return Duration(std::llround(static_cast<double>(value.count()) * factor));
}

double to_ms(Duration duration) {
  return static_cast<double>(duration.count()) / 1000;
}

Duration from_ms(double ms) {
  return Duration(static_cast<int64_t>(ms * 1000));
}

Setting own_setting(const std::vector<TimeValue>& values) {
  Setting own;
  for (const TimeValue& value : values) own.push_back(value.most);
  return own;
}

bool is_set(const TimeValue& value, Duration to) {
  return to != value.most && value.most > Duration::zero();
}

Plan plan_with(Plan base, const std::vector<TimeValue>& values, const Setting& setting) {
  for (size_t i = 0; i < values.size(); ++i) {
    const TimeValue& value = values[i];
    if (!is_set(value, setting[i])) continue;
    Intervention scaled;
    scaled.site = value.site;
    scaled.executable = value.executable;
    scaled.action = Intervention::Action::scale_time;
    const double factor =
        static_cast<double>(setting[i].count()) / static_cast<double>(value.most.count());
    scaled.duration = Duration(std::llround(factor * static_cast<double>(Duration(1s).count())));
    base.interventions.push_back(std::move(scaled));
  }
  return base;
}

Conditions conditions_for(LoadLevel load, int cores) {
  Conditions conditions;
  conditions.one_core = load == LoadLevel::one_core;
  conditions.competitors = load == LoadLevel::busy ? cores : 0;
  return conditions;
}

}  // namespace unflake
