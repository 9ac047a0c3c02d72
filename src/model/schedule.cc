#include "model/schedule.h"

#include <fmt/format.h>

#include <array>

namespace unflake {
namespace {

constexpr std::array<std::string_view, 5> sampler_names{"stay", "random", "pct", "pos", "surw"};

}  // namespace

std::string_view to_string(Sampler sampler) {
  return sampler_names.at(static_cast<size_t>(sampler));
}

std::optional<Sampler> sampler_from(std::string_view name) {
  for (size_t i = 0; i < sampler_names.size(); ++i)
    if (sampler_names.at(i) == name) return static_cast<Sampler>(i);
  return std::nullopt;
}

std::string to_string(const Schedule& schedule) {
  std::string text = "schedule ";
  const bool is_drawn = schedule.sampler != Sampler::stay;
  if (is_drawn) text += fmt::format("{}:{}", to_string(schedule.sampler), schedule.seed);
  if (!is_drawn && schedule.decisions.empty()) text += "without exchanges";
  for (size_t i = 0; i < schedule.decisions.size(); ++i)
    text += fmt::format("{}{}:{}", i > 0 || is_drawn ? ", " : "", schedule.decisions[i].point,
                        schedule.decisions[i].thread);
  if (schedule.stall > Duration{})
    text += fmt::format(" up to {} late", duration_word(schedule.stall));
  if (!schedule.accesses.empty())
    text += fmt::format(" at calls and {} accesses", schedule.accesses.size());
  return text;
}

}  // namespace unflake
