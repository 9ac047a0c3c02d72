#include "output/output_parsers.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <tuple>
#include "util/text.h"

namespace unflake {
namespace {

constexpr std::array runtime_prefixes{"__interceptor_",
                                      "___interceptor_",
                                      "__asan",
                                      "__tsan",
                                      "__msan",
                                      "__ubsan",
                                      "__lsan",
                                      "__hwasan",
                                      "__sanitizer",
                                      "__interception",
                                      "operator new",
                                      "operator delete",
                                      "__libc_",
                                      "__gthread",
                                      "pthread_",
                                      "std::",
                                      "void std::",
                                      "__gnu_cxx::",
                                      "__cxa_",
                                      "__GI_",
                                      "__assert_fail",
                                      "_dl_",
                                      "__pthread_",
                                      "__memcpy",
                                      "__memmove",
                                      "__memset",
                                      "__str",
                                      "void* std::",
                                      "bool std::",
                                      "__invoke_impl",
                                      "sem_",
                                      "asan_thread_start",
                                      "(<unknown module>"};

constexpr std::array runtime_functions{
    "malloc",        "calloc",  "realloc",      "free",    "memcpy", "memmove", "memset",
    "memcmp",        "strlen",  "strcpy",       "strncpy", "strcat", "strcmp",  "strdup",
    "strndup",       "sprintf", "printf",       "puts",    "abort",  "raise",   "gsignal",
    "clone",         "clone3",  "start_thread", "_start",  "???",    "<null>",  "posix_memalign",
    "aligned_alloc", "read",    "write",        "close"};

constexpr std::array runtime_files{"libsanitizer/", "compiler-rt/",  "/include/c++/",
                                   "sysdeps/",      "/csu/",         "../csu/",
                                   "/nptl/",        "/usr/include/", "/gthr-default.h"};

constexpr std::array runtime_modules{"libc.so",    "libc-2.",   "libstdc++",   "libc++",
                                     "libpthread", "libasan",   "libtsan",     "libubsan",
                                     "libm.so",    "ld-linux",  "vgpreload",   "liblsan",
                                     "libm-2.",    "libhwasan", "libclang_rt."};

std::string_view without_arguments(std::string_view function) {
  return function.substr(0, function.find('('));
}

// " (server+0x1f)", " (BuildId: 15)" and " (in /usr/lib/libc.so)" at the end.
std::optional<std::string_view> take_parenthesised_end(std::string_view& text) {
  if (!text.ends_with(')')) return std::nullopt;
  const size_t open = text.rfind(" (");
  if (open == std::string_view::npos) return std::nullopt;
  const std::string_view inside = text.substr(open + 2, text.size() - open - 3);
  text = text.substr(0, open);
  return inside;
}

// Cuts off "(/build/server+0x1f) (BuildId: 15)" and returns "server+0x1f", which stays the same as
// long as the file does.
std::string_view take_address(std::string_view& text) {
  std::string_view address;
  for (;;) {
    std::string_view shorter = text;
    const auto inside = take_parenthesised_end(shorter);
    if (!inside) return address;
    const bool is_address = contains(*inside, "+0x");
    if (!is_address && !inside->starts_with("BuildId: ")) return address;
    if (is_address) address = base_name(*inside);
    text = shorter;
  }
}

// The function's name was not known.
bool is_address(const StackFrame& frame) {
  std::string_view rest = frame.function;
  return !frame.module.empty() && consume(rest, frame.module) && rest.starts_with("+0x");
}

// Copies that the optimiser made have the name of the function plus a suffix.
std::string clean_function(std::string_view name) {
  for (const auto* tail : {" [clone ", ".isra.", ".constprop.", ".part.", ".cold", ".llvm."})
    name = name.substr(0, name.find(tail));
  return std::string(trim(name));
}

bool skip_hex(std::string_view& text) {
  if (!consume(text, "0x")) return false;
  while (!text.empty() && is_hex_digit(text.front())) text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<StackFrame> parse_sanitizer_frame(std::string_view line) {
  line = trim(line);
  if (!consume(line, "#")) return std::nullopt;
  const size_t digits = leading_digits(line).size();
  if (digits == 0 || digits > 4) return std::nullopt;
  line.remove_prefix(digits);
  if (!line.starts_with(' ')) return std::nullopt;
  std::string_view behind_address = line.substr(1);
  if (skip_hex(behind_address)) line = behind_address;
  if (line.starts_with(" in ")) line.remove_prefix(3);

  StackFrame frame;
  const std::string_view address = take_address(line);
  frame.module = address.substr(0, address.rfind("+0x"));
  line = trim(line);
  const size_t space = line.rfind(' ');
  const std::string_view last = space == std::string_view::npos ? "" : line.substr(space + 1);
  const auto place = source_line_at_end(last);
  if (place) {
    frame.file = place->file;
    frame.line = place->line;
  }
  if (place || last == "<null>") line = line.substr(0, space);
  const bool nameless = line.empty() || line == "<null>";
  frame.function = nameless && !address.empty() ? std::string(address) : clean_function(line);
  return frame;
}

std::optional<StackFrame> parse_valgrind_frame(std::string_view line) {
  line = trim(line);
  if (!consume(line, "at ") && !consume(line, "by ")) return std::nullopt;
  if (!skip_hex(line) || !consume(line, ": ")) return std::nullopt;
  StackFrame frame;
  const auto inside = take_parenthesised_end(line);
  frame.function = clean_function(line);
  if (!inside) return frame;
  if (const auto place = source_line_at_end(*inside)) {
    frame.file = place->file;
    frame.line = place->line;
  } else {
    frame.module = base_name(*inside);
  }
  return frame;
}

bool is_runtime_frame(const StackFrame& frame) {
  const auto any = [](const auto& list, auto matches) {
    return std::any_of(list.begin(), list.end(), matches);
  };
  const std::string_view function = frame.function;
  const std::string_view module = frame.module;
  if (any(runtime_modules, [&](auto* start) { return module.starts_with(start); })) return true;
  if (is_address(frame)) return false;
  return function.empty() ||
         any(runtime_prefixes, [&](auto* start) { return function.starts_with(start); }) ||
         any(runtime_functions, [&](auto* name) { return without_arguments(function) == name; }) ||
         any(runtime_files, [&](auto* part) { return contains(frame.file, part); });
}

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

// Reads up to the report's summary, or to where the next report starts.
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

namespace {

// "freed by thread T1 (flusher) here:" -> "thread T1 (flusher)"
std::string thread_in(std::string_view caption) {
  const size_t begin = caption.find("thread T");
  if (begin == std::string_view::npos) return "a thread";
  std::string_view name = caption.substr(begin);
  for (const auto* end : {" here", " created", ":"}) name = name.substr(0, name.find(end));
  return name == "thread T0" ? "the main thread" : std::string(trim(name));
}

// What a stack of the report is about; empty: of no interest.
std::string deed_in(std::string_view caption, size_t number, std::string_view mistake) {
  if (contains(caption, "freed by")) return "freed";
  if (contains(caption, "allocated by")) return "allocated";
  if (number > 0) return "";
  if (contains(caption, "READ of size")) return "read";
  if (contains(caption, "WRITE of size")) return "written";
  return contains(mistake, "free") ? "freed again" : "used";
}

std::string place_in(const StackFrame& frame) {
  const std::string place = short_place(frame);
  return frame.function.empty() || place == frame.function ? place
                                                           : place + " in " + frame.function;
}

std::vector<std::string> history_in(LineReader& in, const Title& title, std::string_view line) {
  std::vector<std::string> told;
  bool is_about_gone_memory = false;
  const Report report(in);
  for (size_t i = 0; i < report.stacks().size(); ++i) {
    const Stack& stack = report.stacks()[i];
    const StackFrame* frame = first_own_frame(stack);
    const std::string deed = deed_in(stack.caption, i, title.what);
    if (frame == nullptr) continue;
    if (stack.caption.starts_with("Thread T") && contains(stack.caption, " created by "))
      told.push_back(fmt::format("{} was created at {}",
                                 thread_in("t" + std::string(stack.caption.substr(1))),
                                 place_in(*frame)));
    if (deed.empty()) continue;
    is_about_gone_memory |= deed == "freed";
    const std::string_view by = contains(stack.caption, "thread T") ? stack.caption : line;
    told.push_back(fmt::format("it was {} by {} at {}", deed, thread_in(by), place_in(*frame)));
  }
  return is_about_gone_memory ? told : std::vector<std::string>{};
}

// What glibc prints before it aborts.
std::vector<std::string> complaint_of_libc(std::string_view text) {
  for (const std::string_view complaint :
       {"double free or corruption", "free(): double free detected", "free(): invalid pointer",
        "munmap_chunk(): invalid pointer", "corrupted size vs. prev_size",
        "malloc(): unaligned tcache chunk"})
    if (contains(text, complaint))
      return {
          fmt::format("the C library noticed it (`{}`) and does not know who freed the memory "
                      "first: a build with -fsanitize=address does",
                      complaint)};
  return {};
}

}  // namespace

std::vector<std::string> memory_history(std::string_view text) {
  for (LineReader in(text); !in.done();) {
    const std::string_view line = in.line();
    const auto title = title_in(line);
    in.advance();
    if (!title) continue;
    auto told = history_in(in, *title, line);
    if (!told.empty()) return told;
  }
  return complaint_of_libc(text);
}

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

namespace {

// The text after "==1234== ".
std::optional<std::string_view> valgrind_text(std::string_view line) {
  if (!consume(line, "==")) return std::nullopt;
  const size_t digits = leading_digits(line).size();
  if (digits == 0) return std::nullopt;
  line.remove_prefix(digits);
  if (!consume(line, "==")) return std::nullopt;
  consume(line, " ");
  return line;
}

// Where a line names the thread, the next one names the mistake.
bool names_thread(std::string_view text) {
  return text.starts_with("Thread ") || text.starts_with("---Thread-Announcement");
}

bool is_harmless(std::string_view title) {
  return contains(title, " still reachable in ") || contains(title, " suppressed in ");
}

// "48 bytes in 3 blocks are definitely lost in loss record 1 of 1" -> "definitely lost"
std::string_view valgrind_mistake_in(std::string_view title) {
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
      current_.message = valgrind_mistake_in(title_);
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
