#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "util/unique_fd.h"

namespace unflake {

// Readable once the process has ended. (The header of glibc 2.36 declares its own wrapper without C
// linkage.)
inline UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace unflake
