#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "trace/output_parsers.h"
#include "trace/scan.h"
#include "trace/stack_frame.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_report_lines = 600;
constexpr size_t most_stacks = 8;

struct Tool {
  std::string_view name;
  FailureKind kind;
};

constexpr std::array tools{
    Tool{"AddressSanitizer", FailureKind::address_sanitizer},
    Tool{"HWAddressSanitizer", FailureKind::address_sanitizer},
    Tool{"LeakSanitizer", FailureKind::leak_sanitizer},
    Tool{"ThreadSanitizer", FailureKind::thread_sanitizer},
    Tool{"MemorySanitizer", FailureKind::memory_sanitizer},
    Tool{"UndefinedBehaviorSanitizer", FailureKind::undefined_behaviour_sanitizer},
};

struct Title {
  FailureKind kind;
  std::string_view what;
};

// "attempting double-free on 0x602000000010 in thread T0:" -> "double-free"
std::string_view mistake_in(std::string_view text) {
  consume(text, "attempting ");
  for (const auto* end : {" on address ", " on unknown address", " on 0x", " (pid=", " 0x", ": 0x"})
    text = text.substr(0, text.find(end));
  return trim(text);
}

// ==12==ERROR: AddressSanitizer: heap-use-after-free on address ...
std::optional<Title> title_in(std::string_view line) {
  const auto parts = split_at(line, "Sanitizer: ");
  if (!parts) return std::nullopt;
  std::string_view before = parts->before;
  const std::string_view name = before.substr(before.find_last_of(' ') + 1);
  before.remove_suffix(name.size());
  const bool opens =
      before.ends_with("ERROR: ") || before.ends_with("WARNING: ") || before.ends_with("FATAL: ");
  if (!opens) return std::nullopt;
  for (const Tool& tool : tools)
    if (tool.name.substr(0, tool.name.size() - 9) == name)
      return Title{tool.kind, mistake_in(parts->after)};
  return std::nullopt;
}

struct Stack {
  std::string_view caption;
  std::vector<StackFrame> frames;
};

void place(Failure& failure, const StackFrame& frame) {
  failure.function = frame.function;
  failure.file = frame.file;
  failure.line = frame.line;
}

const StackFrame* first_own_frame(const Stack& stack) {
  for (const StackFrame& frame : stack.frames)
    if (!is_runtime_frame(frame)) return &frame;
  return nullptr;
}

bool same_place(const StackFrame& a, const StackFrame& b) {
  return a.file == b.file && a.line == b.line && (a.line > 0 || a.function == b.function);
}

std::string short_place(const StackFrame& frame) {
  return frame.line > 0 ? fmt::format("{}:{}", base_name(frame.file), frame.line) : frame.function;
}

// A race has two sides, and which of them is printed first is chance: order them by what they are.
void place_by_all_sides(Failure& failure, const std::vector<Stack>& stacks) {
  std::vector<StackFrame> sides;
  for (const Stack& stack : stacks) {
    const StackFrame* frame = first_own_frame(stack);
    if (frame && !contains(stack.caption, "created")) sides.push_back(*frame);
  }
  std::sort(sides.begin(), sides.end(), [](const StackFrame& a, const StackFrame& b) {
    return std::tie(a.file, a.line, a.function) < std::tie(b.file, b.line, b.function);
  });
  sides.erase(std::unique(sides.begin(), sides.end(), same_place), sides.end());
  if (sides.empty()) return;
  place(failure, sides.front());
  std::vector<std::string> others;
  for (size_t i = 1; i < sides.size(); ++i) others.push_back(short_place(sides[i]));
  if (!others.empty()) failure.expression = fmt::format("and {}", join(others, ", "));
}

void place_by_first_stack(Failure& failure, const std::vector<Stack>& stacks) {
  for (const Stack& stack : stacks)
    if (const StackFrame* frame = first_own_frame(stack)) return place(failure, *frame);
}

// SUMMARY: AddressSanitizer: heap-use-after-free /src/server.cc:9 in app::Server::push(int)
void place_by_summary(Failure& failure, std::string_view summary) {
  const auto parts = split_at(summary, " in ");
  if (!parts) return;
  StackFrame frame;
  frame.function = trim(parts->after);
  if (const auto place = source_line_at_end(parts->before)) {
    frame.file = place->file;
    frame.line = place->line;
  }
  if (!is_runtime_frame(frame)) place(failure, frame);
}

// Reads on to the report's summary, or to where the next report starts.
class Report {
 public:
  explicit Report(LineReader& in) {
    for (size_t n = 0; !in.done() && n < most_report_lines && !title_in(in.line()); ++n) {
      std::string_view line = in.line();
      in.advance();
      if (consume(line, "SUMMARY: ")) {
        summary_ = line;
        break;
      }
      add(line);
    }
  }
  const std::vector<Stack>& stacks() const { return stacks_; }
  std::string_view summary() const { return summary_; }

 private:
  void add(std::string_view line) {
    auto frame = parse_sanitizer_frame(line);
    if (!frame) {
      caption_ = line;
      in_stack_ = false;
      return;
    }
    if (!in_stack_ && stacks_.size() < most_stacks) stacks_.push_back({caption_, {}});
    in_stack_ = true;
    stacks_.back().frames.push_back(std::move(*frame));
  }

  std::string_view caption_;
  std::string_view summary_;
  std::vector<Stack> stacks_;
  bool in_stack_ = false;
};

Failure take_report(LineReader& in, const Title& title) {
  Failure failure;
  failure.kind = title.kind;
  failure.message = title.what;
  const Report report(in);
  if (title.kind == FailureKind::thread_sanitizer)
    place_by_all_sides(failure, report.stacks());
  else
    place_by_first_stack(failure, report.stacks());
  if (failure.function.empty()) place_by_first_stack(failure, report.stacks());
  if (failure.function.empty()) place_by_summary(failure, report.summary());
  return failure;
}

// server.cc:21:49: runtime error: signed integer overflow: ...
std::optional<Failure> undefined_behaviour_in(std::string_view line) {
  const auto parts = split_at(line, ": runtime error: ");
  if (!parts) return std::nullopt;
  const auto place = source_line_at_end(parts->before);
  if (!place) return std::nullopt;
  Failure failure;
  failure.kind = FailureKind::undefined_behaviour_sanitizer;
  failure.file = place->file;
  failure.line = place->line;
  failure.message = parts->after;
  return failure;
}

}  // namespace

std::vector<Failure> parse_sanitizer_reports(std::string_view text) {
  std::vector<Failure> failures;
  if (!contains(text, "Sanitizer") && !contains(text, ": runtime error: ")) return failures;
  LineReader in(text);
  while (!in.done() && failures.size() < most_failures) {
    const auto title = title_in(in.line());
    const auto undefined = undefined_behaviour_in(in.line());
    in.advance();
    if (title) failures.push_back(take_report(in, *title));
    if (undefined) failures.push_back(*undefined);
  }
  return failures;
}

}  // namespace unflake
