#include "util/result.h"

#include <fmt/format.h>
#include <string.h>

namespace unflake {

std::string to_string(const Error& error) {
  std::string text = error.what;
  if (!error.where.empty()) text += " (" + error.where + ")";
  if (!error.next.empty()) text += "; " + error.next;
  return text;
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

}  // namespace unflake
