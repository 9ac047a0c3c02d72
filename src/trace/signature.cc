#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "trace/message.h"
#include "trace/normalise.h"
#include "trace/outcome.h"
#include "trace/scan.h"
#include "util/fnv1a.h"

namespace unflake {
namespace {

constexpr size_t most_words = 400;

class Hash {
 public:
  void add(std::string_view field) { value_ = fnv1a(field_end, fnv1a(field, value_)); }
  uint64_t value() const { return value_; }

 private:
  static constexpr std::string_view field_end = "\xFF";
  uint64_t value_ = fnv1a_start;
};

// A test that is slow or loops runs out of time at another line of the function in every run.
bool hung_in_function(const Failure& failure) {
  return failure.kind == FailureKind::timeout && !failure.function.empty();
}

// A framework's check is in a function that the test's name and the line already tell.
bool function_tells(const Failure& failure) {
  return failure.line == 0 || is_sanitizer(failure.kind) || hung_in_function(failure);
}

// What could not be started is told with the path that was looked for and with what to do.
std::string words_of(const Failure& failure) {
  std::string said = said_in(failure.message);
  if (failure.kind == FailureKind::not_started)
    said.resize(std::min({said.size(), said.find(": "), said.find("; ")}));
  return normalise(said);
}

}  // namespace

std::string signature_of(const Failure& failure) {
  Hash hash;
  hash.add(to_string(failure.kind));
  hash.add(base_name(failure.file));  // folders differ between machines and build trees
  hash.add(fmt::format("{}", hung_in_function(failure) ? 0 : failure.line));
  hash.add(function_tells(failure) ? failure.function : "");
  hash.add(failure.expression);
  const std::string words = words_of(failure);
  hash.add(std::string_view(words).substr(0, most_words));
  return fmt::format("{:016x}", hash.value());
}

bool is_signature(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace unflake
