#include "web/delivery.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>

#include "store/values.h"
#include "util/json.h"
#include "util/text.h"
#include "web/http_client.h"

namespace unflake {
namespace {

using Json = nlohmann::json;

constexpr size_t longest_field = 4096;

std::string field(const QueryFields& fields, const std::string& name) {
  const auto found = fields.find(name);
  return found == fields.end() ? "" : found->second.substr(0, longest_field);
}

Json error_json(const Error& error) {
  return {{"what", printable(error.what, LineFeeds::keep)},
          {"where", printable(error.where)},
          {"next", printable(error.next, LineFeeds::keep)}};
}

Json counts_json(const ResultCounts& counts) {
  return {{"cases", counts.cases},         {"results", counts.runs},
          {"passes", counts.passes},       {"failures", counts.failures},
          {"skipped", counts.skips},       {"flaky", counts.flaky},
          {"odd_times", counts.odd_times}, {"packed_outputs", counts.packed_outputs}};
}

int64_t number(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

std::string word(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

QueryFields to_fields(const Delivery& delivery) {
  const IngestSettings& settings = delivery.settings;
  const Surroundings& around = settings.surroundings;
  QueryFields fields{{"file", settings.origin.path},
                     {"target", settings.origin.target},
                     {"cmake_project", settings.origin.cmake_project},
                     {"build", around.build},
                     {"commit", around.commit},
                     {"branch", around.branch},
                     {"machine", around.machine},
                     {"project", delivery.project}};
  if (around.dirty) fields["dirty"] = "true";
  if (settings.modified) fields["modified"] = std::to_string(to_microseconds(*settings.modified));
  std::erase_if(fields, [](const auto& one) { return one.second.empty(); });
  return fields;
}

Delivery delivery_from(const QueryFields& fields) {
  Delivery delivery;
  IngestSettings& settings = delivery.settings;
  settings.origin = {field(fields, "file"), field(fields, "target"),
                     field(fields, "cmake_project")};
  settings.surroundings.build = field(fields, "build");
  settings.surroundings.commit = field(fields, "commit");
  settings.surroundings.branch = field(fields, "branch");
  settings.surroundings.machine = field(fields, "machine");
  settings.surroundings.dirty = field(fields, "dirty") == "true";
  delivery.project = field(fields, "project");
  const std::string modified = field(fields, "modified");
  int64_t microseconds = 0;
  std::from_chars(modified.data(), modified.data() + modified.size(), microseconds);
  if (microseconds > 0) settings.modified = to_time(microseconds);
  return delivery;
}

std::string to_query(const QueryFields& fields) {
  std::string query;
  for (const auto& [name, value] : fields)
    query +=
        fmt::format("{}{}={}", query.empty() ? "" : "&", url_encoded(name), url_encoded(value));
  return query;
}

std::string to_json(const IngestedReport& report) {
  Json json = counts_json(report.counts);
  json["format"] = 1;
  json["known"] = report.was_known;
  json["incomplete"] = report.refused ? error_json(*report.refused) : Json(nullptr);
  return json_text(json);
}

Result<IngestedReport> report_from_json(const std::string& text) {
  const Json json = parse_json(text);
  if (!json.is_object() || !json.contains("results"))
    return internal_error("the server's answer is not that of `unflake serve`", "",
                          "check the server's address");
  IngestedReport report;
  report.counts = {number(json, "cases"),     number(json, "results"),       number(json, "passes"),
                   number(json, "failures"),  number(json, "skipped"),       number(json, "flaky"),
                   number(json, "odd_times"), number(json, "packed_outputs")};
  report.was_known = json.value("known", Json()) == true;
  const auto found = json.find("incomplete");
  if (found != json.end() && found->is_object())
    report.refused = usage_error(word(*found, "what"), word(*found, "where"), word(*found, "next"));
  return report;
}

std::string to_json(const Error& error) {
  return json_text(Json{{"format", 1}, {"error", error_json(error)}});
}

}  // namespace unflake
