#pragma once

#include <string.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace unflake {

// Who has to act: `usage` is for the person at the keyboard (exit code 2), `internal` means that
// unflake or its surroundings failed (exit code 4).
enum class ErrorKind { usage, internal };

struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string what;   // what happened
  std::string where;  // a file, a line, a test; may be empty
  std::string next;   // what to do next; may be empty
};

inline Error usage_error(std::string what, std::string where = "", std::string next = "") {
  return {ErrorKind::usage, std::move(what), std::move(where), std::move(next)};
}

inline Error internal_error(std::string what, std::string where = "", std::string next = "") {
  return {ErrorKind::internal, std::move(what), std::move(where), std::move(next)};
}

// "what (where); next", on one line.
inline std::string to_string(const Error& error) {
  std::string text = error.what;
  if (!error.where.empty()) text += " (" + error.where + ")";
  if (!error.next.empty()) text += "; " + error.next;
  return text;
}

// std::expected<T, Error> in all but name: Debian 12 does not package expected for C++20.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T value() && { return std::get<0>(std::move(state_)); }  // by value: `for (x : *f())` is safe
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

// "SIGSEGV"; "signal 64" where the number has no name.
inline std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name ? std::string("SIG") + name : "signal " + std::to_string(number);
}

// Empty when the variable is not set.
inline std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace unflake
