#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/repair.h"
#include "model/repro.h"
#include "util/json.h"
#include "util/result.h"
#include "util/time.h"

namespace unflake {

// JSON holds UTF-8 only and tests can have any name, so other bytes are written as {"hex": ...}.
nlohmann::ordered_json text_to_json(const std::string& text);

// A value in a document that anybody may have written. The first thing that is wrong is kept with
// its place, and what cannot be read is empty: callers look once, at the end.
class JsonField {
 public:
  struct Wrong {
    std::string what, where, next;
  };

  JsonField(const nlohmann::json& value, std::optional<Wrong>& wrong)
      : JsonField(&value, "$", wrong) {}

  JsonField operator[](const char* key) const;  // wrong when it is missing
  bool has(const char* key) const;
  // Other members than these are wrong: what would be left out could be what matters.
  void allow_only(const std::vector<std::string_view>& keys) const;

  std::string text(size_t most) const;
  bool flag() const;
  int64_t whole(int64_t low, int64_t high) const;
  double real(double low, double high) const;
  Duration duration(Duration low, Duration high) const;
  // Which of the words it is.
  size_t choice(std::initializer_list<std::string_view> words) const;
  std::vector<JsonField> items(size_t most) const;
  std::vector<std::string> texts(size_t most, size_t longest) const;

  void complain(std::string what, std::string next = "") const;

 private:
  JsonField(const nlohmann::json* value, std::string path, std::optional<Wrong>& wrong)
      : value_(value), path_(std::move(path)), wrong_(wrong) {}
  void is_no(std::string_view type) const;

  const nlohmann::json* value_;  // null: missing, which was reported
  std::string path_;
  std::optional<Wrong>& wrong_;
};

// Format 2 knows schedules, format 3 orders of tests and factors. Older files are still read.
inline constexpr int repro_format = 3;
inline constexpr size_t largest_repro = 4 << 20;  // bytes of a file

// As docs/formats.md describes it. Threads are written by name only: what the agent knows them by
// is not the same after a rebuild, and relocation.h finds it again.
std::string repro_json(const Repro& repro);

// The file may come from anybody. An error says what is wrong, at which member, and what to do.
Result<Repro> parse_repro(std::string_view text, const std::string& path_for_errors);

// For files that hold a repro among other things.
nlohmann::ordered_json repro_document(const Repro& repro);
Repro repro_in(const JsonField& field);
nlohmann::ordered_json to_json(const Count& count);
Count count_in(const JsonField& field);
SiteName site_in(const JsonField& field, const SiteContext& context = {});
// What the file is called in errors, and what writes it.
struct FileKind {
  std::string name;     // "repro"
  std::string command;  // "unflake reproduce"
  int format = 1;       // that this unflake writes
};
Result<nlohmann::json> parse_document(std::string_view text, const std::string& path,
                                      const FileKind& kind);

// The name of the thread or of the class of threads that an intervention is for.
std::string thread_text(const Intervention& intervention);

inline constexpr int fix_format = 1;

// As docs/formats.md describes it: the hand-overs, what was measured, and a repro document whose
// plan keeps the order.
std::string fix_json(const Fix& fix);

// The file may come from anybody. An error says what is wrong, at which member, and what to do.
Result<Fix> parse_fix(std::string_view text, const std::string& path_for_errors);

}  // namespace unflake
