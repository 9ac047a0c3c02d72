#include "fixes.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "markdown.h"
#include "stats/rates.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake::eval {
namespace {

constexpr double least_accepted = 0.9;
constexpr size_t longest_reason = 160;

// How many of those that do or do not repair were accepted.
Count accepted(const std::vector<JudgedFix>& all, bool repairs) {
  Count count;
  for (const JudgedFix& fix : all)
    if (fix.truth.repairs == repairs) count.add(fix.is_accepted());
  return count;
}

std::string of(const Count& count) {
  return fmt::format("{} of {}", count.hits, count.runs);
}

}  // namespace

Result<std::vector<FixTruth>> read_fixes(const std::string& folder,
                                         const std::vector<std::string>& only) {
  const auto names = truth_names(folder, only);
  if (!names) return names.error();
  std::vector<FixTruth> fixes;
  for (const std::string& name : *names) {
    try {
      const toml::table table = toml::parse_file(folder + "/" + name + ".toml");
      const auto text = [&](const char* key) { return table[key].value_or(std::string()); };
      fixes.push_back({name, text("program"), table["repairs"].value<bool>().value(), text("kind"),
                       text("why")});
    } catch (const std::exception& bad) {
      return usage_error(bad.what(), folder + "/" + name + ".toml");
    }
  }
  return fixes;
}

JudgedFix judged_by(const FixTruth& truth, const std::string& output) {
  JudgedFix fix;
  fix.truth = truth;
  const nlohmann::json report = parse_json(output);
  fix.verdict = report.is_object() ? report.value("verdict", "failed") : "failed";
  if (!report.is_object()) return fix;
  fix.why = report.value("why", "");
  fix.runs = report.value("runs_with_patch", 0);
  return fix;
}

std::vector<Score> fix_scores(const std::vector<JudgedFix>& all) {
  const Count wrong = accepted(all, false), right = accepted(all, true);
  return {{"Wrong repairs that `prove` accepts", of(wrong), "0", wrong.hits == 0},
          {"Right repairs that it accepts", of(right), "90 %",
           right.hits >= least_accepted * right.runs}};
}

std::string fixes_section(const std::vector<JudgedFix>& all,
                          const std::vector<std::string>& options, const Surroundings& where) {
  std::string text = fmt::format(
      "{}\n\n`unflake prove` on the patches of [zoo/fixes](../zoo/fixes), each in a repository of "
      "its "
      "own that holds the program, with\n`{}`. The failure was recorded by `unflake "
      "reproduce` first. Only \"repaired\" counts as accepted.\n\n",
      fixes_heading, shell_join(options));
  text += to_string(where) + "\n\n" + targets_text(fix_scores(all)) + "\n";
  text += table_head({"patch", "kind", "repairs", "verdict", "runs with it", "s", "why"});
  for (const JudgedFix& fix : all)
    text += row({fix.truth.name, fix.truth.kind, fix.truth.repairs ? "yes" : "no", fix.verdict,
                 std::to_string(fix.runs), fmt::format("{:.0f}", fix.seconds),
                 cell(shorten(fix.why, longest_reason))});
  return text;
}

}  // namespace unflake::eval
