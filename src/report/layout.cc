#include "report/layout.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <span>

#include "util/text.h"
#include "util/time.h"

namespace unflake {
namespace {

constexpr size_t status_columns = 13;  // CRASH SIGSEGV
constexpr size_t longest_line = 500;

std::string_view escape_sequence(Tone tone) {
  switch (tone) {
    case Tone::plain:
      return "\x1b[1m";
    case Tone::good:
      return "\x1b[1;32m";
    case Tone::bad:
      return "\x1b[1;31m";
    case Tone::doubtful:
      return "\x1b[1;33m";
    case Tone::faint:
      return "\x1b[36m";
  }
  return "";
}

}  // namespace

std::string Style::paint(Tone tone, std::string_view text) const {
  if (!colour_) return std::string(text);
  return fmt::format("{}{}\x1b[0m", escape_sequence(tone), text);
}

std::string status_line(const Style& style, Tone tone, std::string_view status,
                        std::optional<Duration> duration, std::string_view text) {
  return status_line(style, tone, status,
                     duration ? format_known_duration(*duration) : std::string(), text);
}

std::string status_line(const Style& style, Tone tone, std::string_view status,
                        std::string_view duration, std::string_view text) {
  const size_t indent = status_columns - std::min(status_columns, status.size());
  std::string line(indent, ' ');
  line += style.paint(tone, status);
  if (!duration.empty()) line += fmt::format(" [{:>7}]", duration);
  return fmt::format("{} {}\n", line, text);
}

std::string detail_line(std::string_view text) {
  return fmt::format("{:{}} {}\n", "", status_columns, text);
}

std::string one_line(std::string_view text) {
  return shorten(printable(shorten(text, longest_line)), longest_line);
}

std::string counted(long long number, std::string_view singular) {
  return fmt::format("{} {}{}", number, singular, number == 1 ? "" : "s");
}

namespace {

// A terminal is ready when it has room for a byte, and makes the writer of two wait. The flag
// O_NONBLOCK would help, and belongs to everybody who shares the open file, the shell among them.
UniqueFd open_again_if_terminal(int fd) {
  if (!::isatty(fd)) return {};
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

int poll_through_signals(std::span<pollfd> waiting, int timeout) {
  int ready = 0;
  do ready = ::poll(waiting.data(), waiting.size(), timeout);
  while (ready < 0 && errno == EINTR);
  return ready;
}

}  // namespace

FdSink::FdSink(int fd, int give_up, Duration grace) : fd_(fd), give_up_(give_up), grace_(grace) {
  if (give_up >= 0) terminal_ = open_again_if_terminal(fd);
  if (terminal_) fd_ = terminal_.get();
}

void FdSink::write(std::string_view bytes) {
  while (error_ == 0 && !gave_up_ && !bytes.empty()) {
    gave_up_ = !wait_for_room();
    if (gave_up_) return;
    const std::string_view piece = bytes.substr(0, room());
    const ssize_t written = ::write(fd_, piece.data(), piece.size());
    if (written >= 0)
      bytes.remove_prefix(static_cast<size_t>(written));
    else if (errno != EINTR && errno != EAGAIN)
      error_ = errno;
  }
}

// Also true when a write would fail at once.
bool FdSink::wait_for_room() const {
  pollfd waiting[] = {{fd_, POLLOUT, 0}, {give_up_, POLLIN, 0}};  // poll() ignores a -1
  poll_through_signals(waiting, -1);
  if (waiting[0].revents != 0) return true;
  const auto grace = std::chrono::duration_cast<std::chrono::milliseconds>(grace_);
  return poll_through_signals({waiting, 1}, static_cast<int>(grace.count())) != 0;
}

// How much a descriptor that is ready takes without making the writer wait.
size_t FdSink::room() const {
  struct stat status {};
  const bool known = ::fstat(fd_, &status) == 0;
  if (terminal_ || give_up_ < 0 || !known || S_ISREG(status.st_mode)) return SIZE_MAX;
  int unread = 0;
  const bool is_empty_pipe =
      S_ISFIFO(status.st_mode) && ::ioctl(fd_, FIONREAD, &unread) == 0 && unread == 0;
  const int capacity = is_empty_pipe ? ::fcntl(fd_, F_GETPIPE_SZ) : 0;
  return static_cast<size_t>(std::max(capacity, PIPE_BUF));
}

namespace {

struct Range {
  uint32_t first, last;
};

constexpr std::array<Range, 6> zero_width{{{0x300, 0x36F},
                                           {0x200B, 0x200F},
                                           {0x202A, 0x202E},
                                           {0x2060, 0x2064},
                                           {0x20D0, 0x20FF},
                                           {0xFE00, 0xFE0F}}};
constexpr std::array<Range, 11> double_width{{{0x1100, 0x115F},
                                              {0x2E80, 0x303E},
                                              {0x3041, 0xA4CF},
                                              {0xAC00, 0xD7A3},
                                              {0xF900, 0xFAFF},
                                              {0xFE30, 0xFE6F},
                                              {0xFF00, 0xFF60},
                                              {0xFFE0, 0xFFE6},
                                              {0x1F300, 0x1F64F},
                                              {0x1F680, 0x1F9FF},
                                              {0x20000, 0x3FFFD}}};

template <size_t n>
bool in(const std::array<Range, n>& ranges, uint32_t character) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
    return character >= range.first && character <= range.last;
  });
}

size_t width_of(uint32_t character) {
  if (in(zero_width, character)) return 0;
  return in(double_width, character) ? 2 : 1;
}

// Removes the first character from `text`; a byte that starts none counts as one character.
uint32_t take_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  uint32_t character = length == 1 ? first : first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < std::min(length, text.size()); ++i)
    character = character << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  text.remove_prefix(std::min(length, text.size()));
  return character;
}

// Bytes of the longest start of `text` that takes at most `most` columns.
size_t bytes_within(std::string_view text, size_t most) {
  std::string_view rest = text;
  size_t taken = 0, used = 0;
  while (!rest.empty()) {
    used += width_of(take_character(rest));
    if (used > most) break;
    taken = text.size() - rest.size();
  }
  return taken;
}

}  // namespace

size_t columns(std::string_view text) {
  size_t total = 0;
  while (!text.empty()) total += width_of(take_character(text));
  return total;
}

std::string cut_to_columns(std::string_view text, size_t most) {
  if (columns(text) <= most) return std::string(text);
  if (most == 0) return "";
  return std::string(text.substr(0, bytes_within(text, most - 1))) + "…";
}

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = one_line(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths(rows_.front().size());
  for (const auto& row : rows_)
    for (size_t i = 0; i < std::min(row.size(), widths.size()); ++i)
      widths[i] = std::max(widths[i], columns(row[i]));
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += "  " + row[i];
      const bool last = i + 1 == row.size();
      if (!last) line.append(widths[i] - std::min(widths[i], columns(row[i])), ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

namespace {

bool starts_with_unit(std::string_view text) {
  for (const std::string_view unit : {"%", "us", "ms", "s"})
    if (text.starts_with(unit) && (text.size() == unit.size() || !is_letter(text[unit.size()])))
      return true;
  return false;
}

}  // namespace

std::string html_text(std::string_view text, size_t most) {
  std::string safe;
  for (const char c : printable(shorten(text, most))) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string html_prose(std::string_view text, size_t most) {
  const std::string safe = html_text(text, most);
  std::string prose;
  size_t at = 0;
  for (;;) {
    const size_t open = safe.find('`', at);
    const size_t close = open == std::string::npos ? open : safe.find('`', open + 1);
    if (close == std::string::npos) return prose + safe.substr(at);
    const std::string inside = safe.substr(open + 1, close - open - 1);
    const bool is_code = !inside.empty() && inside.front() != ' ' && inside.back() != ' ';
    prose += safe.substr(at, open - at);
    prose += is_code ? "<code>" + inside + "</code>" : "`";
    at = is_code ? close + 1 : open + 1;
  }
}

std::string html_cell(std::string_view text, size_t most) {
  constexpr std::string_view marks = "/.:_";  // none of them is in an entity
  const std::string safe = html_text(text, most);
  std::string cell;
  for (size_t i = 0; i < safe.size(); ++i) {
    const std::string_view rest = std::string_view(safe).substr(i + 1);
    const bool is_after_digit = i > 0 && safe[i - 1] >= '0' && safe[i - 1] <= '9';
    if (safe[i] == ' ' && is_after_digit && starts_with_unit(rest))
      cell += "&#160;";
    else
      cell += safe[i];
    if (marks.find(safe[i]) != std::string_view::npos && !rest.empty() && is_letter(rest[0]))
      cell += "<wbr/>";
  }
  return cell;
}

namespace {

// Longer than any run of backticks inside: nothing in the text can end the block it is in.
std::string fence_for(std::string_view text, size_t shortest) {
  size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(std::max(shortest, longest + 1), '`');
}

}  // namespace

std::string markdown_code(std::string_view text, size_t most) {
  const std::string safe = printable(shorten(trim(text), most));
  if (safe.empty()) return "-";
  std::string inside;
  for (const char c : safe) {
    if (c == '|') inside += '\\';  // a table is cut into cells before anything else is read
    inside += c;
  }
  const std::string fence = fence_for(inside, 1);
  const bool touches = inside.front() == '`' || inside.back() == '`';
  const std::string gap = touches ? " " : "";
  return fence + gap + inside + gap + fence;
}

std::string markdown_block(std::string_view text, size_t most) {
  const std::string safe = printable(shorten(text, most), LineFeeds::keep);
  const std::string fence = fence_for(safe, 3);
  return fence + "text\n" + safe + (safe.ends_with('\n') ? "" : "\n") + fence + "\n";
}

std::string html_list(const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = "<ul>\n";
  for (const std::string& line : lines) text += "<li>" + html_prose(line) + "</li>\n";
  return text + "</ul>\n";
}

std::string html_list(const char* heading, const std::vector<std::string>& lines) {
  return lines.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", heading, html_list(lines));
}

}  // namespace unflake
