#pragma once

#include "agent/raw.h"
#include "protocol/agent_protocol.h"

namespace unflake::agent {

// Gives up after a while: the holder may be this thread, interrupted by a signal. In a forked
// child a holder of the parent process is nobody.
class SpinLock {
 public:
  class Hold {
   public:
    explicit Hold(SpinLock& lock) : lock_(lock), held_(lock.take()) {}
    ~Hold() {
      if (held_) lock_.holder_.store(0);
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
    const auto process = static_cast<uint32_t>(raw_syscall(__NR_getpid));
    for (int tries = 0; tries < 100'000; ++tries) {
      const uint32_t holder = holder_.load();
      if (holder != process && holder_.change(holder, process)) return true;
      __builtin_ia32_pause();
    }
    return false;
  }

  protocol::Shared<uint32_t> holder_;  // its process; 0: none
};

}  // namespace unflake::agent
