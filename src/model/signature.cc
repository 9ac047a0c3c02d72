
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include "model/outcome.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr std::string_view shown_indent = "  ";
constexpr size_t most_lines = 40;
constexpr size_t most_bytes_of_a_line = 1000;

}  // namespace

void Message::say(std::string_view line) {
  add("", trim(line));
}

void Message::show(std::string_view line) {
  add(shown_indent, trim(line));
}

void Message::add(std::string_view indent, std::string_view line) {
  if (line.empty() || lines_ == most_lines) return;
  ++lines_;
  if (!text_.empty()) text_ += '\n';
  text_ += indent;
  text_ += shorten(line, most_bytes_of_a_line);
}

std::string said_in(std::string_view message) {
  std::string said;
  for (LineReader in(message); !in.done(); in.advance()) {
    if (in.line().starts_with(shown_indent)) continue;
    if (!said.empty()) said += '\n';
    said += in.line();
  }
  return said;
}

namespace {

constexpr std::string_view placeholder = "<n>";
constexpr std::string_view temporary = "<tmp>";
constexpr std::string_view memory_file = "/memfd:";

// Between two numbers these make one: 1.5, 10:30:00, 2024-01-02, 127.0.0.1:80, 1, 2, 3.
constexpr std::string_view glue = ".:,-+/; \t\n";

constexpr std::array units{
    "ns",          "us",           "ms",          "s",           "sec",
    "secs",        "second",       "m",           "min",         "mins",
    "minute",      "minutes",      "seconds",     "h",           "hr",
    "hrs",         "hour",         "hours",       "d",           "day",
    "days",        "msec",         "usec",        "nsec",        "millis",
    "micros",      "milliseconds", "B",           "byte",        "bytes",
    "kB",          "KB",           "KiB",         "MB",          "MiB",
    "GB",          "GiB",          "millisecond", "microsecond", "microseconds",
    "nanoseconds", "nanosecond",   "\xC2\xB5s"};

constexpr std::array calendar{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct",
                              "Nov", "Dec", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

constexpr std::array temporary_roots{"/tmp/", "/var/tmp/", "/dev/shm/", "/run/user/",
                                     "/var/folders/"};

// Only below these is a path taken for a file: "/api/users" in a message is a word.
constexpr std::array machine_roots{
    "/home/", "/root/", "/Users/", "/builds/", "/build/", "/opt/",   "/mnt/",       "/srv/",
    "/var/",  "/data/", "/usr/",   "/github/", "/__w/",   "/media/", "/workspace/", "/workspaces/"};

template <class List>
bool is_in(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

template <class List>
bool starts_with_any(const List& list, std::string_view text) {
  return std::any_of(list.begin(), list.end(),
                     [&](auto* start) { return text.starts_with(start); });
}

bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

bool is_path(char c) {
  return is_word(c) ||
         (c != '\0' && std::string_view("/.+@%~-#").find(c) != std::string_view::npos);
}

std::string_view leading(std::string_view text, bool (*belongs)(char)) {
  size_t end = 0;
  while (end < text.size() && belongs(text[end])) ++end;
  return text.substr(0, end);
}

bool is_uuid(std::string_view text) {
  constexpr std::string_view shape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (text.size() < shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 'x' ? !is_hex_digit(text[i]) : text[i] != '-') return false;
  return text.size() == shape.size() || !is_word(text[shape.size()]);
}

// Hashes and addresses without 0x.
bool is_long_hex(std::string_view word) {
  return word.size() >= 8 && std::all_of(word.begin(), word.end(), is_hex_digit) &&
         std::any_of(word.begin(), word.end(), is_digit);
}

bool is_not_finite(std::string_view word) {
  std::string lower(word.substr(0, 9));
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower == "nan" || lower == "inf" || lower == "infinity";
}

bool has_temporary_folder(std::string_view path) {
  for (const auto* folder : {"/tmp/", "/temp/", "/_tmp/", "/.tmp/", "/tmp.", "/_temp/"})
    if (contains(path, folder)) return true;
  return false;
}

std::string singular(std::string_view word) {
  if (word.size() < 3 || word.ends_with("ss") || !word.ends_with('s')) return std::string(word);
  for (const auto* ending : {"ches", "shes", "sses", "xes"})
    if (word.ends_with(ending)) return std::string(word.substr(0, word.size() - 2));
  if (word.ends_with("ies")) return std::string(word.substr(0, word.size() - 3)) + "y";
  return std::string(word.substr(0, word.size() - 1));
}

class Normaliser {
 public:
  explicit Normaliser(std::string_view text) : rest_(text) {}

  std::string run() {
    while (!rest_.empty()) step();
    while (out_.ends_with(' ')) out_.pop_back();
    return std::move(out_);
  }

 private:
  void step() {
    const char c = rest_.front();
    if (is_blank(c)) return blank();
    if (c == '/' && starts_path()) return path();
    if (is_word(c)) return word();
    if ((c == '-' || c == '+') && !follows_word() && number_comes_after_sign())
      return rest_.remove_prefix(1);
    if (rest_.starts_with("(nil)")) return number(5);
    copy(1);
  }

  bool follows_word() const {
    return (after_number_ && out_.ends_with('>')) || (!out_.empty() && is_word(out_.back()));
  }

  // Not in the middle of "and/or" or "./a".
  bool starts_path() const { return !follows_word() && (out_.empty() || !is_path(out_.back())); }

  bool number_comes_after_sign() const {
    return rest_.size() > 1 &&
           (is_digit(rest_[1]) || is_not_finite(leading(rest_.substr(1), is_letter)));
  }

  void blank() {
    rest_.remove_prefix(1);
    if (!out_.empty() && !out_.ends_with(' ')) out_ += ' ';
  }

  void copy(size_t length) {
    if (glue.find(rest_.front()) == std::string_view::npos) after_number_ = false;
    out_ += rest_.substr(0, length);
    rest_.remove_prefix(length);
  }

  void path() {
    const size_t prefix = rest_.starts_with(memory_file) ? memory_file.size() : 0;
    const std::string_view whole =
        rest_.substr(0, prefix + leading(rest_.substr(prefix), is_path).size());
    if (prefix > 0 || starts_with_any(temporary_roots, whole) || has_temporary_folder(whole)) {
      rest_.remove_prefix(whole.size());
      out_ += temporary;
    } else if (starts_with_any(machine_roots, whole)) {
      rest_.remove_prefix(whole.rfind('/') + 1);
    } else {
      copy(1);
    }
    after_number_ = false;
  }

  void word() {
    if (is_uuid(rest_)) return number(36);
    const std::string_view word = leading(rest_, is_word);
    if (is_digit(word.front())) return digits_first(word);
    if (is_long_hex(word) || is_not_finite(word) || is_date(word)) return number(word.size());
    if (after_number_ && out_.ends_with("> ")) return counted(word);
    letters_first(word);
  }

  // "Nov 15", "Sun Nov 15", "Sun, 15"
  bool is_date(std::string_view word) const {
    if (!is_in(calendar, word)) return false;
    std::string_view next = rest_.substr(word.size());
    consume(next, ",");
    next = next.substr(std::min(next.size(), leading(next, is_blank).size()));
    return !next.empty() && (is_digit(next.front()) || is_in(calendar, leading(next, is_word)));
  }

  // 12, 12ms, 3rd, 1e9, 0x1f, 02T03: all of it is a number, but not the word that is stuck to it.
  void digits_first(std::string_view word) {
    size_t letters = word.size();
    while (letters > 0 && !is_digit(word[letters - 1])) --letters;
    const std::string_view suffix = word.substr(letters);
    const bool hex = word.starts_with("0x") || is_long_hex(word);
    const bool is_part = hex || suffix.size() < 4 || is_in(units, suffix);
    number(is_part ? word.size() : letters);
  }

  // Digits that follow a letter belong to the name; after an underscore they count something.
  void letters_first(std::string_view word) {
    rest_.remove_prefix(word.size());
    write_name(word);
  }

  void write_name(std::string_view word) {
    after_number_ = false;
    while (!word.empty()) {
      const size_t digits = leading_digits(word).size();
      const bool counts = digits > 0 && out_.ends_with('_');
      out_ += counts ? placeholder : word.substr(0, std::max<size_t>(digits, 1));
      word.remove_prefix(std::max<size_t>(digits, 1));
    }
  }

  // The word after a number: a unit is dropped, and a plural does not matter.
  void counted(std::string_view word) {
    rest_.remove_prefix(word.size());
    if (is_in(units, word))
      out_.pop_back();
    else
      write_name(singular(word));
  }

  void number(size_t length) {
    rest_.remove_prefix(length);
    if (after_number_)
      out_.resize(out_.find_last_not_of(glue) + 1);
    else
      out_ += placeholder;
    after_number_ = true;
  }

  std::string_view rest_;
  std::string out_;
  bool after_number_ = false;  // nothing but glue since the last number
};

}  // namespace

std::string normalise(std::string_view text) {
  return Normaliser(without_escape_sequences(text)).run();
}

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

// A test that is slow or loops runs out of time at a different line of the function in every run.
bool hung_in_function(const Failure& failure) {
  return failure.kind == FailureKind::timeout && !failure.function.empty();
}

// A framework's check is in a function that the test's name and the line already identify.
bool function_tells(const Failure& failure) {
  return failure.line == 0 || is_sanitizer(failure.kind) || hung_in_function(failure);
}

// What could not be started is reported with the path that was looked for and with what to do.
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
