#pragma once

#include <string_view>

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
  explicit FdSink(int fd) : fd_(fd) {}
  void write(std::string_view bytes) override;
  int error() const { return error_; }  // errno of the write that failed; 0: none did

 private:
  int fd_;
  int error_ = 0;
};

}  // namespace unflake
