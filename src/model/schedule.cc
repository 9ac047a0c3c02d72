#include "model/schedule.h"

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

}  // namespace unflake
