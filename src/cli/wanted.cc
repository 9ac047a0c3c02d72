#include "cli/reproduce_parts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

#include "output/ci_log/ci_log.h"
#include "output/read_outcome.h"
#include "store/store.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

// From a pipe, this many times as much as is kept.
constexpr uint64_t most_read_of_a_pipe = 64;

Error cannot_read(const std::string& path, int error) {
  return usage_error(fmt::format("the log cannot be read: {}", strerror(error)), path,
                     error == EISDIR ? "name a file in it" : "check the path");
}

// Keeps the end of what is added, and lets it grow to twice as much before it is cut.
class Tail {
 public:
  explicit Tail(uint64_t most) : most_(most) {}

  void add(std::string_view bytes) {
    file_.text += bytes;
    if (file_.text.size() > 2 * most_) cut();
  }

  LogFile finish() {
    if (file_.text.size() > most_) cut();
    return std::move(file_);
  }

 private:
  void cut() { leave_out(file_.text.size() - most_); }

  void leave_out(uint64_t bytes) {
    file_.text.erase(0, bytes);
    file_.bytes_left_out += bytes;
  }

  uint64_t most_;
  LogFile file_;
};

Result<LogFile> read_end(int fd, const std::string& path, uint64_t most) {
  Tail tail(most);
  std::string buffer(1 << 20, '\0');
  for (uint64_t total = 0;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(path, errno);
    if (got == 0) return tail.finish();
    tail.add(std::string_view(buffer).substr(0, static_cast<size_t>(got)));
    total += static_cast<uint64_t>(got);
    if (total > most_read_of_a_pipe * most)
      return usage_error("the log does not end", path, "give a file, or a program that ends");
  }
}

// Goes to where the last `most` bytes of a file begin, and returns how much that leaves out.
uint64_t skip_start(int fd, uint64_t most) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size <= most) return 0;
  const off_t start = static_cast<off_t>(size - most);
  return lseek(fd, start, SEEK_SET) == start ? size - most : 0;
}

void start_at_a_line(LogFile& file) {
  const size_t end = file.text.find('\n');
  if (end == std::string::npos) return;
  file.text.erase(0, end + 1);
  file.bytes_left_out += end + 1;
}

}  // namespace

Result<LogFile> load_log(const std::string& path, uint64_t most_bytes) {
  const bool is_stdin = path == "-";
  const UniqueFd opened(is_stdin ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const int fd = is_stdin ? STDIN_FILENO : opened.get();
  if (fd < 0) return cannot_read(path, errno);
  const uint64_t skipped = is_stdin ? 0 : skip_start(fd, most_bytes);
  auto file = read_end(fd, path, most_bytes);
  if (!file) return file;
  file->bytes_left_out += skipped;
  if (file->bytes_left_out > 0) start_at_a_line(*file);
  return file;
}

namespace {

constexpr FailureKind kinds[] = {
    FailureKind::assertion,        FailureKind::exception,
    FailureKind::signal,           FailureKind::exit_status,
    FailureKind::output_pattern,   FailureKind::unexpected_pass,
    FailureKind::timeout,          FailureKind::address_sanitizer,
    FailureKind::thread_sanitizer, FailureKind::undefined_behaviour_sanitizer,
    FailureKind::memory_sanitizer, FailureKind::leak_sanitizer,
    FailureKind::valgrind};

std::optional<Failure> line_in(const std::string& word) {
  const size_t colon = word.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.file = word.substr(0, colon);
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + colon + 1, end, failure.line);
  if (error != std::errc() || stop != end || failure.line < 1) return std::nullopt;
  return failure;
}

std::vector<SignatureSummary> failures_in(const StoreAddress& history, const TestId& test) {
  auto store = open_store_to_read(history);
  if (!store) return {};
  auto summary = (*store)->summarise_test(test);
  if (!summary || !*summary) return {};
  return std::move((*summary)->signatures);
}

std::optional<Failure> in_history(const std::string& signature, const TestId& test,
                                  const StoreAddress& history) {
  const std::vector<SignatureSummary> known = failures_in(history, test);
  const auto found = std::ranges::find(known, signature, &SignatureSummary::signature);
  if (found == known.end()) return std::nullopt;
  return found->failure;
}

}  // namespace

std::set<std::string> known_signatures(const TestId& test, const StoreAddress& history) {
  std::set<std::string> known;
  for (const SignatureSummary& failure : failures_in(history, test))
    known.insert(failure.signature);
  return known;
}

Result<Wanted> wanted_by_word(const std::string& word, const TestId& test,
                              const StoreAddress& history) {
  if (is_signature(word)) return Wanted{word, in_history(word, test, history)};
  if (auto failure = line_in(word)) return Wanted{"", failure};
  for (const FailureKind kind : kinds) {
    Failure failure;
    failure.kind = kind;
    if (to_string(kind) == word) return Wanted{"", failure};
  }
  std::vector<std::string> names;
  for (const FailureKind kind : kinds) names.emplace_back(to_string(kind));
  return usage_error(
      "this does not name a failure: " + shell_quote(word), "--failure",
      "give the 16 digits that `unflake history` shows, FILE:LINE of a check, or one "
      "of " +
          join(names, ", "));
}

Result<std::vector<Wanted>> wanted_by_log(const Test& test, const CiLog& log) {
  const auto logged = logged_failures_of(test, log);
  if (!logged) return logged.error();
  std::vector<Wanted> wanted;
  for (const LoggedFailure& failure : *logged) {
    Wanted one;
    if (!failure.failures.empty())
      one = {signature_of(failure.failures.front()), failure.failures.front()};
    const auto same = [&](const Wanted& other) { return other.signature == one.signature; };
    if (std::ranges::none_of(wanted, same)) wanted.push_back(std::move(one));
  }
  return wanted;
}

Result<std::vector<Wanted>> wanted_by_output(const Test& test, const std::string& output,
                                             const Error& otherwise) {
  ProcessResult process;
  process.code = 1;
  process.output.head = output;
  process.output.total = output.size();
  const Outcome outcome = read_outcome(test, process);
  if (outcome.failures.empty() || outcome.failures.front().kind == FailureKind::exit_status)
    return otherwise;
  return std::vector{Wanted{outcome.signature, outcome.failures.front()}};
}

}  // namespace unflake
