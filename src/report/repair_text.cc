#include "report/repair_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "util/json.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t most_dropped_shown = 5;

std::string spot_words(const RepairPlace& place) {
  if (place.spot.line > 0 && !place.spot.file.empty())
    return fmt::format("{}:{}", base_name(place.spot.file), place.spot.line);
  return to_string(place.site);
}

std::string of_runs(const Count& count) {
  return fmt::format("{} of {}", count.runs - count.hits, counted(count.runs, "run"));
}

// "2nd"
std::string ordinal(uint64_t number) {
  constexpr const char* endings[] = {"th", "st", "nd", "rd"};
  const bool is_teen = number % 100 >= 11 && number % 100 <= 13;
  return fmt::format("{}{}", number, is_teen || number % 10 > 3 ? "th" : endings[number % 10]);
}

std::string hand_overs_words(const std::vector<HandOver>& all) {
  std::vector<std::string> parts;
  for (const HandOver& one : all) parts.push_back(hand_over_words(one));
  return join(parts, "; and ");
}

std::string schedule_words(const EnforcedRuns& runs) {
  if (runs.schedules.runs > 0)
    return fmt::format("passes in {} of {} that were sampled",
                       runs.schedules.runs - runs.schedules.hits,
                       counted(runs.schedules.runs, "schedule"));
  return "schedules were not sampled: " +
         (runs.why_no_schedules.empty() ? "there was no time" : runs.why_no_schedules);
}

std::string evidence_lines(const EnforcedRuns& runs) {
  std::string text;
  text += detail_line(fmt::format("passes in {} under what made it fail, with this order enforced",
                                  of_runs(runs.under_plan)));
  if (runs.late_after.runs > 0)
    text += detail_line(
        fmt::format("and in {} with that thread late right after it", of_runs(runs.late_after)));
  text += detail_line(fmt::format("passes in {} when nobody is late: {:.0f} ms, {:.0f} ms without",
                                  of_runs(runs.plain), runs.time_with.median,
                                  runs.time_without.median));
  text += detail_line(schedule_words(runs));
  const int all = runs.under_plan.runs + runs.late_after.runs + runs.plain.runs;
  text += detail_line(fmt::format("somebody had to wait in {} of {}, at most {}", runs.waits,
                                  counted(all, "run"), format_duration(runs.longest_wait)));
  return text;
}

std::string repairs_text(const RepairReport& report, const Style& style) {
  std::string text;
  for (const EnforcedRepair& repair : report.repairs) {
    text +=
        status_line(style, Tone::good, "Repair", "", one_line(hand_overs_words(repair.hand_overs)));
    text += evidence_lines(repair.runs);
  }
  if (!report.wait || report.repairs.empty()) return text;
  const GuessedWait& wait = *report.wait;
  return text +
         detail_line(one_line(fmt::format("what keeps the order now is {} of {} at {}",
                                          wait.is_sleep ? "a sleep" : "a time-out",
                                          format_duration(wait.asked), spot_words(wait.place))));
}

// Equal reasons together, the most frequent first.
std::string dropped_text(const RepairReport& report, const Style& style) {
  std::map<std::string, std::vector<const DroppedRepair*>> reasons;
  for (const DroppedRepair& one : report.dropped) reasons[one.why].push_back(&one);
  std::vector<std::pair<std::string, std::vector<const DroppedRepair*>>> sorted(reasons.begin(),
                                                                                reasons.end());
  std::ranges::stable_sort(sorted, std::greater(),
                           [](const auto& reason) { return reason.second.size(); });
  std::string text;
  for (size_t i = 0; i < sorted.size() && i < most_dropped_shown; ++i) {
    const auto& [why, all] = sorted[i];
    const std::string first = hand_overs_words(all.front()->hand_overs);
    const std::string more = all.size() > 1 ? fmt::format(" (and {} more)", all.size() - 1) : "";
    text += status_line(style, Tone::faint, "Dropped", "", one_line(first + more));
    text += detail_line(one_line(why));
  }
  return text;
}

std::string exact_timing_text(const ExactTiming& found, const Style& style) {
  std::string text = status_line(style, Tone::doubtful, "Timing", "",
                                 "a test of how long something takes: no order repairs it");
  for (const std::string& line : found.evidence) text += detail_line(one_line(line));
  if (found.fails > Duration{})
    text += detail_line(fmt::format("passes when up to {} late, fails when {} late",
                                    format_duration(found.passes), format_duration(found.fails)));
  if (found.measured > 0)
    text += detail_line(fmt::format(
        "takes {} in the median of {}, {} at most; longer than {} as rarely as once in 1,000 runs",
        format_duration(found.median), counted(found.measured, "run"),
        format_duration(found.longest), format_duration(found.at_tolerance)));
  if (found.constant)
    text += detail_line(one_line(fmt::format(
        "the time is given at {}: {}", spot_words(*found.constant), format_duration(found.asked))));
  if (found.proposed)
    text += detail_line(
        fmt::format("a bound that would hold here: {}", format_duration(*found.proposed)));
  return text;
}

std::string fate_of(const TriedPatch& tried) {
  if (!tried.why_not.empty()) return "not tried: " + tried.why_not;
  if (!tried.proof) return "not tried, not written: one before it was proven";
  const Proof& proof = tried.proof->proof;
  return fmt::format("{}{}{}", to_string(proof.verdict), proof.why.empty() ? "" : ": ", proof.why);
}

std::string patches_text(const RepairReport& report, const Style& style) {
  std::string text;
  for (const TriedPatch& tried : report.patches) {
    const bool is_good = tried.is_proven();
    text += status_line(
        style, is_good ? Tone::good : Tone::faint, "Patch", "",
        one_line(fmt::format("{}: {}", to_string(tried.patch.idiom), tried.patch.what)));
    text += detail_line(one_line(fate_of(tried)));
    for (const std::string& caution : tried.patch.cautions)
      text += detail_line("mind: " + one_line(caution));
    if (!tried.file.empty()) text += detail_line("git apply " + one_line(tried.file));
    if (is_good) text += "\n" + proof_text(*tried.proof, style) + "\n";
  }
  return text;
}

Json patches_json(const RepairReport& report) {
  Json list = Json::array();
  for (const TriedPatch& tried : report.patches) {
    Json one = {{"idiom", to_string(tried.patch.idiom)},
                {"what", printable(tried.patch.what)},
                {"diff", printable(tried.patch.diff, LineFeeds::keep)},
                {"cautions", Json::array()},
                {"is_in_project", tried.patch.is_in_project},
                {"file", printable(tried.file)},
                {"proof", tried.proof ? Json::parse(proof_json(*tried.proof)) : Json(nullptr)},
                {"why_not", printable(tried.why_not)}};
    for (const std::string& caution : tried.patch.cautions)
      one["cautions"].push_back(printable(caution));
    list.push_back(std::move(one));
  }
  return list;
}

Json place_json(const RepairPlace& place) {
  return {{"site", printable(to_string(place.site))},
          {"thread", printable(place.thread)},
          {"file", printable(place.spot.file)},
          {"line", place.spot.line},
          {"function", printable(place.spot.function)}};
}

Json hand_overs_json(const std::vector<HandOver>& all) {
  Json list = Json::array();
  for (const HandOver& one : all)
    list.push_back({{"critical", place_json(one.critical)},
                    {"barrier", place_json(one.barrier)},
                    {"count", one.count},
                    {"ahead", one.ahead ? Json(*one.ahead) : Json(nullptr)},
                    {"text", printable(hand_over_words(one))}});
  return list;
}

Json count_json(const Count& count) {
  return {{"failures", count.hits}, {"runs", count.runs}};
}

Json runs_json(const EnforcedRuns& runs) {
  return {{"under_plan", count_json(runs.under_plan)},
          {"late_after", count_json(runs.late_after)},
          {"plain", count_json(runs.plain)},
          {"schedules", count_json(runs.schedules)},
          {"why_no_schedules", printable(runs.why_no_schedules)},
          {"waits", runs.waits},
          {"longest_wait_us", runs.longest_wait.count()},
          {"median_ms", {{"with", runs.time_with.median}, {"without", runs.time_without.median}}}};
}

Json exact_timing_json(const ExactTiming& found) {
  Json json = {{"evidence", Json::array()},
               {"passes_us", found.passes.count()},
               {"fails_us", found.fails.count()},
               {"measured", found.measured},
               {"median_us", found.median.count()},
               {"longest_us", found.longest.count()},
               {"at_tolerance_us", found.at_tolerance.count()},
               {"constant", found.constant ? place_json(*found.constant) : Json(nullptr)},
               {"asked_us", found.asked.count()},
               {"proposed_us", found.proposed ? Json(found.proposed->count()) : Json(nullptr)}};
  for (const std::string& line : found.evidence) json["evidence"].push_back(printable(line));
  return json;
}

}  // namespace

namespace {

std::string turns_words(uint64_t ahead) {
  return ahead == 0
             ? " as often"
             : fmt::format(" as often but {}", counted(static_cast<long long>(ahead), "time"));
}

}  // namespace

std::string hand_over_words(const HandOver& hand_over) {
  const std::string times = hand_over.ahead ? turns_words(*hand_over.ahead)
                            : hand_over.count > 1
                                ? fmt::format(" for the {} time", ordinal(hand_over.count))
                                : "";
  return fmt::format("{} must wait before {} until {} is over in {}{}", hand_over.barrier.thread,
                     spot_words(hand_over.barrier), spot_words(hand_over.critical),
                     hand_over.critical.thread, times);
}

std::string repair_text(const RepairReport& report, const Style& style) {
  std::string text = "\n" + repairs_text(report, style);
  if (!report.deadlock.empty())
    text += status_line(style, Tone::bad, "Deadlock", "",
                        "threads wait for each other: a defect of the code, not of the test") +
            detail_line(one_line(report.deadlock));
  if (report.exact_timing) text += exact_timing_text(*report.exact_timing, style);
  if (report.repairs.empty() && !report.exact_timing && report.deadlock.empty()) {
    const std::string tried =
        fmt::format("{} tried", counted(static_cast<long long>(report.dropped.size()), "order"));
    text += report.has_proven_patch() ? status_line(style, Tone::plain, "No order", "",
                                                    tried + "; the patch waits without one")
                                      : status_line(style, Tone::bad, "No repair", "", tried);
  }
  text += patches_text(report, style) + dropped_text(report, style);
  if (!report.stop_gap.empty())
    text += status_line(style, Tone::doubtful, "Stop-gap", "", one_line(report.stop_gap));
  for (const std::string& note : report.notes)
    text += status_line(style, Tone::plain, "note", "", one_line(note));
  if (report.interrupted) text += detail_line("stopped before everything was tried");
  if (report.out_of_budget) text += detail_line("the budget is spent: --budget gives more time");
  return text + detail_line(fmt::format("{} by {}, {}", counted(report.runs, "run"), report.method,
                                        format_duration(report.elapsed)));
}

std::string repair_json(const RepairReport& report) {
  Json json = {
      {"format", 1},
      {"test", printable(to_string(report.test))},
      {"signature", report.signature},
      {"failure", printable(headline(report.failure))},
      {"method", report.method},
      {"failing_plan", printable(report.failing_plan)},
      {"repairs", Json::array()},
      {"dropped", Json::array()},
      {"wait", nullptr},
      {"exact_timing", nullptr},
      {"deadlock", printable(report.deadlock)},
      {"stop_gap", printable(report.stop_gap)},
      {"notes", Json::array()},
      {"runs", report.runs},
      {"elapsed_ms", std::chrono::duration_cast<std::chrono::milliseconds>(report.elapsed).count()},
      {"interrupted", report.interrupted},
      {"out_of_budget", report.out_of_budget}};
  for (const EnforcedRepair& repair : report.repairs)
    json["repairs"].push_back({{"hand_overs", hand_overs_json(repair.hand_overs)},
                               {"runs", runs_json(repair.runs)},
                               {"is_in_project", repair.is_in_project}});
  for (const DroppedRepair& one : report.dropped)
    json["dropped"].push_back(
        {{"hand_overs", hand_overs_json(one.hand_overs)}, {"why", printable(one.why)}});
  if (report.wait)
    json["wait"] = {{"place", place_json(report.wait->place)},
                    {"asked_us", report.wait->asked.count()},
                    {"is_sleep", report.wait->is_sleep}};
  if (report.exact_timing) json["exact_timing"] = exact_timing_json(*report.exact_timing);
  json["patches"] = patches_json(report);
  for (const std::string& note : report.notes) json["notes"].push_back(printable(note));
  return json_text(json, 1) + "\n";
}

}  // namespace unflake
