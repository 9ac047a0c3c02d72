#include "patch/source_text.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "util/text.h"

namespace unflake {
namespace {

constexpr uintmax_t most_bytes = 16u << 20;

}  // namespace

Result<std::string> read_source(const std::string& path) {
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  if (!std::filesystem::is_regular_file(status))
    return usage_error("there is no such source file", printable(path),
                       "the program may have been built elsewhere: run where its sources are");
  const auto size = std::filesystem::file_size(path, failed);
  if (failed || size > most_bytes)
    return usage_error(fmt::format("sources of more than {} MiB are not read", most_bytes >> 20),
                       printable(path));
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  if (!file) return usage_error("cannot read the source file", printable(path));
  return text;
}

std::vector<size_t> line_starts(std::string_view text) {
  std::vector<size_t> starts = {0};
  for (size_t i = 0; i + 1 < text.size(); ++i)
    if (text[i] == '\n') starts.push_back(i + 1);
  return starts;
}

std::string real_path(const std::string& path) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(path, failed);
  return failed ? path : real.string();
}

}  // namespace unflake
