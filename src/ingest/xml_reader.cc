#include "ingest/report_reader.h"

#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <memory>
#include <utility>

#include "util/text.h"

namespace unflake {
namespace {

// The parser looks at an unfinished tag from its beginning again with every piece.
constexpr size_t raw_bytes_at_once = 1024 * 1024;
constexpr size_t enough_to_recognise = 1024;
constexpr size_t longest_reference = 12;  // "&#x0010FFFF;"
constexpr std::string_view replacement = "\xEF\xBF\xBD";

constexpr bool is_xml_character(char32_t c) {
  if (c < 0x20) return c == '\t' || c == '\n' || c == '\r';
  return c < 0xD800 || (c > 0xDFFF && c < 0xFFFE) || (c > 0xFFFF && c <= 0x10FFFF);
}

// Bytes that pass unchanged.
constexpr auto plain_bytes = [] {
  std::array<bool, 256> plain{};
  for (char32_t c = 0; c < 0x80; ++c) plain[c] = is_xml_character(c) && c != '&' && c != 0x7F;
  return plain;
}();

void append_utf8(char32_t c, std::string& out) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(lead[more] | (c >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3F));
}

struct Piece {
  size_t size = 0;  // 0: more bytes are needed
  bool is_good = false;
};

// Shortest forms only, as the standard demands.
Piece character_at(std::string_view text, bool is_last) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t size = first < 0xC2 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 1;
  if (size == 1) return {1, false};
  char32_t c = first & (0xFF >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if (i == text.size()) return is_last ? Piece{i, false} : Piece{};
    if ((byte(i) & 0xC0) != 0x80) return {i, false};
    c = (c << 6) | (byte(i) & 0x3F);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  return {size, c >= least[size] && is_xml_character(c)};
}

// "&#27;" and "&#x1b;"; every other reference is left to the parser.
Piece reference_at(std::string_view text, bool is_last) {
  if (text.size() < 2) return is_last ? Piece{1, true} : Piece{};
  if (text[1] != '#') return {1, true};
  const size_t end = text.substr(0, longest_reference).find(';');
  if (end == std::string_view::npos)
    return text.size() >= longest_reference || is_last ? Piece{2, true} : Piece{};
  const bool is_hex = text[2] == 'x';
  const std::string_view digits = text.substr(is_hex ? 3 : 2, end - (is_hex ? 3 : 2));
  uint32_t c = 0;
  const auto [stop, failed] =
      std::from_chars(digits.data(), digits.data() + digits.size(), c, is_hex ? 16 : 10);
  const bool is_number = !digits.empty() && stop == digits.data() + digits.size();
  return {end + 1, is_number && failed == std::errc() && is_xml_character(c)};
}

// What windows-1252 has where ISO-8859-1 has control characters.
constexpr char16_t windows_characters[32] = {
    0x20AC, 0xFFFD, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0xFFFD, 0x017D, 0xFFFD, 0xFFFD, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0xFFFD, 0x017E, 0x0178};

std::string declared_encoding(std::string_view start) {
  const size_t declaration = start.find("<?xml");
  if (declaration == std::string_view::npos) return "";
  std::string_view text = start.substr(declaration);
  text = text.substr(0, text.find("?>"));
  const size_t at = text.find("encoding");
  const size_t open = at == std::string_view::npos ? at : text.find_first_of("'\"", at);
  if (open == std::string_view::npos) return "";
  std::string name(text.substr(open + 1, text.find(text[open], open + 1) - open - 1));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

struct Magic {
  std::string_view bytes;
  const char* program;
};
constexpr Magic packed[] = {{"\x1F\x8B", "gunzip -c"},
                            {"PK\x03\x04", "unzip -p"},
                            {"\x28\xB5\x2F\xFD", "zstd -dc"},
                            {"\xFD"
                             "7zXZ",
                             "xz -dc"},
                            {"BZh", "bunzip2 -c"}};

}  // namespace

size_t TextCleaner::clean_some(std::string_view text, bool is_last, std::string& out) {
  size_t at = 0;
  while (at < text.size()) {
    size_t end = at;
    while (end < text.size() && plain_bytes[static_cast<unsigned char>(text[end])]) ++end;
    out.append(text, at, end - at);
    at = end;
    if (at == text.size()) break;
    const unsigned char byte = static_cast<unsigned char>(text[at]);
    const std::string_view rest = text.substr(at);
    const Piece piece = byte == '&'    ? reference_at(rest, is_last)
                        : byte >= 0x80 ? character_at(rest, is_last)
                                       : Piece{1, byte == 0x7F};
    if (piece.size == 0) break;
    out.append(piece.is_good ? rest.substr(0, piece.size) : replacement);
    at += piece.size;
  }
  return at;
}

void TextCleaner::clean(std::string_view bytes, bool is_last, std::string& out) {
  if (!held_.empty()) {  // a few bytes of the new ones complete it
    const size_t before = held_.size();
    const size_t taken = std::min(bytes.size(), longest_reference);
    held_.append(bytes.substr(0, taken));
    const size_t done = clean_some(held_, is_last && taken == bytes.size(), out);
    if (done < before) return;
    bytes.remove_prefix(done - before);
    held_.clear();
  }
  held_ = bytes.substr(clean_some(bytes, is_last, out));
}

CleanText::CleanText(ByteSource source)
    : source_(std::move(source)), raw_(raw_bytes_at_once, '\0') {}

Result<size_t> CleanText::fill() {
  size_t size = 0;
  while (size < raw_.size() && !ended_) {
    const auto count = source_(std::span<char>(raw_).subspan(size));
    if (!count) return count.error();
    ended_ = *count == 0;
    size += *count;
  }
  return size;
}

Result<void> CleanText::recognise(size_t size) {
  const std::string_view start = std::string_view(raw_).substr(0, size);
  for (const Magic& magic : packed)
    if (start.starts_with(magic.bytes))
      return usage_error("is compressed", "",
                         fmt::format("unpack it: `{} FILE | unflake ingest -`", magic.program));
  if (start.starts_with("\xEF\xBB\xBF")) return skip_ = 3, Result<void>();
  if (start.starts_with("\xFF\xFE"))
    return encoding_ = Encoding::utf16_le, skip_ = 2, Result<void>();
  if (start.starts_with("\xFE\xFF"))
    return encoding_ = Encoding::utf16_be, skip_ = 2, Result<void>();
  const std::string name = declared_encoding(start.substr(0, enough_to_recognise));
  if (name == "iso-8859-1" || name == "latin1") encoding_ = Encoding::latin1;
  if (name == "windows-1252" || name == "cp1252") encoding_ = Encoding::windows1252;
  const bool is_known = encoding_ != Encoding::utf8 || name.empty() || name == "utf-8" ||
                        name == "utf8" || name == "us-ascii" || name == "ascii";
  if (is_known) return {};
  return usage_error(fmt::format("is written in {}", printable(shorten(name, 40))), "",
                     "convert it: `iconv -t UTF-8`, and take `encoding` out of its first line");
}

std::string_view CleanText::decode(std::string_view bytes, bool is_last) {
  if (encoding_ == Encoding::utf8) return bytes;
  decoded_.clear();
  if (encoding_ == Encoding::latin1 || encoding_ == Encoding::windows1252) {
    for (const char byte : bytes) {
      const auto c = static_cast<unsigned char>(byte);
      const bool is_windows = encoding_ == Encoding::windows1252 && c >= 0x80 && c < 0xA0;
      append_utf8(is_windows ? windows_characters[c - 0x80] : c, decoded_);
    }
    return decoded_;
  }
  odd_byte_ += bytes;
  const size_t low = encoding_ == Encoding::utf16_le ? 0 : 1;
  size_t at = 0;
  for (; at + 1 < odd_byte_.size(); at += 2) {
    const char32_t unit = static_cast<unsigned char>(odd_byte_[at + low]) |
                          static_cast<unsigned char>(odd_byte_[at + 1 - low]) << 8;
    if (unit >= 0xD800 && unit < 0xDC00) {
      lead_ = unit;
      continue;
    }
    const char32_t lead = std::exchange(lead_, 0);
    const bool is_trail = unit >= 0xDC00 && unit < 0xE000;
    if (is_trail && lead != 0)
      append_utf8(0x10000 + ((lead - 0xD800) << 10) + (unit - 0xDC00), decoded_);
    else
      append_utf8(is_trail ? 0xFFFD : unit, decoded_);
  }
  odd_byte_.erase(0, is_last ? std::string::npos : at);
  return decoded_;
}

Result<std::string_view> CleanText::next() {
  clean_.clear();
  while (clean_.empty() && !ended_) {
    const auto size = fill();
    if (!size) return size.error();
    if (!std::exchange(started_, true))
      if (const auto recognised = recognise(*size); !recognised) return recognised.error();
    const std::string_view bytes = std::string_view(raw_).substr(0, *size).substr(skip_);
    skip_ = 0;
    cleaner_.clean(decode(bytes, ended_), ended_, clean_);
  }
  return std::string_view(clean_);
}

namespace {

constexpr int deepest = 256;
constexpr int64_t longest_token = 16 * 1024 * 1024;  // a tag with its attributes, a comment
constexpr size_t most_leading_bytes = 64 * 1024;

bool is_cut_short(XML_Error error) {
  return error == XML_ERROR_NO_ELEMENTS || error == XML_ERROR_UNCLOSED_TOKEN ||
         error == XML_ERROR_PARTIAL_CHAR || error == XML_ERROR_UNCLOSED_CDATA_SECTION;
}

// Where a document may begin: whatever a program printed before it is skipped.
size_t start_of_document(std::string_view text) {
  for (size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    if (at + 1 == text.size()) return at;
    const char next = text[at + 1];
    if (is_letter(next) || next == '?' || next == '!' || next == '_') return at;
  }
  return text.size();
}

class Documents {
 public:
  Documents(ByteSource source, const std::string& name, XmlHandler& handler)
      : text_(std::move(source)), name_(name), handler_(handler) {}

  Result<void> read() {
    for (;;) {
      const auto piece = text_.next();
      if (!piece) return named(piece.error());
      if (piece->empty()) return finish();
      if (const auto fed = feed(*piece); !fed) return fed;
    }
  }

 private:
  Result<void> feed(std::string_view piece) {
    while (!piece.empty()) {
      if (!parser_) {
        const size_t start = start_of_document(piece);
        passed_over_ += start;
        if (documents_ == 0 && passed_over_ > most_leading_bytes) return not_xml();
        count_lines(piece.substr(0, start));
        piece.remove_prefix(start);
        if (piece.empty()) break;
        begin();
      }
      const auto rest = parse(piece);
      if (!rest) return rest.error();
      piece = *rest;
    }
    return {};
  }

  // What follows the end of the document.
  Result<std::string_view> parse(std::string_view piece) {
    const bool is_ok =
        XML_Parse(parser_.get(), piece.data(), static_cast<int>(piece.size()), 0) == XML_STATUS_OK;
    if (handler_.failed()) return *handler_.failed();
    if (refused_) return *refused_;
    if (is_ok) {
      fed_ += static_cast<int64_t>(piece.size());
      if (fed_ - XML_GetCurrentByteIndex(parser_.get()) > longest_token)
        return bad("has a tag or a comment of more than 16 MiB");
      return std::string_view();
    }
    if (!is_complete_) return bad(fmt::format("is not well-formed XML: {}", expat_words()));
    const auto end =
        XML_GetCurrentByteIndex(parser_.get()) + XML_GetCurrentByteCount(parser_.get()) - fed_;
    lines_ += static_cast<int64_t>(XML_GetCurrentLineNumber(parser_.get())) - 1;
    parser_.reset();
    ++documents_;
    return piece.substr(static_cast<size_t>(end));
  }

  Result<void> finish() {
    if (!parser_) return documents_ > 0 ? Result<void>() : not_xml();
    if (XML_Parse(parser_.get(), "", 0, 1) == XML_STATUS_OK) return {};
    if (refused_) return *refused_;
    const XML_Error error = XML_GetErrorCode(parser_.get());
    if (!has_element_ && documents_ > 0) return {};  // a comment after the document
    if (!has_element_) return not_xml();
    return is_cut_short(error) ? bad("is cut short: it ends in the middle of an element")
                               : bad(fmt::format("is not well-formed XML: {}", expat_words()));
  }

  void begin() {
    parser_.reset(XML_ParserCreate("UTF-8"));
    if (!parser_) throw std::bad_alloc();
    fed_ = 0;
    depth_ = 0;
    has_element_ = is_complete_ = false;
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(parser_.get(), on_start, on_end);
    XML_SetCharacterDataHandler(parser_.get(), on_text);
    XML_SetStartDoctypeDeclHandler(parser_.get(), on_doctype);
  }

  // No exception may pass through the parser, which is C.
  template <class Action>
  void guard(const Action& action) {
    try {
      action();
    } catch (const std::exception& error) {
      refuse(fmt::format("cannot be read: {}", error.what()));
    }
    if (handler_.failed()) XML_StopParser(parser_.get(), XML_FALSE);
  }

  void refuse(const std::string& what) {
    if (!refused_) refused_ = bad(what);
    XML_StopParser(parser_.get(), XML_FALSE);
  }

  static void XMLCALL on_start(void* self, const XML_Char* element, const XML_Char** attributes) {
    auto& my = *static_cast<Documents*>(self);
    my.has_element_ = true;
    if (++my.depth_ > deepest) return my.refuse("has elements nested deeper than 256");
    my.guard([&] { my.handler_.start(element, XmlAttributes(attributes)); });
  }

  static void XMLCALL on_end(void* self, const XML_Char* element) {
    auto& my = *static_cast<Documents*>(self);
    my.guard([&] { my.handler_.end(element); });
    if (--my.depth_ > 0) return;
    my.is_complete_ = true;
    XML_StopParser(my.parser_.get(), XML_FALSE);
  }

  static void XMLCALL on_text(void* self, const XML_Char* text, int size) {
    auto& my = *static_cast<Documents*>(self);
    my.guard([&] { my.handler_.text({text, static_cast<size_t>(size)}); });
  }

  static void XMLCALL on_doctype(void* self, const XML_Char*, const XML_Char*, const XML_Char*,
                                 int has_internal_subset) {
    if (has_internal_subset) static_cast<Documents*>(self)->refuse("declares entities of its own");
  }

  const char* expat_words() const { return XML_ErrorString(XML_GetErrorCode(parser_.get())); }

  void count_lines(std::string_view text) {
    for (const char c : text) lines_ += c == '\n';
  }

  Error bad(const std::string& what) const {
    const int64_t line = lines_ + static_cast<int64_t>(XML_GetCurrentLineNumber(parser_.get()));
    const int64_t column = static_cast<int64_t>(XML_GetCurrentColumnNumber(parser_.get())) + 1;
    return usage_error(what, fmt::format("{}:{}:{}", name_, line, column),
                       "let the tests write it again; what stood before is kept");
  }

  Error named(Error error) const {
    if (error.where.empty()) error.where = name_;
    return error;
  }

  Error not_xml() const {
    return usage_error(passed_over_ == 0 ? "is empty" : "is not XML", name_,
                       "give the JUnit XML that the test runner writes, or CTest's Test.xml");
  }

  struct Free {
    void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
  };

  CleanText text_;
  const std::string& name_;
  XmlHandler& handler_;
  std::unique_ptr<std::remove_pointer_t<XML_Parser>, Free> parser_;
  std::optional<Error> refused_;
  int64_t fed_ = 0;    // to the parser, before the current piece
  int64_t lines_ = 0;  // before the current document
  size_t passed_over_ = 0;
  int documents_ = 0;  // that are complete
  int depth_ = 0;
  bool has_element_ = false;
  bool is_complete_ = false;
};

}  // namespace

std::optional<std::string_view> XmlAttributes::find(std::string_view name) const {
  for (const char* const* pair = pairs_; *pair; pair += 2)
    if (pair[0] == name) return std::string_view(pair[1]);
  return std::nullopt;
}

Result<void> read_xml(ByteSource source, const std::string& name, XmlHandler& handler) {
  return Documents(std::move(source), name, handler).read();
}

}  // namespace unflake
