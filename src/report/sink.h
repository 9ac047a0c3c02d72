#pragma once

#include <string_view>

#include "util/duration.h"
#include "util/unique_fd.h"

namespace unflake {

// Where a consumer of events puts its bytes.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void write(std::string_view bytes) = 0;
};

// Writes to a descriptor that somebody else owns. When the reader goes away or the disk is full,
// what follows is dropped: a session is worth more than its display. SIGPIPE must be ignored.
class FdSink : public Sink {
 public:
  // `give_up` becomes readable when somebody asks to stop. A reader that makes no room within
  // `grace` from then on, such as a stopped pager, gets no more: it must not hold up the end.
  explicit FdSink(int fd, int give_up = -1, Duration grace = std::chrono::seconds(1));
  void write(std::string_view bytes) override;
  int error() const { return error_; }  // errno of the write that failed; 0: none did

 private:
  bool wait_for_room() const;
  size_t room() const;

  UniqueFd terminal_;  // `fd` opened once more, when it is one
  int fd_;
  int give_up_;
  Duration grace_;
  int error_ = 0;
  bool gave_up_ = false;
};

}  // namespace unflake
