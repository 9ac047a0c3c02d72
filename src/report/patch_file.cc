#include "report/patch_file.h"

#include <fmt/format.h>

#include "report/proof_text.h"
#include "util/text.h"

namespace unflake {
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
