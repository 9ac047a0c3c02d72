#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ingest/byte_source.h"
#include "util/result.h"

namespace unflake {

class XmlAttributes {
 public:
  explicit XmlAttributes(const char* const* pairs) : pairs_(pairs) {}

  // None: the element does not have it.
  std::optional<std::string_view> find(std::string_view name) const;
  std::string_view value(std::string_view name) const { return find(name).value_or(""); }

 private:
  const char* const* pairs_;
};

// What a document consists of, as it is read. Views are good during the call.
class XmlHandler {
 public:
  virtual ~XmlHandler() = default;
  virtual void start(std::string_view element, const XmlAttributes& attributes) = 0;
  virtual void end(std::string_view element) = 0;
  virtual void text(std::string_view text) = 0;
  // Reading ends when there is one.
  virtual const std::optional<Error>& failed() const = 0;
};

// Reads the documents of a source one behind the other, in memory that does not depend on its
// size. An error says which line is to blame; what stood before it has been handled. Nothing but
// the source is read: no entity is declared, none is loaded.
Result<void> read_xml(ByteSource source, const std::string& name, XmlHandler& handler);

}  // namespace unflake
