#include "model/process_result.h"

#include <fmt/format.h>

#include <cerrno>

namespace unflake {

std::string CapturedOutput::text() const {
  if (dropped() == 0) return head + tail;
  return fmt::format("{}\n[... {} bytes not kept ...]\n{}", head, dropped(), tail);
}

bool lacks_something(const ProcessResult& process) {
  return process.end == ProcessResult::End::not_started &&
         (process.code == ENOENT || process.code == ENOTDIR);
}

std::string whole_output(const ProcessResult& process) {
  std::string text = process.output.text();
  if (process.errors.total == 0) return text;
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return text + process.errors.text();
}

}  // namespace unflake
