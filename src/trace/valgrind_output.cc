#include <fmt/format.h>

#include <tuple>

#include "trace/output_parsers.h"
#include "trace/scan.h"
#include "trace/stack_frame.h"
#include "util/text.h"

namespace unflake {
namespace {

// The text behind "==1234== ".
std::optional<std::string_view> valgrind_text(std::string_view line) {
  if (!consume(line, "==")) return std::nullopt;
  const size_t digits = leading_digits(line).size();
  if (digits == 0) return std::nullopt;
  line.remove_prefix(digits);
  if (!consume(line, "==")) return std::nullopt;
  consume(line, " ");
  return line;
}

// Where the thread is said, the mistake is said in the line below.
bool names_thread(std::string_view text) {
  return text.starts_with("Thread ") || text.starts_with("---Thread-Announcement");
}

bool is_harmless(std::string_view title) {
  return contains(title, " still reachable in ") || contains(title, " suppressed in ");
}

// "48 bytes in 3 blocks are definitely lost in loss record 1 of 1" -> "definitely lost"
std::string_view mistake_in(std::string_view title) {
  if (const auto parts = split_at(title, " blocks are "))
    return parts->after.substr(0, parts->after.find(" in loss record"));
  for (const auto* end : {" at 0x", " 0x", " by thread ", " during "})
    title = title.substr(0, title.find(end));
  return title;
}

bool is_other_side_of_race(std::string_view title) {
  return title.starts_with("This conflicts with a previous ");
}

// Which side of a race is printed first is chance: the lesser place names it.
void add_other_side(Failure& race, Failure other) {
  const auto place = [](const Failure& side) {
    return std::tie(side.file, side.line, side.function);
  };
  other.message = race.message;
  if (place(other) < place(race)) std::swap(other, race);
  if (other.file != race.file || other.line != race.line)
    race.expression = fmt::format("and {}:{}", base_name(other.file), other.line);
}

class Reader {
 public:
  void read(std::string_view text) {
    if (trim(text).empty()) return end_paragraph();
    const auto frame = parse_valgrind_frame(text);
    if (frame) return add(*frame);
    if (text.starts_with(' ') || text.starts_with("Locks held")) return note_second_stack();
    if (!in_stack_ && title_.empty() && !names_thread(text)) title_ = text;
  }

  void end_paragraph() {
    if (in_stack_ && !title_.empty() && !is_harmless(title_)) {
      if (is_other_side_of_race(title_) && !failures.empty())
        add_other_side(failures.back(), std::move(current_));
      else
        failures.push_back(std::move(current_));
    }
    *this = Reader(std::move(failures));
  }

  Reader() = default;

  std::vector<Failure> failures;

 private:
  explicit Reader(std::vector<Failure> found) : failures(std::move(found)) {}

  void note_second_stack() {
    if (in_stack_) placed_ = true;
  }

  void add(const StackFrame& frame) {
    if (!in_stack_) {
      current_.kind = FailureKind::valgrind;
      current_.message = mistake_in(title_);
    }
    in_stack_ = true;
    if (placed_ || is_runtime_frame(frame)) return;
    current_.function = frame.function;
    current_.file = frame.file;
    current_.line = frame.line;
    placed_ = true;
  }

  std::string_view title_;
  Failure current_;
  bool in_stack_ = false;
  bool placed_ = false;
};

}  // namespace

std::vector<Failure> parse_valgrind_reports(std::string_view text) {
  Reader reader;
  for (LineReader in(text); !in.done() && reader.failures.size() < most_failures; in.advance())
    if (const auto line = valgrind_text(in.line())) reader.read(*line);
  reader.end_paragraph();
  return std::move(reader.failures);
}

}  // namespace unflake
