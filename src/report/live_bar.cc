#include "report/live_bar.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/columns.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view erase_line = "\r\x1b[K";
constexpr Duration between_updates = 100ms;
constexpr size_t shortest_label = 12;

std::string elapsed_text(const RunningTest& test, Duration now) {
  return fmt::format(" {}", format_duration(now - test.since));
}

std::string more_text(size_t count) {
  return count == 0 ? "" : fmt::format(", +{}", count);
}

// The running tests that fit, longest first; the first one is shortened rather than left out.
std::string running_text(const std::vector<RunningTest>& running, Duration now, size_t width) {
  std::string text;
  for (size_t i = 0; i < running.size(); ++i) {
    const std::string separator = i == 0 ? " | " : ", ";
    const std::string elapsed = elapsed_text(running[i], now);
    const size_t taken = columns(text) + separator.size() + elapsed.size() +
                         more_text(running.size() - i - 1).size();
    const size_t room = width > taken ? width - taken : 0;
    const bool whole = columns(running[i].label) <= room;
    if (!whole && (i > 0 || room < shortest_label))
      return i == 0 ? "" : text + more_text(running.size() - i);
    text += separator + cut_to_columns(running[i].label, room) + elapsed;
  }
  return text;
}

}  // namespace

std::string bar_text(const Progress& progress, Duration now, size_t width) {
  const std::string head =
      fmt::format("[{}] {}", format_duration(progress.elapsed(now)), progress.counts());
  const size_t room = width - std::min(width, columns(head));
  return cut_to_columns(head + running_text(progress.running(), now, room), width);
}

LiveBar::LiveBar(Sink& sink, bool enabled, std::function<int()> width)
    : sink_(sink), enabled_(enabled && width), width_(std::move(width)) {}

void LiveBar::refresh(const Progress& progress, Duration now) {
  if (!enabled_) return;
  if (drawn_at_ && now - *drawn_at_ < between_updates) return;
  drawn_at_ = now;
  // The last column stays free: writing there makes some terminals begin a new line.
  const int usable = std::max(1, width_() - 1);
  shown_ = bar_text(progress, now, static_cast<size_t>(usable));
  sink_.write(fmt::format("\r{}\x1b[K", shown_));
}

void LiveBar::print(std::string_view lines) {
  if (lines.empty()) return;
  if (shown_.empty())
    sink_.write(lines);
  else
    sink_.write(fmt::format("{}{}{}", erase_line, lines, shown_));
}

void LiveBar::hide() {
  if (!shown_.empty()) sink_.write(erase_line);
  shown_.clear();
  drawn_at_.reset();
}

}  // namespace unflake
