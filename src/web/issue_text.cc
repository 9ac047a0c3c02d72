#include "web/issue_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "util/text.h"

namespace unflake {
namespace {

constexpr std::string_view begin_mark = "<!-- unflake:cause:";
constexpr std::string_view signatures_mark = "<!-- unflake:signatures:";
constexpr std::string_view told_mark = "<!-- unflake:told:";
constexpr std::string_view end_mark = "<!-- unflake:end -->";
constexpr std::string_view close = " -->";
constexpr size_t most_signatures = 100;

// Letters and digits stay; nothing else can end a comment or a field.
std::string encoded(std::string_view text) {
  std::string safe;
  for (const char c : text.substr(0, 200)) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    safe += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return safe;
}

std::string decoded(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    unsigned value = 0;
    const char* from = text.data() + at + 1;
    if (text[at] == '%' && at + 2 < text.size() &&
        std::from_chars(from, from + 2, value, 16).ptr == from + 2) {
      plain += static_cast<char>(value);
      at += 2;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

struct Part {
  size_t from = 0, to = 0;
};

// The last one: whoever quotes an issue in another one puts the quotation first.
std::optional<Part> part_in(std::string_view body) {
  const size_t end = body.rfind(end_mark);
  if (end == std::string_view::npos) return std::nullopt;
  const size_t from = body.rfind(begin_mark, end);
  if (from == std::string_view::npos) return std::nullopt;
  return Part{from, end + end_mark.size()};
}

std::vector<std::string> fields_of(std::string_view text, std::string_view mark, char separator) {
  const size_t from = text.find(mark);
  if (from == std::string_view::npos) return {};
  const size_t start = from + mark.size();
  const size_t end = text.find(close, start);
  if (end == std::string_view::npos || end - start > 10'000) return {};
  std::vector<std::string> fields;
  for (const std::string& field : split(text.substr(start, end - start), separator))
    fields.push_back(decoded(field));
  return fields;
}

std::string head_of(const IssueMarks& marks) {
  std::vector<std::string> signatures;
  for (const std::string& one : marks.signatures) {
    if (signatures.size() == most_signatures) break;
    signatures.push_back(encoded(one));
  }
  return fmt::format("{}{}:{}{}\n{}{}{}\n{}{}:{}{}\n\n", begin_mark, marks.cause,
                     encoded(marks.project), close, signatures_mark, join(signatures, ","), close,
                     told_mark, encoded(marks.owner), encoded(marks.expiry), close);
}

}  // namespace

std::optional<IssueMarks> marks_in(std::string_view body) {
  const auto part = part_in(body);
  if (!part) return std::nullopt;
  const std::string_view text = body.substr(part->from, part->to - part->from);
  IssueMarks marks;
  const auto cause = fields_of(text, begin_mark, ':');
  if (cause.size() != 2) return std::nullopt;
  const char* end = cause[0].data() + cause[0].size();
  if (std::from_chars(cause[0].data(), end, marks.cause).ptr != end || cause[0].empty())
    return std::nullopt;
  marks.project = cause[1];
  for (std::string& one : fields_of(text, signatures_mark, ','))
    if (!one.empty()) marks.signatures.push_back(std::move(one));
  if (auto told = fields_of(text, told_mark, ':'); told.size() == 2) {
    marks.owner = std::move(told[0]);
    marks.expiry = std::move(told[1]);
  }
  return marks;
}

std::string marked_part(const IssueMarks& marks, std::string_view text, size_t most) {
  constexpr std::string_view cut_note =
      "\n\n(The rest is left out: the issue would be too long.)\n";
  const std::string head = head_of(marks);
  const size_t fixed = head.size() + end_mark.size() + cut_note.size() + 1;
  const size_t room = most > fixed ? most - fixed : 0;
  std::string shown(text);
  if (shown.size() > room) {
    // At the end of a paragraph, so that no block or table is left open.
    const size_t paragraph = shown.rfind("\n\n", room);
    shown.resize(paragraph == std::string::npos || paragraph > room ? 0 : paragraph);
    shown += cut_note;
  }
  return head + shown + "\n" + std::string(end_mark);
}

std::string with_part(std::string_view body, std::string_view part) {
  const auto old = part_in(body);
  if (old) return std::string(body.substr(0, old->from)).append(part).append(body.substr(old->to));
  std::string whole(body);
  if (!whole.empty()) whole += "\n\n";
  return whole.append(part);
}

size_t size_without_part(std::string_view body) {
  const auto part = part_in(body);
  return part ? body.size() - (part->to - part->from) : body.size() + (body.empty() ? 0 : 2);
}

}  // namespace unflake
