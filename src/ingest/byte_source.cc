#include "ingest/byte_source.h"

#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace unflake {

ByteSource bytes_of_descriptor(int fd, std::string name) {
  return [fd, name = std::move(name)](std::span<char> into) -> Result<size_t> {
    for (;;) {
      const ssize_t count = ::read(fd, into.data(), into.size());
      if (count >= 0) return static_cast<size_t>(count);
      if (errno != EINTR)
        return usage_error(fmt::format("cannot be read: {}", ::strerror(errno)), name,
                           "check the file and its disk");
    }
  };
}

ByteSource bytes_of_text(std::string_view text) {
  return [text](std::span<char> into) mutable -> Result<size_t> {
    const size_t count = std::min(into.size(), text.size());
    std::copy_n(text.begin(), count, into.begin());
    text.remove_prefix(count);
    return count;
  };
}

}  // namespace unflake
