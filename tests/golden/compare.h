#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace unflake::golden {

inline std::string read_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// tools/approve-golden collects what the tests saw in a folder of its own.
inline void compare_with_golden(const std::string& name, const std::string& actual) {
  if (const char* folder = std::getenv("UNFLAKE_GOLDEN_OUT"))
    std::ofstream(std::filesystem::path(folder) / name) << actual;
  EXPECT_EQ(read_file(std::filesystem::path(GOLDEN_DIR) / name), actual)
      << "when the new text is right: tools/approve-golden";
}

}  // namespace unflake::golden
