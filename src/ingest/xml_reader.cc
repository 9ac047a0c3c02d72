#include "ingest/xml_reader.h"

#include <expat.h>
#include <fmt/format.h>

#include <exception>
#include <memory>

#include "ingest/clean_text.h"

namespace unflake {
namespace {

constexpr int deepest = 256;
constexpr int64_t longest_token = 16 * 1024 * 1024;  // a tag with its attributes, a comment
constexpr size_t most_leading_bytes = 64 * 1024;

bool is_cut_short(XML_Error error) {
  return error == XML_ERROR_NO_ELEMENTS || error == XML_ERROR_UNCLOSED_TOKEN ||
         error == XML_ERROR_PARTIAL_CHAR || error == XML_ERROR_UNCLOSED_CDATA_SECTION;
}

// Where a document may begin: whatever a program printed before it is passed over.
size_t start_of_document(std::string_view text) {
  for (size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    if (at + 1 == text.size()) return at;
    const char next = text[at + 1];
    const bool is_letter = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z');
    if (is_letter || next == '?' || next == '!' || next == '_') return at;
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
    if (!is_complete_) return bad(fmt::format("is no well-formed XML: {}", expat_words()));
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
    if (!has_element_ && documents_ > 0) return {};  // a comment behind the document
    if (!has_element_) return not_xml();
    return is_cut_short(error) ? bad("is cut short: it ends in the middle of an element")
                               : bad(fmt::format("is no well-formed XML: {}", expat_words()));
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
