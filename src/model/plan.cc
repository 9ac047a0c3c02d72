#include "model/plan.h"

#include <fmt/format.h>

#include <utility>

#include "model/schedule.h"
#include "util/text.h"

namespace unflake {

std::vector<std::string> scarcity_words(const Conditions& conditions,
                                        const char* ConditionField::*kind) {
  std::vector<std::string> usual;
  for_each_field(Conditions{}, [&](const ConditionField&, auto value) {
    usual.push_back(fmt::format("{}", value));
  });
  std::vector<std::string> words;
  size_t number = 0;
  for_each_field(conditions, [&](const ConditionField& field, auto value) {
    if (fmt::format("{}", value) == usual[number++]) return;
    if constexpr (std::is_same_v<decltype(value), std::string>)
      words.push_back(fmt::format(fmt::runtime(field.*kind), fmt::arg("n", printable(value))));
    else
      words.push_back(fmt::format(fmt::runtime(field.*kind), fmt::arg("n", value * field.shown),
                                  fmt::arg("s", value == 1 ? "" : "s"),
                                  fmt::arg("y", value == 1 ? "y" : "ies"),
                                  fmt::arg("v", value == 1 ? "s" : "")));
  });
  return words;
}

std::string to_string(const Conditions& conditions) {
  std::string text;
  for_each_field(conditions, [&](const ConditionField& field, auto value) {
    if (field.is_rare && value == decltype(value){}) return;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", field.name, value);
  });
  return text;
}

namespace {

using Action = Intervention::Action;
using Position = Intervention::Position;
using Threads = Intervention::Threads;
using Visits = Intervention::Visits;

std::string place_text(const Intervention& intervention) {
  std::string text = to_string(intervention.site);
  if (intervention.position == Position::after) text += ":after";
  if (intervention.position == Position::start) text += ":start";
  if (intervention.threads != Threads::any) text += "@" + intervention.thread.text;
  return text;
}

std::string other_text(const std::optional<size_t>& index, const std::vector<Intervention>& plan) {
  return index && *index < plan.size() ? place_text(plan[*index]) : "?";
}

std::string visits_text(const Intervention& intervention) {
  switch (intervention.visits) {
    case Visits::every:
      return "";
    case Visits::only_nth:
      return fmt::format(" at visit {}", intervention.nth);
    case Visits::from_nth:
      return fmt::format(" from visit {}", intervention.nth);
    case Visits::halving:
      return " halving";
  }
  return "";
}

std::string hold_text(const Intervention& hold, const std::vector<Intervention>& plan) {
  std::string text =
      place_text(hold) + visits_text(hold) + " until " + other_text(hold.until, plan);
  if (hold.count > 1) text += fmt::format(" x {}", hold.count);
  return text + " for " + duration_word(hold.duration);
}

// What becomes of a second, in percent.
std::string scale_word(Duration second) {
  return fmt::format("{}%", static_cast<double>(second.count()) / 1e4);
}

}  // namespace

std::string to_string(const Arrangement& arrangement) {
  switch (arrangement.kind) {
    case Arrangement::Kind::listed:
      return "listed";
    case Arrangement::Kind::reversed:
      return "reversed";
    case Arrangement::Kind::by_name:
      return "by name";
    case Arrangement::Kind::shuffled:
      return fmt::format("shuffled with seed {}", arrangement.seed);
  }
  return "?";
}

bool changes_time(const Intervention& intervention) {
  return intervention.action == Action::replace_time || intervention.action == Action::scale_time;
}

std::string to_string(const Intervention& intervention, const std::vector<Intervention>& plan) {
  if (intervention.action == Action::hold) return hold_text(intervention, plan);
  if (intervention.action == Action::watch) return place_text(intervention);
  const bool scales = intervention.action == Action::scale_time;
  std::string text =
      place_text(intervention) + "=" +
      (scales ? scale_word(intervention.duration) : duration_word(intervention.duration)) +
      visits_text(intervention);
  if (intervention.anchor) text += " once " + other_text(intervention.anchor, plan);
  return text;
}

std::string to_string(const Plan& plan, const Conditions& conditions) {
  std::vector<std::string> words;
  for (const Intervention& intervention : plan.interventions)
    words.push_back((intervention.action == Action::watch ? "watch " : "") +
                    to_string(intervention, plan.interventions));
  if (plan.schedule) words.push_back(to_string(*plan.schedule));
  if (plan.agent && words.empty()) words.push_back(plan.calls ? "calls recorded" : "agent only");
  for (std::string& scarce : scarcity_words(conditions, &ConditionField::in_short))
    words.push_back(std::move(scarce));
  return join(words, "; ");
}

bool is_function_trace(const Plan& plan) {
  return plan.functions && plan.callees && !plan.calls && plan.interventions.empty() &&
         !plan.schedule;
}

Duration longest_delay(const Plan& plan) {
  Duration longest{};
  for (const Intervention& intervention : plan.interventions)
    if (intervention.action == Intervention::Action::delay)
      longest = std::max(longest, intervention.duration);
  return longest;
}

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
