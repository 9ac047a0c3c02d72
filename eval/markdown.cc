#include "markdown.h"

#include "util/text.h"

namespace unflake::eval {
namespace {

struct Extent {
  size_t begin = std::string::npos, end = std::string::npos;
};

Extent find_section(const std::string& document, const std::string& heading) {
  const std::string lines = "\n" + document;
  const size_t begin = lines.find("\n" + heading + "\n");
  if (begin == std::string::npos) return {};
  const std::string next = "\n" + heading.substr(0, heading.find(' ') + 1);
  return {begin, std::min(lines.find(next, begin + 1), document.size())};
}

}  // namespace

std::string cell(std::string text) {
  text = printable(text);
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text.empty() ? "-" : text;
}

std::string row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& one : cells) text += " " + cell(one) + " |";
  return text + "\n";
}

std::string table_head(const std::vector<std::string>& cells) {
  std::string text = row(cells) + "|";
  for (size_t i = 0; i < cells.size(); ++i) text += "---|";
  return text + "\n";
}

std::string targets_text(const std::vector<Score>& scores) {
  std::string text = table_head({"figure", "measured", "target", "met"});
  std::vector<std::string> missed;
  for (const Score& score : scores) {
    text += row({score.figure, score.measured, score.target,
                 score.target.empty() ? ""
                 : score.met          ? "yes"
                                      : "**no**"});
    if (!score.met) missed.push_back(score.figure);
  }
  return text +
         (missed.empty() ? "\nAll targets are met.\n" : "\nMissed: " + join(missed, "; ") + ".\n");
}

std::string section_of(const std::string& document, const std::string& heading) {
  const Extent found = find_section(document, heading);
  if (found.begin == std::string::npos) return "";
  return document.substr(found.begin, found.end - found.begin);
}

std::string with_section(const std::string& document, const std::string& heading,
                         const std::string& section) {
  if (section.empty()) return document;
  const Extent found = find_section(document, heading);
  if (found.begin == std::string::npos) return document + "\n" + section;
  return document.substr(0, found.begin) + section + document.substr(found.end);
}

}  // namespace unflake::eval
