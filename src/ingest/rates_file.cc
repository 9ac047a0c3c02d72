#include "ingest/rates_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "util/text.h"

namespace unflake {
namespace {

// The fields of one line; quoted ones may hold commas and doubled quotes.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else if (c != '\r')
      fields.back() += c;
  }
  return fields;
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  text = trim(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

class RatesReader {
 public:
  explicit RatesReader(const std::string& path) : path_(path) {}

  Result<void> read_head(std::string_view line) {
    const std::vector<std::string> names = fields_of(line);
    for (size_t i = 0; i < names.size(); ++i) columns_[std::string(trim(names[i]))] = i;
    for (const char* needed : {"test", "passes", "failures", "seconds"})
      if (!columns_.contains(needed))
        return usage_error(
            fmt::format("no column is called {}", needed), path_,
            "the first line names the columns: project,test,passes,failures,seconds");
    return {};
  }

  Result<RatedRuns> read(std::string_view line, size_t number) const {
    const std::vector<std::string> fields = fields_of(line);
    const auto field = [&](const char* name) {
      const auto column = columns_.find(name);
      return column != columns_.end() && column->second < fields.size() ? fields[column->second]
                                                                        : std::string();
    };
    RatedRuns runs{field("project"), field("test")};
    if (runs.test.empty() || !read_number(field("passes"), runs.passes) ||
        !read_number(field("failures"), runs.failures) ||
        !read_number(field("seconds"), runs.seconds) || !is_plausible(runs))
      return usage_error(fmt::format("cannot read \"{}\"", shorten(printable(line), 80)),
                         fmt::format("{}:{}", path_, number),
                         "a line has a test's name, two counts and a number of seconds");
    runs.seconds = std::max(0.0, runs.seconds);
    return runs;
  }

 private:
  static bool is_plausible(const RatedRuns& runs) {
    constexpr int64_t most = 1'000'000'000'000;
    return runs.passes >= 0 && runs.failures >= 0 && runs.passes <= most && runs.failures <= most &&
           std::isfinite(runs.seconds) && runs.seconds < 1e9;
  }

  const std::string path_;
  std::map<std::string, size_t> columns_;
};

}  // namespace

Result<std::vector<RatedRuns>> parse_rates(std::string_view csv, const std::string& path) {
  RatesReader reader(path);
  std::vector<RatedRuns> all;
  size_t number = 0;
  for (const std::string_view line : split_lines(csv)) {
    if (++number == 1) {
      if (auto head = reader.read_head(line); !head) return head.error();
      continue;
    }
    if (trim(line).empty()) continue;
    auto runs = reader.read(line, number);
    if (!runs) return runs.error();
    all.push_back(std::move(*runs));
  }
  if (all.empty()) return usage_error("there are no tests in it", path);
  return all;
}

Result<std::vector<RatedRuns>> read_rates(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    return usage_error("cannot read the rates file", path,
                       "give a CSV file with the columns project,test,passes,failures,seconds");
  return parse_rates(text.str(), path);
}

}  // namespace unflake
