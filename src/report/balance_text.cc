#include "report/balance_text.h"

#include <fmt/format.h>

#include "report/balance_words.h"
#include "report/table.h"

namespace unflake {
namespace {

std::string indented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

std::string part(const Style& style, const std::string& heading,
                 const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  return "\n" + style.paint(Tone::plain, heading) + "\n" + indented(lines);
}

std::string table_text(const BalanceTable& table) {
  Table cells(table.header);
  for (const auto& row : table.rows) cells.add(row);
  return cells.text() + indented(table.remarks);
}

std::string notes_text(const Style& style, const std::vector<std::string>& notes) {
  std::string text = notes.empty() ? "" : "\n";
  for (const std::string& note : notes)
    text += fmt::format("{}: {}\n", style.paint(Tone::doubtful, "note"), note);
  return text;
}

std::string value_part(const Style& style, const BalancedValueWords& words) {
  std::string text = "\n" + style.paint(Tone::plain, words.title) + "\n";
  text +=
      "  " + (words.is_changed ? style.paint(Tone::good, words.proposal) : words.proposal) + "\n";
  for (const auto* lines : {&words.facts, &words.evidence, &words.advice}) text += indented(*lines);
  if (!words.place.empty()) text += "  " + words.place + "\n";
  if (!words.old_line.empty())
    text += fmt::format("    {}\n    {}\n", style.paint(Tone::bad, "- " + words.old_line),
                        style.paint(Tone::good, "+ " + words.new_line));
  if (!words.caution.empty()) text += "  " + style.paint(Tone::doubtful, words.caution) + "\n";
  return text;
}

}  // namespace

std::string balance_text(const BalanceReport& report, const Style& style, bool all) {
  const BalanceWords words = words_of(report);
  const bool is_changed = report.saved_ms() != 0;
  std::string text = words.test + "\n  " +
                     (is_changed ? style.paint(Tone::good, words.result) : words.result) + "\n";
  for (const BalancedValueWords& value : words.values) text += value_part(style, value);
  text += part(style, "in third-party code", words.foreign);
  if (const BalanceTable table = settings_table(report, all); !table.rows.empty())
    text += "\n" + style.paint(Tone::plain, "measured") + "\n" + table_text(table);
  text += indented(words.measured);
  text += part(style, "what this shows", words.meaning);
  return text + notes_text(style, words.notes);
}

std::string claim_text(const ClaimReport& report, const Style& style) {
  const ClaimWords words = words_of(report);
  std::string text = fmt::format("{}\n  {}\n", words.test, style.paint(Tone::plain, words.result));
  text += part(style, "the value", words.value);
  text += part(style, "measured", words.measured);
  text += part(style, "what this shows", words.answers);
  return text + notes_text(style, words.notes);
}

std::string suite_balance_text(const SuiteBalance& suite, const Style& style) {
  const SuiteBalanceWords words = words_of(suite);
  std::string text = style.paint(Tone::plain, words.result) + "\n";
  if (!words.ranking.rows.empty()) text += "\n" + table_text(words.ranking);
  return text + notes_text(style, words.notes);
}

}  // namespace unflake
