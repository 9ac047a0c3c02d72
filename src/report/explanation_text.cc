#include "report/explanation_text.h"

#include <fmt/format.h>

#include "report/repro_words.h"

namespace unflake {
namespace {

std::string lines_of(const Style& style, const std::string& heading,
                     const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = "\n" + style.paint(Tone::plain, heading) + "\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

std::string quotation_text(const Style& style, const Quotation& quotation) {
  std::string text = "\n" + style.paint(Tone::plain, quotation.title) + "\n";
  for (const QuotedLine& line : quotation.lines) {
    const std::string row =
        fmt::format("{} {:>5} | {}", line.is_meant ? '>' : ' ', line.number, line.text);
    text += (line.is_meant ? style.paint(Tone::doubtful, row) : row) + "\n";
  }
  return text;
}

}  // namespace

std::string explanation_text(const ExplanationReport& report, const Style& style) {
  const ExplanationWords words = words_of(report);
  std::string text = words.test + "\n  " + style.paint(Tone::bad, words.failure) + "\n";
  std::vector<std::string> cause = words.evidence;
  if (!words.runner_up.empty()) cause.push_back("or else " + words.runner_up);
  text += words.is_margin ? lines_of(style, "no flaw, a margin",
                                     {margin_words(report.repro), "what bounds it: " + words.cause})
                          : lines_of(style, "root cause: " + words.cause, cause);
  text += lines_of(style, "what happens", words.story);
  for (const Quotation& quotation : words.quotations) text += quotation_text(style, quotation);
  text += lines_of(style, "figures", words.figures);
  text += lines_of(style, "plan", words.plan);
  text += lines_of(style, "what to do", {words.advice});
  for (const std::string& note : words.notes)
    text += fmt::format("{}: {}\n", style.paint(Tone::doubtful, "note"), note);
  return text;
}

}  // namespace unflake
