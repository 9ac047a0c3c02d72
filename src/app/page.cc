#include "app/page.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "app/command_line.h"

namespace unflake {

int Page::write_out() const {
  const bool written = std::fwrite(text_.data(), 1, text_.size(), stdout) == text_.size();
  if ((written && std::fflush(stdout) == 0) || errno == EPIPE)
    return static_cast<int>(ExitCode::success);
  return report_error(
      internal_error(fmt::format("standard output cannot be written: {}", std::strerror(errno))));
}

}  // namespace unflake
