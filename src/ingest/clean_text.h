#pragma once

#include <array>
#include <string>
#include <string_view>

#include "ingest/byte_source.h"
#include "util/result.h"

namespace unflake {

// Copies UTF-8 and replaces what XML cannot hold by U+FFFD: bytes that are not UTF-8, control
// characters, references to such. One bad byte in a test's output must not lose the whole report.
class TextCleaner {
 public:
  void clean(std::string_view bytes, bool is_last, std::string& out);

 private:
  // How much of the text was dealt with; what needs more bytes stays.
  size_t clean_some(std::string_view text, bool is_last, std::string& out);
  std::string held_;  // the beginning of a character or a reference
};

// A document as clean UTF-8, whatever it was written in: UTF-8, UTF-16 with a byte order mark,
// ISO-8859-1 or windows-1252 by its declaration.
class CleanText {
 public:
  explicit CleanText(ByteSource source);

  // The next piece, empty at the end. It is good until the next call.
  Result<std::string_view> next();

 private:
  enum class Encoding { utf8, utf16_le, utf16_be, latin1, windows1252 };
  Result<size_t> fill();
  Result<void> recognise(size_t size);
  std::string_view decode(std::string_view bytes, bool is_last);

  ByteSource source_;
  std::string raw_, decoded_, clean_, odd_byte_;
  Encoding encoding_ = Encoding::utf8;
  char32_t lead_ = 0;  // of a surrogate pair
  size_t skip_ = 0;    // the byte order mark
  bool started_ = false, ended_ = false;
  TextCleaner cleaner_;
};

}  // namespace unflake
