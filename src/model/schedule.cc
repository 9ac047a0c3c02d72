#include "model/schedule.h"

#include <fmt/format.h>

#include <utility>

namespace unflake {
namespace {

constexpr std::pair<Sampler, std::string_view> sampler_names[] = {{Sampler::stay, "stay"},
                                                                  {Sampler::random_walk, "random"},
                                                                  {Sampler::pct, "pct"},
                                                                  {Sampler::pos, "pos"},
                                                                  {Sampler::surw, "surw"}};

}  // namespace

std::string_view to_string(Sampler sampler) {
  for (const auto& [one, name] : sampler_names)
    if (one == sampler) return name;
  return "?";
}

std::optional<Sampler> sampler_from(std::string_view name) {
  for (const auto& [one, own] : sampler_names)
    if (own == name) return one;
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
