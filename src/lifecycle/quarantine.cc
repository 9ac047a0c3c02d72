#include "lifecycle/quarantine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <tuple>

#include "lifecycle/gate.h"
#include "stats/rates.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

auto order_of(const QuarantineEntry& entry) {
  return std::tie(entry.test, entry.signature);
}

bool comes_before(const QuarantineEntry& a, const QuarantineEntry& b) {
  return order_of(a) < order_of(b);
}

struct ByTest {
  bool operator()(const QuarantineEntry& entry, const TestId& test) const {
    return entry.test < test;
  }
  bool operator()(const TestId& test, const QuarantineEntry& entry) const {
    return test < entry.test;
  }
};

constexpr std::string_view first_lines =
    "# Known failures: their tests run, and do not fail builds up to the day of `expires`.\n"
    "# `unflake quarantine --help` says more.\n"
    "format = 1\n";

std::string with_line_end(std::string text) {
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return text;
}

std::string spliced(std::string_view text, size_t from, size_t to, const std::string& with) {
  return std::string(text.substr(0, from)) + with + std::string(text.substr(to));
}

std::string appended(std::string text, const std::string& block) {
  text = with_line_end(std::move(text));
  if (text.empty()) text = first_lines;
  return text + "\n" + block;
}

// What was written must say what was intended, whatever was in the file and in the entry.
Result<std::string> checked(std::string text, const std::string& path,
                            const QuarantineEntry& entry) {
  const auto written = parse_quarantine(text, path);
  if (!written) return written.error();
  const QuarantineEntry* found = written->find(entry.test, entry.signature);
  if (found && found->expires == entry.expires) return text;
  return usage_error("the test cannot be named in the quarantine: its name is not valid text", path,
                     "rename the test");
}

}  // namespace

Quarantine::Quarantine(std::vector<QuarantineEntry> entries) : entries_(std::move(entries)) {
  std::ranges::sort(entries_, comes_before);
}

std::span<const QuarantineEntry> Quarantine::of(const TestId& test) const {
  const auto [first, last] = std::equal_range(entries_.begin(), entries_.end(), test, ByTest());
  return {first, last};
}

const QuarantineEntry* Quarantine::find(const TestId& test, std::string_view signature) const {
  for (const QuarantineEntry& entry : of(test))
    if (entry.signature == signature) return &entry;
  return nullptr;
}

std::optional<TestId> test_id_from(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size())
    return std::nullopt;
  return TestId{std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

Result<Quarantine> parse_quarantine(std::string_view text, const std::string& path) {
  auto blocks = read_quarantine_blocks(text, path);
  if (!blocks) return blocks.error();
  std::vector<QuarantineEntry> entries;
  for (QuarantineBlock& block : *blocks) entries.push_back(std::move(block.entry));
  return Quarantine(std::move(entries));
}

Result<std::string> with_entry(std::string_view text, const std::string& path,
                               const QuarantineEntry& entry) {
  const auto blocks = read_quarantine_blocks(text, path);
  if (!blocks) return blocks.error();
  const std::string block = quarantine_block_text(entry);
  const auto same = std::ranges::find_if(
      *blocks, [&](const QuarantineBlock& old) { return order_of(old.entry) == order_of(entry); });
  if (same != blocks->end()) {
    if (same->entry == entry) return std::string(text);
    return checked(spliced(text, same->header, same->end, block), path, entry);
  }
  const auto next = std::ranges::find_if(
      *blocks, [&](const QuarantineBlock& old) { return comes_before(entry, old.entry); });
  if (next != blocks->end())
    return checked(spliced(text, next->begin, next->begin, block + "\n"), path, entry);
  return checked(appended(std::string(text), block), path, entry);
}

Result<std::string> without_entries(std::string_view text, const std::string& path,
                                    const std::function<bool(const QuarantineEntry&)>& goes) {
  const auto blocks = read_quarantine_blocks(text, path);
  if (!blocks) return blocks.error();
  std::string left;
  size_t kept_up_to = 0;
  for (const QuarantineBlock& block : *blocks) {
    if (!goes(block.entry)) continue;
    left += text.substr(kept_up_to, block.begin - kept_up_to);
    kept_up_to = std::min(text.find_first_not_of("\r\n", block.end), text.size());
  }
  if (kept_up_to == 0) return std::string(text);
  left += text.substr(kept_up_to);
  if (kept_up_to == text.size())
    while (left.ends_with("\n\n")) left.pop_back();
  return left;
}

namespace {

Note expiry_warning(const QuarantineEntry& entry, Day today) {
  const std::string test = printable(to_string(entry.test));
  const auto days = (entry.expires - today).count();
  Note note;
  note.level = Note::Level::warning;
  if (days < 0)
    note.text = fmt::format(
        "the quarantine of {} for {} expired after {}: that failure now fails "
        "the build",
        test, entry.signature, format_day(entry.expires));
  else
    note.text = fmt::format("the quarantine of {} for {} expires {} ({})", test, entry.signature,
                            days == 0   ? "today"
                            : days == 1 ? "tomorrow"
                                        : fmt::format("in {} days", days),
                            format_day(entry.expires));
  note.next = days < 0 ? "`unflake quarantine expire` takes out what has expired"
                       : "fix the test, or extend it with `unflake quarantine add`";
  return note;
}

// A CTest entry may be opened into cases in one session and not in the next.
bool is_part_of(std::string_view part, std::string_view whole) {
  if (!part.starts_with(whole)) return false;
  const unsigned char next = part.size() == whole.size() ? '/' : part[whole.size()];
  return std::isalnum(next) == 0 && next != '_';
}

// Lifted and expired are the ends of a time in quarantine.
std::string end_text(const LifecycleStep& end) {
  if (end.kind == LifecycleStep::Kind::expired) return "expired";
  std::string text = "lifted";
  if (!end.commit.empty()) text += " as fixed by " + printable(end.commit);
  if (!end.reason.empty()) text += fmt::format(" ({})", printable(end.reason));
  return text;
}

bool is_about(const LifecycleStep& step, const TestId& test, std::string_view signature) {
  using Kind = LifecycleStep::Kind;
  const bool of_quarantine =
      step.kind == Kind::quarantined || step.kind == Kind::lifted || step.kind == Kind::expired;
  return of_quarantine && step.test == test &&
         (step.signature.empty() || step.signature == signature);
}

}  // namespace

std::vector<Note> expiry_warnings(const Quarantine& quarantine, Day today,
                                  const std::string& target, int days) {
  std::vector<Note> notes;
  for (const QuarantineEntry& entry : quarantine.entries()) {
    if (!target.empty() && entry.test.target != target) continue;
    if ((entry.expires - today).count() <= days) notes.push_back(expiry_warning(entry, today));
  }
  return notes;
}

std::vector<QuarantineEntry> gone_entries(const Quarantine& quarantine, const std::string& target,
                                          std::span<const std::string> listed) {
  std::vector<QuarantineEntry> gone;
  for (const QuarantineEntry& entry : quarantine.entries()) {
    if (entry.test.target != target) continue;
    const bool is_there = std::ranges::any_of(listed, [&](const std::string& name) {
      return is_part_of(name, entry.test.name) || is_part_of(entry.test.name, name);
    });
    if (!is_there) gone.push_back(entry);
  }
  return gone;
}

bool may_be_lifted(const CleanRuns& runs, const LiftRule& rule) {
  if (runs.clean < rule.least_runs || runs.earlier_failures == 0) return false;
  const double earlier =
      static_cast<double>(runs.earlier_failures) / static_cast<double>(runs.earlier_runs);
  return upper_bound_zero_failures(runs.clean) * rule.factor <= earlier;
}

std::string clean_runs_text(const CleanRuns& runs) {
  if (runs.clean == 0) return "no run since it was last seen";
  std::string text = fmt::format("0 of {} runs failed: rate below {} at 95 % confidence",
                                 runs.clean, percent(upper_bound_zero_failures(runs.clean)));
  if (runs.earlier_failures == 0) return text;
  const double earlier =
      static_cast<double>(runs.earlier_failures) / static_cast<double>(runs.earlier_runs);
  return text + fmt::format("; before, {} of {} did ({})", runs.earlier_failures, runs.earlier_runs,
                            percent(earlier));
}

std::string past_quarantine(std::span<const LifecycleStep> steps, const TestId& test,
                            std::string_view signature) {
  std::vector<const LifecycleStep*> past;
  for (const LifecycleStep& step : steps)
    if (is_about(step, test, signature)) past.push_back(&step);
  std::ranges::stable_sort(past, {}, [](const LifecycleStep* step) { return step->at; });
  std::vector<std::string> times;
  const LifecycleStep* begun = nullptr;
  for (const LifecycleStep* step : past) {
    if (step->kind == LifecycleStep::Kind::quarantined) {
      if (!begun) begun = step;
    } else if (begun) {
      times.push_back(fmt::format("{}..{}, {}", format_day(day_of(begun->at)),
                                  format_day(day_of(step->at)), end_text(*step)));
      begun = nullptr;
    }
  }
  if (times.empty() || begun) return "";
  return "was quarantined " + join(times, "; ");
}

namespace {

namespace fs = std::filesystem;

constexpr int most_tries = 100;

Error cannot(const char* what, const std::string& path, int error) {
  return usage_error(fmt::format("the quarantine cannot be {}: {}", what, std::strerror(error)),
                     path);
}

// Tells one content of a file from a later one.
struct FileState {
  ino_t inode = 0;
  off_t size = -1;
  timespec modified{};

  bool operator==(const FileState& other) const {
    return inode == other.inode && size == other.size && modified.tv_sec == other.modified.tv_sec &&
           modified.tv_nsec == other.modified.tv_nsec;
  }
};

FileState state_of(const struct stat& status) {
  return {status.st_ino, status.st_size, status.st_mtim};
}

FileState state_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? state_of(status) : FileState();
}

struct FileText {
  std::string text;
  FileState state;
};

Result<std::string> read_all(int fd, const std::string& path) {
  std::string text;
  char buffer[64 * 1024];
  for (;;) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot("read", path, errno);
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > (64u << 20)) return cannot("read", path, EFBIG);
  }
}

Result<FileText> read_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return FileText();
  if (!file) return cannot("read", path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return cannot("read", path, errno);
  auto text = read_all(file.get(), path);
  if (!text) return text.error();
  return FileText{std::move(*text), state_of(status)};
}

// The folder is what is locked: a lock file would be one more file to keep out of git, and a lock
// on the quarantine itself would be lost when it is replaced.
Result<UniqueFd> lock_folder_of(const std::string& path) {
  const fs::path folder = fs::absolute(path).parent_path();
  UniqueFd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) return cannot("written", path, errno);
  while (::flock(lock.get(), LOCK_EX) != 0)
    if (errno != EINTR) return cannot("locked", path, errno);
  return lock;
}

std::string behind_links(const std::string& path) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  return failed ? path : real.string();
}

}  // namespace

Result<Quarantine> load_quarantine(const std::string& path) {
  const auto file = read_file(path);
  if (!file) return file.error();
  return parse_quarantine(file->text, path);
}

Result<void> edit_quarantine(const std::string& given, const QuarantineEdit& edit) {
  const std::string path = behind_links(given);
  const auto lock = lock_folder_of(path);
  if (!lock) return lock.error();
  for (int i = 0; i < most_tries; ++i) {
    const auto old = read_file(path);
    if (!old) return old.error();
    const auto edited = edit(old->text);
    if (!edited) return edited.error();
    if (*edited == old->text) return {};
    // An editor does not ask for the lock.
    if (state_of(path) == old->state) return replace_file(path, *edited);
  }
  return usage_error("the quarantine is changed again and again by somebody else", path,
                     "try again later");
}

}  // namespace unflake
