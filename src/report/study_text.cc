#include "report/study_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/columns.h"
#include "report/table.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t box_width = 61;
constexpr size_t longest_label = 24;

std::string boxes_text(const std::vector<StudyTable::Box>& boxes) {
  size_t widest = 0;
  for (const auto& box : boxes)
    widest = std::max(widest, columns(cut_to_columns(printable(box.label), longest_label)));
  std::string text;
  for (const auto& box : boxes) {
    const std::string label = cut_to_columns(printable(box.label), longest_label);
    text += fmt::format("\n  {}{}  {}", label, std::string(widest - columns(label), ' '),
                        box_text(box.rates, box_width));
  }
  const std::string indent(widest + 4, ' ');
  return fmt::format("{}\n{}0 %{:>{}}{:>{}}\n", text, indent, "50 %", box_width / 2, "100 %",
                     box_width / 2 - 1);
}

std::string one_table(const StudyTable& table, const Style& style) {
  std::string text = style.paint(Tone::plain, heading_of(table)) + "\n";
  if (!table.rows.empty()) {
    Table cells(table.header);
    for (const auto& row : table.rows) cells.add(row);
    text += cells.text();
  }
  if (!table.boxes.empty()) text += boxes_text(table.boxes);
  for (const std::string& remark : table.remarks) text += fmt::format("  * {}\n", one_line(remark));
  return text;
}

}  // namespace

std::string box_text(const Spread& rates, size_t width) {
  const auto place = [&](double rate) {
    return static_cast<size_t>(
        std::lround(std::clamp(rate, 0.0, 1.0) * static_cast<double>(width - 1)));
  };
  std::string line(width, ' ');
  const auto fill = [&](double from, double to, char c) {
    for (size_t i = place(from); i <= place(to); ++i) line[i] = c;
  };
  fill(rates.min, rates.max, '-');
  fill(rates.lower_quartile, rates.upper_quartile, '=');
  line[place(rates.min)] = '|';
  line[place(rates.max)] = '|';
  line[place(rates.lower_quartile)] = '[';
  line[place(rates.upper_quartile)] = ']';
  line[place(rates.median)] = '#';
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

std::string study_text(const std::vector<StudyTable>& tables, const std::vector<std::string>& notes,
                       const Style& style) {
  std::string text;
  for (const StudyTable& table : tables) {
    if (!text.empty()) text += "\n";
    text += one_table(table, style);
  }
  for (const std::string& note : notes) text += fmt::format("\nnote: {}\n", one_line(note));
  return text;
}

}  // namespace unflake
