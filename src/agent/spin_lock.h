#pragma once

#include "protocol/agent_protocol.h"

namespace unflake::agent {

// Gives up after a while: the holder may be this very thread, interrupted by a signal.
class SpinLock {
 public:
  class Hold {
   public:
    explicit Hold(SpinLock& lock) : lock_(lock), held_(lock.take()) {}
    ~Hold() {
      if (held_) lock_.taken_.store(0);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    explicit operator bool() const { return held_; }

   private:
    SpinLock& lock_;
    const bool held_;
  };

 private:
  bool take() {
    for (int tries = 0; tries < 100'000; ++tries) {
      if (taken_.change(0, 1)) return true;
      __builtin_ia32_pause();
    }
    return false;
  }

  protocol::Shared<uint32_t> taken_;
};

}  // namespace unflake::agent
