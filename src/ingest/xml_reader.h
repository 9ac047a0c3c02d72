#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "ingest/report_file.h"
#include "util/result.h"

namespace unflake {

// Copies UTF-8 and replaces what XML cannot hold by U+FFFD: bytes that are not UTF-8, control
// characters, references to such. One bad byte in a test's output must not lose the whole report.
class TextCleaner {
 public:
  void clean(std::string_view bytes, bool is_last, std::string& out);

 private:
  // How much of the text was handled; what needs more bytes stays.
  size_t clean_some(std::string_view text, bool is_last, std::string& out);
  std::string held_;  // the beginning of a character or a reference
};

// A document as clean UTF-8, whatever it was written in: UTF-8, UTF-16 with a byte order mark,
// ISO-8859-1 or windows-1252 by its declaration.
class CleanText {
 public:
  explicit CleanText(ByteSource source);

  // The next piece, empty at the end. It is valid until the next call.
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

class XmlAttributes {
 public:
  explicit XmlAttributes(const char* const* pairs) : pairs_(pairs) {}

  // None: the element does not have it.
  std::optional<std::string_view> find(std::string_view name) const;
  std::string_view value(std::string_view name) const { return find(name).value_or(""); }

 private:
  const char* const* pairs_;
};

// What a document consists of, as it is read. Views are valid during the call.
class XmlHandler {
 public:
  virtual ~XmlHandler() = default;
  virtual void start(std::string_view element, const XmlAttributes& attributes) = 0;
  virtual void end(std::string_view element) = 0;
  virtual void text(std::string_view text) = 0;
  // Reading ends when there is one.
  virtual const std::optional<Error>& failed() const = 0;
};

// Reads the documents of a source one after another, in memory that does not depend on its
// size. An error says which line is to blame; what came before it has been handled. Nothing but
// the source is read: no entity is declared, none is loaded.
Result<void> read_xml(ByteSource source, const std::string& name, XmlHandler& handler);

}  // namespace unflake
