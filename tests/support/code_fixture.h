#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "symbols/image.h"

namespace unflake {

inline std::string code_fixture(const std::string& name) {
  return std::string(UNFLAKE_FIXTURES) + "/code/" + name + "/program";
}

inline std::string fixture_source(const std::string& name) {
  return std::string(UNFLAKE_FIXTURE_SOURCES) + "/" + name;
}

// The line of a fixture's source that has these words in a comment.
inline int line_of(const std::string& words, const std::string& source = "symbols_code.cc") {
  std::ifstream file(fixture_source(source));
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.ends_with("// " + words)) return number;
  }
  throw std::runtime_error("no line has the words: " + words);
}

inline std::shared_ptr<const Image> open_fixture(const std::string& name) {
  auto image = Image::open(code_fixture(name));
  if (!image) throw std::runtime_error(to_string(image.error()));
  return *image;
}

// Those of clang are there when clang is.
inline bool has_fixture(const std::string& name) {
  return std::filesystem::exists(code_fixture(name));
}

inline const Function* function_named(const Image& image, const std::string& name) {
  for (const Function& function : image.functions())
    if (function.name == name) return &function;
  return nullptr;
}

using Chain = std::vector<Frame>;

// The chains of frames at all addresses of an image's code.
inline std::vector<Chain> chains_of(const Image& image) {
  std::vector<Chain> chains;
  for (const Function& function : image.functions())
    for (uint64_t at = function.start; at < function.start + function.size; ++at)
      chains.push_back(image.frames_at(at));
  return chains;
}

inline bool is_at(const Frame& frame, const std::string& function, const std::string& words,
                  const std::string& source = "symbols_code.cc") {
  return frame.function == function && frame.line == line_of(words, source) &&
         frame.file == fixture_source(source);
}

}  // namespace unflake
