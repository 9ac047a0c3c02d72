#pragma once

#include <optional>

#include "util/files.h"

namespace unflake {

enum class Interrupt { stop, status };

// SIGINT, SIGTERM and SIGHUP ask to stop, SIGUSR1 asks for the live state. While an object of this
// class lives they are held back and read here, so that they arrive between two steps and never in
// the middle of one.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  int fd() const { return fd_.get(); }
  std::optional<Interrupt> next();                  // does not wait
  int stop_fd() const { return stop_fd_.get(); }    // readable once somebody has asked to stop
  int stop_signal() const { return stop_signal_; }  // the first that asked to stop; 0 for none

 private:
  UniqueFd fd_;
  UniqueFd stop_signals_;  // readable while a signal to stop waits
  UniqueFd stop_seen_;     // readable ever after
  UniqueFd stop_fd_;
  int stop_signal_ = 0;
};

}  // namespace unflake
