#include "repairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "figures.h"
#include "markdown.h"
#include "stats/rates.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake::eval {
namespace {

constexpr double least_repaired = 0.95;
constexpr double least_in_project = 0.95;
constexpr double least_idiomatic = 0.6;
constexpr double least_recognised = 0.95;
constexpr double longest_median = 60, longest_p90 = 300;  // seconds
constexpr double slowest_run = 1.0;
constexpr size_t longest_refusal = 200;
constexpr size_t shown_patches = 5;

using Which = std::function<bool(const Repaired&)>;

Count count(const std::vector<Repaired>& all, WantedRepair wanted, const Which& hit,
            const Which& of = {}) {
  Count found;
  for (const Repaired& one : all)
    if (wanted_repair(one.truth) == wanted && (!of || of(one))) found.add(hit(one));
  return found;
}

std::string share(const Count& count) {
  if (count.runs == 0) return "none of 0";
  return fmt::format("{} of {} ({:.0f} %)", count.hits, count.runs,
                     100.0 * count.hits / count.runs);
}

Score share_score(const std::string& figure, const Count& count, double least) {
  return {figure, share(count), fmt::format("{:.0f} %", least * 100),
          count.runs > 0 && count.hits >= least * count.runs};
}

bool is_proven(const Repaired& one) {
  return one.is_proven();
}

std::vector<double> values(const std::vector<Repaired>& all, WantedRepair wanted,
                           double Repaired::*value, bool proven_only) {
  std::vector<double> found;
  for (const Repaired& one : all)
    if (wanted_repair(one.truth) == wanted && (!proven_only || one.is_proven()))
      found.push_back(one.*value);
  return found;
}

Score time_score(const std::vector<Repaired>& all) {
  const auto seconds = values(all, WantedRepair::repair, &Repaired::seconds, false);
  const double middle = median(seconds), most = quantile(seconds, 0.9);
  return {"Time without the builds, median / p90", fmt::format("{:.0f} s / {:.0f} s", middle, most),
          "60 s / 300 s", middle <= longest_median && most <= longest_p90};
}

void take_patch(Repaired& found, const nlohmann::json& patch) {
  if (!patch.contains("proof") || !patch["proof"].is_object()) {
    const std::string why = patch.value("why_not", "");
    if (!found.is_proven() && !why.empty()) found.why_not = patch.value("idiom", "") + ": " + why;
    return;
  }
  const nlohmann::json& proof = patch["proof"];
  const auto& build = proof["build"];
  found.build_seconds += (build.value("before_us", 0.0) + build.value("after_us", 0.0)) / 1e6;
  if (proof.value("verdict", "") != "repaired") {
    found.why_not = fmt::format("{}: {}, {}", patch.value("idiom", ""), proof.value("verdict", ""),
                                proof.value("why", ""));
    return;
  }
  found.idiom = patch.value("idiom", "");
  found.diff = patch.value("diff", "");
  found.in_project = patch.value("is_in_project", false);
  if (proof["overhead"].is_object()) found.run_time = proof["overhead"].value("ratio", 1.0);
}

std::string result_words(const Repaired& one) {
  switch (wanted_repair(one.truth)) {
    case WantedRepair::timing:
      return one.says_timing ? "recognised" : "**not recognised**";
    case WantedRepair::defect:
      return one.says_deadlock ? "recognised" : "**not recognised**";
    default:
      return one.is_proven() ? one.idiom : one.is_ordered ? "**order only**" : "**none**";
  }
}

std::string afterwards(const Repaired& one) {
  if (one.plain_runs == 0) return "";
  return fmt::format("{}/{}{}", one.plain_runs - one.failed_runs, one.plain_runs,
                     one.hangs ? ", hangs" : "");
}

// The first ones of different idioms, in full but for the header that a hand-over brings.
std::string patches_text(const std::vector<Repaired>& all) {
  std::vector<const Repaired*> chosen;
  for (const bool is_new_idiom : {true, false})
    for (const Repaired& one : all) {
      const bool is_known = std::ranges::any_of(
          chosen, [&](const Repaired* other) { return other->idiom == one.idiom; });
      if (!one.is_proven() || chosen.size() >= shown_patches || is_known == is_new_idiom ||
          std::ranges::count(chosen, &one))
        continue;
      chosen.push_back(&one);
    }
  std::string text;
  for (const Repaired* one : chosen) {
    const size_t header = one->diff.find("--- /dev/null");
    text += fmt::format("\n`{}`, by {}:\n```diff\n{}```\n", one->truth.program, one->idiom,
                        one->diff.substr(0, header));
  }
  return text;
}

}  // namespace

WantedRepair wanted_repair(const Truth& truth) {
  if (truth.expect != "reproduced" || !truth.lateness_can_cause_it) return WantedRepair::none;
  if (truth.category == "deadlock") return WantedRepair::defect;
  if (truth.category == "exact timing") return WantedRepair::timing;
  return truth.critical.find(':') == std::string::npos ? WantedRepair::none : WantedRepair::repair;
}

Repaired repaired_by(const Truth& truth, const std::string& output, double seconds) {
  Repaired found;
  found.truth = truth;
  found.seconds = seconds;
  const nlohmann::json report = parse_json(output);
  if (!report.is_object()) {
    found.why_not = "it gave no answer";
    return found;
  }
  found.is_ordered = report.contains("repairs") && !report["repairs"].empty();
  found.says_timing = report.contains("exact_timing") && report["exact_timing"].is_object();
  found.says_deadlock = !report.value("deadlock", "").empty();
  if (report.contains("patches"))
    for (const auto& patch : report["patches"]) take_patch(found, patch);
  found.seconds = std::max(0.0, seconds - found.build_seconds);
  if (found.is_proven()) found.why_not.clear();
  if (!found.is_proven() && found.why_not.empty() && report.contains("notes"))
    for (const auto& note : report["notes"])
      found.why_not += (found.why_not.empty() ? "" : "; ") + note.get<std::string>();
  return found;
}

void add_runs(Repaired& repaired, const std::string& lines) {
  for (const std::string& line : split(lines, '\n')) {
    const nlohmann::json event = parse_json(line);
    if (!event.is_object() || event.value("event", "") != "run_ended") continue;
    ++repaired.plain_runs;
    repaired.failed_runs += event.value("outcome", "") != "pass";
    repaired.hangs |= event.value("outcome", "") == "timeout";
  }
}

std::vector<Score> repair_scores(const std::vector<Repaired>& all) {
  using Wanted = WantedRepair;
  const auto ratios = values(all, Wanted::repair, &Repaired::run_time, true);
  const Count hanging = count(
      all, Wanted::repair, [](const Repaired& one) { return one.hangs; }, is_proven);
  const Count failing = count(
      all, Wanted::repair, [](const Repaired& one) { return one.failed_runs > 0; }, is_proven);
  std::vector<Score> scores = {
      share_score("Repaired, and proven by a rebuild", count(all, Wanted::repair, is_proven),
                  least_repaired),
      share_score(
          "Patches in project code, of repaired",
          count(
              all, Wanted::repair, [](const Repaired& one) { return one.in_project; }, is_proven),
          least_in_project),
      share_score("By join, notify or poll, of repaired",
                  count(
                      all, Wanted::repair, [](const Repaired& one) { return one.is_idiomatic(); },
                      is_proven),
                  least_idiomatic),
      time_score(all),
      {"Run time of the repaired test / original, median", fmt::format("{:.2f}x", median(ratios)),
       "1.00x", median(ratios) <= slowest_run},
      share_score("Exact-timing tests recognised",
                  count(all, Wanted::timing, [](const Repaired& one) { return one.says_timing; }),
                  least_recognised),
      share_score("Deadlocks of the code recognised",
                  count(all, Wanted::defect, [](const Repaired& one) { return one.says_deadlock; }),
                  least_recognised),
      {"Deadlocks or hangs that a proven patch introduces",
       fmt::format("{} of {}", hanging.hits, hanging.runs), "0", hanging.hits == 0},
      {"Proven patches that fail in plain runs afterwards",
       fmt::format("{} of {}", failing.hits, failing.runs), "0", failing.hits == 0}};
  return scores;
}

Compared compared_by(const std::string& method, const std::string& output, double seconds) {
  Compared found;
  found.method = method;
  found.seconds = seconds;
  const nlohmann::json report = parse_json(output);
  if (!report.is_object()) return found;
  found.is_ordered = report.contains("repairs") && !report["repairs"].empty();
  found.runs = report.value("runs", 0);
  found.ran_out = report.value("out_of_budget", false);
  return found;
}

namespace {

std::string comparison_words(const Compared& one) {
  return one.is_ordered ? "order" : one.ran_out ? "no order in the time" : "no order";
}

// The search alone, without patches: on the same recorded failures.
std::string comparison_text(const std::vector<Repaired>& all) {
  std::vector<const Repaired*> compared;
  for (const Repaired& one : all)
    if (one.compared && wanted_repair(one.truth) == WantedRepair::repair) compared.push_back(&one);
  if (compared.empty()) return "";
  Count ours, theirs;
  std::vector<double> seconds;
  std::string rows;
  for (const Repaired* one : compared) {
    ours.add(one->is_ordered);
    theirs.add(one->compared->is_ordered);
    seconds.push_back(one->compared->seconds);
    rows += row({one->truth.program, one->is_ordered ? "order" : "no order",
                 comparison_words(*one->compared), std::to_string(one->compared->runs),
                 fmt::format("{:.0f}", one->compared->seconds)});
  }
  return fmt::format(
             "\nWith `--method {} --no-patch` on the same recorded failures, an order that holds "
             "in "
             "the running binary: {}, median {:.0f} s; by the search above: {}.\n\n",
             compared.front()->compared->method, share(theirs), median(seconds), share(ours)) +
         table_head({"program", "found", compared.front()->compared->method, "runs", "s"}) + rows;
}

}  // namespace

std::string repairs_section(const std::vector<Repaired>& all,
                            const std::vector<std::string>& options, const Surroundings& where) {
  std::string text = fmt::format(
      "{}\n\n`unflake repair` on the programs of the zoo that fail because somebody is late, each "
      "in a repository of its own, with\n`{}`. The failure was recorded by `unflake reproduce` "
      "first, which is not part of the time.\nA patch counts when it was rebuilt and proven; then "
      "it was applied with `git apply`, built once more, and run plainly (*afterwards*).\n\n",
      repairs_heading, shell_join(options));
  text += to_string(where) + "\n\n" + targets_text(repair_scores(all)) + "\n";
  text += table_head({"program", "category", "repair", "s", "builds, s", "reproduced in, s",
                      "run time", "afterwards", "why not"});
  for (const Repaired& one : all)
    text += row({one.truth.program, one.truth.category, result_words(one),
                 fmt::format("{:.0f}", one.seconds), fmt::format("{:.0f}", one.build_seconds),
                 fmt::format("{:.0f}", one.reproduce_seconds),
                 one.is_proven() ? fmt::format("{:.2f}x", one.run_time) : "", afterwards(one),
                 cell(shorten(one.why_not, longest_refusal))});
  return text + comparison_text(all) + patches_text(all);
}

}  // namespace unflake::eval
