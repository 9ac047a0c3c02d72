
#include <fmt/format.h>

#include <algorithm>

#include "repro/repro_json.h"

namespace unflake {
namespace {

using Json = nlohmann::ordered_json;

const FileKind fix_kind{"fix", "unflake repair", fix_format};
constexpr size_t longest_fix_text = 64 << 10;
constexpr size_t most_hand_overs = 100;
constexpr int64_t most_times = 1'000'000'000'000;

Json place_json(const RepairPlace& place) {
  return {{"site", text_to_json(to_string(place.site))},
          {"thread", text_to_json(place.thread)},
          {"file", text_to_json(place.spot.file)},
          {"line", place.spot.line},
          {"function", text_to_json(place.spot.function)}};
}

RepairPlace place_in(const JsonField& field) {
  field.allow_only({"site", "thread", "file", "line", "function"});
  RepairPlace place;
  place.site = site_in(field["site"]);
  place.thread = field["thread"].text(longest_fix_text);
  place.spot = {field["file"].text(longest_fix_text),
                static_cast<int>(field["line"].whole(0, INT32_MAX)),
                field["function"].text(longest_fix_text)};
  return place;
}

Json hand_over_json(const HandOver& one) {
  Json json = {{"critical", place_json(one.critical)},
               {"barrier", place_json(one.barrier)},
               {"count", one.count}};
  if (one.ahead) json["ahead"] = *one.ahead;
  return json;
}

HandOver hand_over_in(const JsonField& field) {
  field.allow_only({"critical", "barrier", "count", "ahead"});
  HandOver one{place_in(field["critical"]), place_in(field["barrier"]),
               static_cast<uint64_t>(field["count"].whole(1, most_times))};
  if (field.has("ahead")) one.ahead = static_cast<uint64_t>(field["ahead"].whole(0, most_times));
  return one;
}

EnforcedRuns runs_in(const JsonField& field) {
  EnforcedRuns runs;
  runs.under_plan = count_in(field["under_plan"]);
  runs.late_after = count_in(field["late_after"]);
  runs.plain = count_in(field["plain"]);
  runs.schedules = count_in(field["schedules"]);
  runs.waits = static_cast<uint64_t>(field["waits"].whole(0, most_times));
  return runs;
}

// Other things in a plan would do more than keep an order.
void check_order(const JsonField& field, const Plan& plan) {
  const bool only_orders = std::ranges::all_of(plan.interventions, [](const Intervention& one) {
    return one.action == Intervention::Action::watch || one.action == Intervention::Action::hold;
  });
  if (!only_orders || plan.schedule)
    field["plan"].complain("the plan of a fix has watches and holds alone");
}

Fix fix_in(const JsonField& field) {
  field.allow_only({"format", "kind", "hand_overs", "runs", "repro"});
  Fix fix;
  (void)field["kind"].choice({"fix"});
  for (const JsonField& one : field["hand_overs"].items(most_hand_overs))
    fix.hand_overs.push_back(hand_over_in(one));
  fix.runs = runs_in(field["runs"]);
  fix.repro = repro_in(field["repro"]);
  check_order(field["repro"], fix.repro.plan);
  return fix;
}

}  // namespace

std::string fix_json(const Fix& fix) {
  Json json = {{"format", fix_format}, {"kind", "fix"}, {"hand_overs", Json::array()}};
  for (const HandOver& one : fix.hand_overs) json["hand_overs"].push_back(hand_over_json(one));
  json["runs"] = {{"under_plan", to_json(fix.runs.under_plan)},
                  {"late_after", to_json(fix.runs.late_after)},
                  {"plain", to_json(fix.runs.plain)},
                  {"schedules", to_json(fix.runs.schedules)},
                  {"waits", fix.runs.waits}};
  json["repro"] = repro_document(fix.repro);
  return json_text(json, 1) + "\n";
}

Result<Fix> parse_fix(std::string_view text, const std::string& path_for_errors) {
  const auto root = parse_document(text, path_for_errors, fix_kind);
  if (!root) return root.error();
  std::optional<JsonField::Wrong> wrong;
  Fix fix = fix_in(JsonField(*root, wrong));
  if (!wrong) return fix;
  return usage_error(std::move(wrong->what), path_for_errors + ": " + wrong->where,
                     wrong->next.empty() ? "correct it, or write it again with `unflake repair`"
                                         : std::move(wrong->next));
}

}  // namespace unflake
