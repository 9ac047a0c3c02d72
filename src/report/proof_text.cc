#include "report/proof_text.h"

#include <fmt/format.h>

#include "report/trace_text.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::ordered_json;
using ProofKind = ProofRuns::Kind;
using ProofVerdict = Proof::Verdict;

std::string count_text(const Count& count) {
  return count.runs == 0 ? "-" : fmt::format("{} of {}", count.hits, count.runs);
}

std::string others_text(const ProofRuns& runs) {
  if (runs.other_failures_before + runs.other_failures_after == 0) return "";
  const std::string what =
      runs.kind == ProofKind::whole_binary ? "other tests failed" : "otherwise";
  return fmt::format("{}: {} without, {} with it", what, runs.other_failures_before,
                     runs.other_failures_after);
}

std::string remark(const ProofRuns& runs) {
  if (!runs.why_not.empty()) return "not made: " + one_line(runs.why_not);
  std::vector<std::string> parts;
  for (const std::string& part : {runs.note, others_text(runs)})
    if (!part.empty()) parts.push_back(one_line(part));
  return join(parts, "; ");
}

std::string runs_table(const Proof& proof) {
  if (proof.runs.empty()) return "";
  Table table({"FAILED AS RECORDED", "WITHOUT THE PATCH", "WITH IT", ""});
  for (const ProofRuns& runs : proof.runs)
    table.add({std::string(to_string(runs.kind)), count_text(runs.before), count_text(runs.after),
               remark(runs)});
  return table.text();
}

std::string overhead_line(const Proof& proof) {
  if (!proof.overhead) return "";
  return fmt::format("run time: {:.2f}x (95 % interval {:.2f}..{:.2f}x), {} instead of {}\n",
                     proof.overhead_median, proof.overhead->low, proof.overhead->high,
                     format_duration(proof.median_after), format_duration(proof.median_before));
}

Count sum_of(const Proof& proof, Count ProofRuns::*side) {
  Count sum;
  for (const ProofRuns& runs : proof.runs) sum += runs.*side;
  return sum;
}

Tone tone_of(ProofVerdict verdict) {
  if (verdict == ProofVerdict::repaired) return Tone::good;
  return verdict == ProofVerdict::not_shown ? Tone::doubtful : Tone::bad;
}

std::string verdict_word(ProofVerdict verdict) {
  switch (verdict) {
    case ProofVerdict::repaired:
      return "REPAIRED";
    case ProofVerdict::not_repaired:
      return "NOT REPAIRED";
    case ProofVerdict::worse:
      return "WORSE";
    case ProofVerdict::not_shown:
      return "NOTHING SHOWN";
    case ProofVerdict::not_built:
      return "NOT BUILT";
  }
  return "?";
}

std::string lines_of(const std::string& text) {
  std::string lines;
  bool is_first = true;
  for (const std::string_view line : split_lines(text)) {
    lines += (is_first ? "" : "\n") + printable(line);
    is_first = false;
  }
  return lines;
}

Json runs_json(const ProofRuns& runs) {
  const auto side = [](const Count& count, int others) {
    const Interval interval = count.interval();
    return Json{{"failed_as_recorded", count.hits},
                {"runs", count.runs},
                {"interval_95", {interval.low, interval.high}},
                {"other_failures", others}};
  };
  Json json = {{"kind", to_string(runs.kind)},
               {"before", side(runs.before, runs.other_failures_before)},
               {"after", side(runs.after, runs.other_failures_after)},
               {"note", printable(runs.note)}};
  if (!runs.why_not.empty()) json["why_not_made"] = printable(runs.why_not);
  return json;
}

}  // namespace

std::string proof_sentence(const Proof& proof) {
  if (proof.verdict != ProofVerdict::repaired) return proof.why;
  const Count before = sum_of(proof, &ProofRuns::before);
  return fmt::format(
      "the failure came in {} of {} without the patch and in none of {} with it: with it, less "
      "than {} of such runs fail (95 % confidence)",
      before.hits, counted(before.runs, "run"), proof.runs_with_patch,
      percent_at_most(proof.rate_below));
}

std::string proof_text(const ProofReport& report, const Style& style) {
  const Proof& proof = report.proof;
  std::string text = fmt::format("{}\n", one_line(to_string(report.test)));
  text += detail_line(fmt::format("{} [{}]", one_line(report.headline), report.signature));
  text += detail_line(fmt::format(
      "{}, built by {}: {} without it, {} with it", one_line(report.change), report.build_system,
      format_duration(report.built_before), format_duration(report.built_after)));
  for (const std::string& note : report.notes) text += detail_line(one_line(note));
  text += "\n" + runs_table(proof) + overhead_line(proof);
  text +=
      fmt::format("\n{}: {}\n", style.paint(tone_of(proof.verdict), verdict_word(proof.verdict)),
                  lines_of(proof_sentence(proof)));
  if (!proof.not_covered.empty()) text += "not covered:\n";
  for (const std::string& line : proof.not_covered) text += "  - " + one_line(line) + "\n";
  if (!report.kept.empty()) text += fmt::format("both builds are in {}\n", printable(report.kept));
  return text;
}

std::string proof_json(const ProofReport& report) {
  const Proof& proof = report.proof;
  Json json = {{"format", 1},
               {"repro", printable(report.repro)},
               {"test", printable(to_string(report.test))},
               {"signature", report.signature},
               {"headline", printable(report.headline)},
               {"change", printable(report.change)},
               {"verdict", to_string(proof.verdict)},
               {"why", printable(proof.why, LineFeeds::keep)},
               {"runs", Json::array()},
               {"runs_with_patch", proof.runs_with_patch},
               {"rate_below_95", proof.rate_below},
               {"overhead", nullptr},
               {"latest_us", proof.latest.count()},
               {"interrupted", proof.interrupted},
               {"not_covered", Json::array()},
               {"notes", Json::array()},
               {"build",
                {{"system", report.build_system},
                 {"before_us", report.built_before.count()},
                 {"after_us", report.built_after.count()}}}};
  for (const ProofRuns& runs : proof.runs) json["runs"].push_back(runs_json(runs));
  if (proof.overhead)
    json["overhead"] = {{"ratio", proof.overhead_median},
                        {"interval_95", {proof.overhead->low, proof.overhead->high}},
                        {"median_before_us", proof.median_before.count()},
                        {"median_after_us", proof.median_after.count()}};
  for (const std::string& line : proof.not_covered) json["not_covered"].push_back(printable(line));
  for (const std::string& note : report.notes) json["notes"].push_back(printable(note));
  if (!report.kept.empty()) json["kept"] = printable(report.kept);
  return json_text(json, 1) + "\n";
}

}  // namespace unflake
