#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "report/progress.h"
#include "report/sink.h"

namespace unflake {

// The last line of a terminal, rewritten in place while tests run. Every change of the screen is
// one write, so that nothing flickers; lines are printed above the bar.
class LiveBar {
 public:
  // The width is asked for at every update, because windows are resized.
  LiveBar(Sink& sink, bool enabled, std::function<int()> width);
  ~LiveBar() { hide(); }
  LiveBar(const LiveBar&) = delete;
  LiveBar& operator=(const LiveBar&) = delete;

  void refresh(const Progress& progress, Duration now);  // draws at most ten times a second
  void print(std::string_view lines);
  void hide();

 private:
  Sink& sink_;
  bool enabled_;
  std::function<int()> width_;
  std::string shown_;
  std::optional<Duration> drawn_at_;
};

// "[ 12 s] 34/700 runs, 2 failures | server_test:Server.Push 1.20 s, +3" in at most `width`
// columns.
std::string bar_text(const Progress& progress, Duration now, size_t width);

}  // namespace unflake
