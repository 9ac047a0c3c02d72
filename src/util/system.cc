#include "util/system.h"

#include <fmt/format.h>
#include <string.h>

namespace unflake {

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

}  // namespace unflake
