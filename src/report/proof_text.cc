#include "report/repair_text.h"

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

namespace {

constexpr std::string_view what_key = "What: ", proof_key = "Proof: ", gap_key = "Not covered: ",
                           mind_key = "Mind: ";
constexpr size_t most_preamble_lines = 100;
constexpr size_t most_shown_lines = 120;
constexpr size_t most_shown_bytes = 12'000;

bool begins_diff(std::string_view line) {
  return line.starts_with("--- ") || line.starts_with("diff ");
}

void read_line(ProposedPatch& patch, std::string_view line) {
  if (line.starts_with(what_key)) patch.what = line.substr(what_key.size());
  if (line.starts_with(proof_key)) patch.proof = line.substr(proof_key.size());
  if (line.starts_with(gap_key)) patch.not_covered.emplace_back(line.substr(gap_key.size()));
}

// Files that it only adds, such as the header of a hand-over, are named and not shown.
std::string shown_diff(const std::string& diff) {
  std::string shown;
  size_t lines = 0;
  bool is_new_file = false;
  for (const std::string_view line : split_lines(diff)) {
    if (begins_diff(line)) is_new_file = line.starts_with("--- /dev/null");
    if (is_new_file && !line.starts_with("--- ") && !line.starts_with("+++ ")) continue;
    if (++lines > most_shown_lines || shown.size() > most_shown_bytes) return shown + "...\n";
    shown += printable(line) + "\n";
  }
  return shown;
}

std::string proof_words(const ProposedPatch& patch) {
  return patch.proof.empty() ? "it carries no proof: `unflake prove REPRO --patch` makes one"
                             : patch.proof;
}

std::string apply_command(const ProposedPatch& patch) {
  return "git apply " + shell_quote(patch.file);
}

}  // namespace

std::string patch_file_text(const RepairPatch& patch, const ProofReport& proof) {
  std::string text = fmt::format("Repairs {} [{}] by {}.\n", one_line(to_string(proof.test)),
                                 one_line(proof.signature), to_string(patch.idiom));
  text += fmt::format("{}{}\n", what_key, one_line(patch.what));
  text += fmt::format("{}{}\n", proof_key, one_line(proof_sentence(proof.proof)));
  for (const std::string& gap : proof.proof.not_covered)
    text += fmt::format("{}{}\n", gap_key, one_line(gap));
  for (const std::string& caution : patch.cautions)
    text += fmt::format("{}{}\n", mind_key, one_line(caution));
  return text + "\n" + patch.diff;
}

ProposedPatch read_patch_file(const std::string& file, std::string_view text) {
  ProposedPatch patch;
  patch.file = file;
  size_t at = 0;
  for (size_t line = 0; line < most_preamble_lines && at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view here = text.substr(at, end - at);
    if (begins_diff(here)) break;
    read_line(patch, here);
    at = std::min(end + 1, text.size());
  }
  patch.diff = text.substr(at);
  return patch;
}

std::string proposed_patch_text(const ProposedPatch& patch, const Style& style) {
  std::string text = "\n" + style.paint(Tone::plain, "proposed patch") + "\n";
  if (!patch.what.empty()) text += "  " + one_line(patch.what) + "\n";
  text += "  " + one_line(proof_words(patch)) + "\n";
  for (const std::string& gap : patch.not_covered) text += "  not covered: " + one_line(gap) + "\n";
  text += "  " + one_line(apply_command(patch)) + "\n";
  const std::string diff = shown_diff(patch.diff);
  for (const std::string_view line : split_lines(diff)) text += "    " + std::string(line) + "\n";
  return text;
}

std::string proposed_patch_markdown(const ProposedPatch& patch) {
  std::string text = fmt::format("**Proposed patch:** {}\n\n**Its proof:** {}\n\n",
                                 markdown_code(patch.what.empty() ? patch.file : patch.what, 500),
                                 markdown_code(proof_words(patch), 500));
  for (const std::string& gap : patch.not_covered)
    text += "- not covered: " + markdown_code(gap, 300) + "\n";
  if (!patch.not_covered.empty()) text += "\n";
  return text + markdown_block(shown_diff(patch.diff), most_shown_bytes) + "\n" +
         markdown_block(apply_command(patch)) + "\n";
}

std::string proposed_patch_html(const ProposedPatch& patch) {
  std::string text = fmt::format("<h2>Proposed patch</h2>\n<p>{}</p>\n<p><b>Proof.</b> {}</p>\n",
                                 html_text(patch.what.empty() ? patch.file : patch.what),
                                 html_prose(proof_words(patch)));
  for (const std::string& gap : patch.not_covered)
    text += fmt::format("<p class=\"faint\">Not covered: {}</p>\n", html_text(gap));
  text += "<pre>";
  const std::string diff = shown_diff(patch.diff);
  for (const std::string_view line : split_lines(diff)) text += html_text(line) + "\n";
  return text + fmt::format("</pre>\n<pre>{}</pre>\n", html_text(apply_command(patch), 2000));
}

nlohmann::ordered_json proposed_patch_json(const ProposedPatch& patch) {
  nlohmann::ordered_json gaps = nlohmann::ordered_json::array();
  for (const std::string& gap : patch.not_covered) gaps.push_back(printable(gap));
  return {{"file", printable(patch.file)},
          {"what", printable(patch.what)},
          {"proof", printable(patch.proof)},
          {"not_covered", std::move(gaps)},
          {"diff", printable(patch.diff, LineFeeds::keep)}};
}

}  // namespace unflake
