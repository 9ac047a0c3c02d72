#include "output/ci_log/ci_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "model/outcome.h"
#include "output/read_outcome.h"
#include "util/text.h"

namespace unflake {
namespace {

struct Magic {
  std::string_view bytes;
  std::string_view what;
  std::string_view next;
};

constexpr std::array known_files{
    Magic{"PK\x03\x04", "a ZIP archive", "unpack it and give the log of the job that failed"},
    Magic{"\x1f\x8b", "compressed", "unpack it with gunzip first"},
    Magic{"\x28\xb5\x2f\xfd", "compressed", "unpack it with zstd -d first"},
    Magic{"\x7f"
          "ELF",
          "a program", "give the log of a run of its tests"},
    Magic{"\xff\xfe", "in UTF-16", "convert it with: iconv -f UTF-16 -t UTF-8"},
    Magic{"\xfe\xff", "in UTF-16", "convert it with: iconv -f UTF-16 -t UTF-8"},
};

bool is_odd(char c) {
  return static_cast<unsigned char>(c) < 0x20 && !is_blank(c) && c != '\x1b' && c != '\b' &&
         c != '\a';
}

// A test may print a few bytes that are not text.
bool is_binary(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, is_odd)) > text.size() / 50;
}

std::optional<Error> refusal(std::string_view text) {
  if (trim(text).empty())
    return usage_error("the log is empty", "", "give the log of a run in which the test failed");
  for (const Magic& magic : known_files)
    if (text.starts_with(magic.bytes))
      return usage_error(fmt::format("the log is {}", magic.what), "", std::string(magic.next));
  if (is_binary(text))
    return usage_error("the log is not text", "",
                       "give the raw log of the CI job, or a JUnit XML file");
  return std::nullopt;
}

// file.cc:12:5: error: ..., and what linkers and build tools say
bool is_build_error(std::string_view line) {
  if (line.starts_with("CMake Error") || line.starts_with("ninja: build stopped")) return true;
  if (contains(line, "undefined reference to ") || line.starts_with("collect2: error: "))
    return true;
  for (const auto* mark : {": error: ", ": fatal error: "})
    if (const auto parts = split_at(line, mark); parts && source_line_at_end(parts->before))
      return true;
  return false;
}

Error nothing_learnt(const std::vector<LogLine>& lines) {
  const auto broken =
      std::ranges::find_if(lines, [](const LogLine& line) { return is_build_error(line.text); });
  if (broken != lines.end())
    return usage_error(fmt::format("the log is of a build that failed, and no test ran: {}",
                                   printable(shorten(trim(broken->text), 200))),
                       fmt::format("line {}", broken->number),
                       "give the log of a run in which the test failed");
  return usage_error("the log shows no test that unflake can recognise", "",
                     "give the raw log of the job that ran the test; where CTest ran it, with "
                     "--output-on-failure");
}

bool is_xml(std::string_view text) {
  consume(text, "\xEF\xBB\xBF");
  text = trim(text.substr(0, 200));
  return text.starts_with("<?xml") || text.starts_with("<testsuite");
}

void sort_by_line(CiLog& log) {
  std::ranges::stable_sort(log.failures, {}, &LoggedFailure::line);
}

}  // namespace

Result<CiLog> read_ci_log(std::string_view text) {
  if (auto error = refusal(text)) return *error;
  if (is_xml(text)) return read_junit_log(text);
  const std::string plain = without_escape_sequences(text);
  const std::vector<LogLine> lines = undecorated_lines(plain);
  CiLog log;
  log.lines = static_cast<size_t>(std::ranges::count(text, '\n')) + !text.ends_with('\n');
  for (const LoggedProgram& program : programs_in(lines)) read_program(program, log);
  sort_by_line(log);
  if (log.failures.empty() && !log.shows_passing_runs) return nothing_learnt(lines);
  return log;
}

namespace {

// Reporters wrap long titles and strip spaces from their ends.
std::string with_single_blanks(std::string_view text) {
  std::string plain;
  for (const char c : trim(text)) {
    if (!is_blank(c))
      plain += c;
    else if (!plain.ends_with(' '))
      plain += ' ';
  }
  return plain;
}

// "name #2" is the second test of its name, which the log cannot tell from the first.
std::string_view without_count(std::string_view name) {
  const size_t mark = name.rfind(" #");
  if (mark == std::string_view::npos) return name;
  const std::string_view count = name.substr(mark + 2);
  return !count.empty() && leading_digits(count) == count ? name.substr(0, mark) : name;
}

bool ends_with_part(std::string_view text, std::string_view part, char separator) {
  return text.size() > part.size() && !part.empty() && text.ends_with(part) &&
         text[text.size() - part.size() - 1] == separator;
}

// JUnit files add sections to the name of a case, put more before that of its suite, and doctest's
// leave the suite out.
bool is_same_case(const LoggedFailure& logged, std::string_view said, std::string_view name) {
  if (said == name) return true;
  switch (logged.framework) {
    case Framework::catch2:
      return said.starts_with(std::string(name) + "/");
    case Framework::doctest:
      return ends_with_part(name, said, '/') || said.starts_with(std::string(name) + "/");
    case Framework::command:
      return ends_with_part(said, name, '.');
    default:
      return false;
  }
}

bool calls_it(const LoggedFailure& logged, const std::string& name) {
  const std::string test = with_single_blanks(logged.test);
  const std::string entry = with_single_blanks(logged.entry);
  if (!test.empty() && is_same_case(logged, test, name)) return true;
  if (entry.empty()) return false;
  if (entry == name || (!test.empty() && is_same_case(logged, entry + "/" + test, name)))
    return true;
  return test.empty() && ends_with_part(entry, name, '.');
}

// "//net:server_test" without a case is everything that the program runs.
bool is_bazel_target_of(const LoggedFailure& logged, const Test& test) {
  return logged.test.empty() && logged.entry.starts_with("//") &&
         ends_with_part(logged.entry, test.id.target, ':');
}

bool has_no_name(const LoggedFailure& logged) {
  return logged.test.empty() && logged.entry.empty();
}

std::string full_name(const LoggedFailure& logged) {
  return logged.test.empty() ? logged.entry : logged.test;
}

// What the log is about instead, for an error's text.
std::string names_in(const CiLog& log) {
  constexpr size_t most_names = 5;
  std::vector<std::string> names;
  for (const LoggedFailure& logged : log.failures) {
    const std::string name = full_name(logged);
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
    if (names.size() > most_names) break;
  }
  const bool more = names.size() > most_names;
  if (more) names.back() = "...";
  return join(names, ", ");
}

Error shows_no_failure(const CiLog& log, const std::string& of) {
  if (log.failures.empty())
    return usage_error("the log shows no failing test, only passing ones", "",
                       "give the log of a run in which the test failed");
  return usage_error(fmt::format("the log does not tell of a failure of {}", of), "",
                     fmt::format("it names {}; give the log of this target, or one of these tests",
                                 names_in(log)));
}

bool agrees(std::string_view logged, std::string_view seen) {
  return logged.empty() || logged == seen;
}

std::string words_of(const Failure& failure) {
  return normalise(said_in(failure.message));
}

// Without the exit status, all ways in which a test fails by its end look the same.
bool is_same_kind(const Failure& logged, const Failure& seen) {
  if (logged.kind != FailureKind::exit_status || !logged.expression.empty())
    return logged.kind == seen.kind;
  return seen.kind == FailureKind::exit_status || seen.kind == FailureKind::output_pattern ||
         seen.kind == FailureKind::unexpected_pass;
}

}  // namespace

bool is_named(const LoggedFailure& logged, const Test& test) {
  const std::string name = with_single_blanks(test.id.name);
  return calls_it(logged, name) || calls_it(logged, std::string(without_count(name))) ||
         is_bazel_target_of(logged, test);
}

bool tells_of(const Failure& logged, const Failure& seen) {
  if (signature_of(logged) == signature_of(seen)) return true;
  if (!is_same_kind(logged, seen)) return false;
  if (logged.kind == FailureKind::exit_status && seen.kind != FailureKind::exit_status) return true;
  return agrees(base_name(logged.file), base_name(seen.file)) &&
         (logged.line == 0 || logged.line == seen.line) && agrees(logged.function, seen.function) &&
         agrees(logged.expression, seen.expression) && agrees(words_of(logged), words_of(seen));
}

Result<std::vector<LoggedFailure>> logged_failures_of(const Test& test, const CiLog& log) {
  std::vector<LoggedFailure> found;
  for (const LoggedFailure& logged : log.failures)
    if (is_named(logged, test)) found.push_back(logged);
  const bool names_nothing = std::ranges::all_of(log.failures, has_no_name);
  if (found.empty() && names_nothing) found = log.failures;
  if (found.empty()) return shows_no_failure(log, to_string(test.id));
  return found;
}

Result<std::vector<size_t>> tests_named_in(const CiLog& log, const std::vector<Test>& tests) {
  std::vector<size_t> named;
  for (const LoggedFailure& logged : log.failures)
    for (size_t i = 0; i < tests.size(); ++i)
      if (is_named(logged, tests[i]) && std::ranges::find(named, i) == named.end())
        named.push_back(i);
  if (!named.empty()) return named;
  if (!log.failures.empty() && std::ranges::all_of(log.failures, has_no_name))
    return usage_error("the log shows a failure and does not say of which test", "",
                       "name the test on the command line");
  return shows_no_failure(log, "a test of this target");
}

namespace {

using State = LogSection::State;
using EndKind = LoggedEnd::Kind;

constexpr size_t most_section_bytes = 8 * 1024 * 1024;

// The line by which the reader of a framework's output knows that it printed its summary.
std::string_view last_line_of(Framework framework) {
  switch (framework) {
    case Framework::gtest:
      return "[----------]\n[  PASSED  ] 0 tests.\n";
    case Framework::catch2:
      return "test cases: 1 | 1 failed\n";
    case Framework::doctest:
      return "[doctest] Status: FAILURE!\n";
    case Framework::boost_test:
      return "*** 1 failure is detected\n";
    default:
      return "";
  }
}

ProcessResult process_of(std::string output, const LoggedEnd& end) {
  ProcessResult process;
  process.end = ProcessResult::End::exited;
  process.code = 1;
  if (end.kind == EndKind::signalled) {
    process.end = ProcessResult::End::signalled;
    process.code = end.signal;
  }
  if (end.kind == EndKind::timed_out) process.end = ProcessResult::End::timed_out;
  process.output.total = output.size();
  process.output.head = std::move(output);
  return process;
}

Outcome outcome_of(std::string output, Framework framework, const LoggedEnd& end) {
  Test test;
  test.framework = framework;
  test.is_entry = true;
  return read_outcome(test, process_of(std::move(output), end));
}

std::string text_of(std::span<const LogLine> lines) {
  std::string text;
  for (const LogLine& line : lines) {
    if (text.size() + line.text.size() > most_section_bytes) break;
    text.append(line.text).push_back('\n');
  }
  return text;
}

bool has_signal(const std::vector<Failure>& failures) {
  return std::ranges::any_of(
      failures, [](const Failure& failure) { return failure.kind == FailureKind::signal; });
}

// A run that passes may report these.
bool is_said_in_passing(const Failure& failure) {
  return failure.kind == FailureKind::undefined_behaviour_sanitizer ||
         failure.kind == FailureKind::valgrind;
}

// Reads the sections of one program in order.
class Reader {
 public:
  Reader(const LoggedProgram& program, CiLog& log)
      : program_(program), log_(log), sections_(sections_in(program.lines)) {}

  void run() {
    log_.shows_passing_runs |= sections_.shows_passing_runs;
    for (at_ = 0; at_ < sections_.all.size(); ++at_) read(sections_.all[at_]);
    for (const LogSection& section : sections_.all) read_name(section);
    if (!found_) read_whole();
  }

 private:
  void read(const LogSection& section) {
    switch (section.state) {
      case State::passed:
        return read_passed(section);
      case State::failed:
        return read_failed(section);
      case State::unfinished:
        return read_unfinished(section);
      case State::loose:
        return read_loose(section);
      case State::named:
        return;
    }
  }

  // A sanitizer's report fails the run, and the framework does not know.
  void read_passed(const LogSection& section) {
    if (program_.end.kind == EndKind::passed) return;
    const std::string text = text_of(section.lines);
    if (!contains(text, "Sanitizer: ")) return;
    auto failures = failures_in(text, section.framework, {}, true);
    std::erase_if(failures, [](const Failure& failure) {
      return !is_sanitizer(failure.kind) || is_said_in_passing(failure);
    });
    if (!failures.empty()) add(section, std::move(failures));
  }

  // What made the program abort comes before the framework's report of the signal.
  void read_failed(const LogSection& section) {
    std::string text = text_of(section.lines);
    auto failures = failures_in(text, section.framework, {}, true);
    if (has_signal(failures) && at_ > 0 && sections_.all[at_ - 1].state == State::loose)
      failures =
          failures_in(text_of(sections_.all[at_ - 1].lines) + text, section.framework, {}, true);
    add(section, std::move(failures));
  }

  bool next_reports_a_signal() const {
    if (at_ + 1 == sections_.all.size()) return false;
    const LogSection& next = sections_.all[at_ + 1];
    return next.state == State::failed &&
           has_signal(failures_in(text_of(next.lines), next.framework, {}, true));
  }

  void read_unfinished(const LogSection& section) {
    const bool is_last = at_ + 1 == sections_.all.size();
    const bool told = section.end.kind != EndKind::unknown;
    const LoggedEnd end = !told && is_last ? program_.end : section.end;
    add(section, failures_in(text_of(section.lines), section.framework, end, false));
  }

  void read_loose(const LogSection& section) {
    if (program_.end.kind == EndKind::passed) return;
    auto failures = failures_in(text_of(section.lines), Framework::command, {}, false);
    const bool alone = sections_.all.size() == 1;
    if (failures.empty() || (!alone && std::ranges::all_of(failures, is_said_in_passing))) return;
    if (!next_reports_a_signal()) add(section, std::move(failures));
  }

  // A summary repeats what was said before, or is all that was said.
  void read_name(const LogSection& section) {
    if (section.state == State::named && !named_.contains(section.test)) add(section, {});
  }

  // No test in particular failed: the program did.
  void read_whole() {
    const bool is_entry = program_.end.kind != EndKind::unknown;
    const LoggedEnd end = is_entry ? program_.end : sections_.death;
    if (end.kind == EndKind::passed || end.kind == EndKind::unknown) return;
    LogSection whole;
    whole.lines = program_.lines;
    if (end.kind == EndKind::not_started) {
      Failure failure;
      failure.kind = FailureKind::not_started;
      return add(whole, {failure});
    }
    Outcome outcome = outcome_of(text_of(whole.lines), Framework::command, end);
    for (Failure& failure : outcome.failures)  // the status was made up
      if (failure.kind == FailureKind::exit_status) failure.expression.clear();
    add(whole, std::move(outcome.failures));
  }

  void add(const LogSection& section, std::vector<Failure> failures) {
    found_ = true;
    named_.insert(section.test);
    if (log_.failures.size() == most_logged_failures) return;
    LoggedFailure logged;
    logged.test = printable(shorten(section.test, most_logged_name_bytes));
    logged.entry = printable(shorten(program_.entry, most_logged_name_bytes));
    logged.framework = section.framework;
    logged.failures = std::move(failures);
    logged.line = section.lines.empty() ? program_.line : section.lines.front().number;
    log_.failures.push_back(std::move(logged));
  }

  const LoggedProgram& program_;
  CiLog& log_;
  const LogSections sections_;
  size_t at_ = 0;
  std::set<std::string> named_;  // tests
  bool found_ = false;
};

}  // namespace

std::vector<Failure> failures_in(std::string text, Framework framework, const LoggedEnd& end,
                                 bool is_complete) {
  if (is_complete) text += last_line_of(framework);
  std::vector<Failure> failures = outcome_of(std::move(text), framework, end).failures;
  if (!failures.empty() && failures.front().kind == FailureKind::exit_status) failures.clear();
  return failures;
}

void read_program(const LoggedProgram& program, CiLog& log) {
  if (program.end.kind == EndKind::passed) log.shows_passing_runs = true;
  Reader(program, log).run();
}

}  // namespace unflake
