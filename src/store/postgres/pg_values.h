#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace unflake {

// PostgreSQL's text holds valid UTF-8 without NUL; the names of tests may be any bytes. What it
// cannot hold becomes the control character SUB and two hexadecimal digits, and so does SUB itself:
// every text comes back as it was, and ordinary ones look the same in psql.
std::string to_stored_text(std::string_view text);
std::string from_stored_text(std::string_view stored);

struct PgBytes {
  std::string_view bytes;
};

// The parameters of one statement: $1, $2 and so on.
class PgValues {
 public:
  template <class... Values>
  explicit PgValues(const Values&... values) {
    values_.reserve(sizeof...(values));
    (add(values), ...);
  }

  // As libpq wants them.
  std::vector<const char*> pointers() const;
  std::vector<int> lengths() const;
  std::vector<int> formats() const;

 private:
  struct Value {
    std::string text;
    bool null = false;
    bool binary = false;
  };

  template <std::integral Number>
  void add(Number number) {
    values_.push_back({std::to_string(static_cast<int64_t>(number))});
  }
  template <class Inner>
  void add(const std::optional<Inner>& value) {
    if (value)
      add(*value);
    else
      values_.push_back({.text = "", .null = true});
  }
  void add(double number);
  void add(const char* text) { add(std::string_view(text)); }
  void add(const std::string& text) { add(std::string_view(text)); }
  void add(std::string_view text);
  void add(PgBytes bytes);
  void add(const std::vector<int64_t>& numbers);
  void add(const std::vector<double>& numbers);
  void add(const std::vector<std::string>& texts);

  std::vector<Value> values_;
};

}  // namespace unflake
