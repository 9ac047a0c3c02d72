#include "util/process_result.h"

#include <fmt/format.h>

namespace unflake {

std::string CapturedOutput::text() const {
  if (dropped() == 0) return head + tail;
  return fmt::format("{}\n[... {} bytes not kept ...]\n{}", head, dropped(), tail);
}

}  // namespace unflake
