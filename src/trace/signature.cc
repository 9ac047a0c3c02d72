#include <fmt/format.h>

#include <cstdint>

#include "trace/message.h"
#include "trace/normalise.h"
#include "trace/outcome.h"
#include "trace/scan.h"

namespace unflake {
namespace {

constexpr size_t most_words = 400;

// FNV-1a, 64 bits: the same on every machine, for ever.
class Hash {
 public:
  void add(std::string_view field) {
    for (const char c : field) mix(static_cast<unsigned char>(c));
    mix(field_end);
  }
  uint64_t value() const { return value_; }

 private:
  static constexpr unsigned char field_end = 0xFF;
  void mix(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001B3u; }
  uint64_t value_ = 0xCBF29CE484222325u;
};

// A framework's check is in a function that the test's name and the line already tell.
bool function_tells(const Failure& failure) {
  return failure.line == 0 || is_sanitizer(failure.kind);
}

}  // namespace

std::string signature_of(const Failure& failure) {
  Hash hash;
  hash.add(to_string(failure.kind));
  hash.add(base_name(failure.file));  // folders differ between machines and build trees
  hash.add(fmt::format("{}", failure.line));
  hash.add(function_tells(failure) ? failure.function : "");
  hash.add(failure.expression);
  const std::string words = normalise(said_in(failure.message));
  hash.add(std::string_view(words).substr(0, most_words));
  return fmt::format("{:016x}", hash.value());
}

}  // namespace unflake
