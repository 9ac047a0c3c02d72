#include "web/delivery.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <vector>

#include "store/recorder.h"
#include "store/values.h"
#include "util/files.h"
#include "util/json.h"
#include "util/text.h"
#include "web/http_client.h"

namespace unflake {
namespace {

using State = Delivered::State;

constexpr size_t piece_bytes = 256 * 1024;

HttpRequest request_to(const ServerAccess& server, const std::string& method,
                       const std::string& query) {
  HttpRequest request;
  request.method = method;
  std::string base = server.url;
  while (base.ends_with('/')) base.pop_back();
  request.url = base + "/api/v1/results" + (query.empty() ? "" : "?" + query);
  request.headers.emplace_back("Authorization", "Bearer " + server.token);
  request.content_type = "application/xml";
  request.silence = std::chrono::minutes(5);  // the server answers when all runs are recorded
  return request;
}

// In the server's words where it has some.
Error error_of(const HttpResponse& response, const ServerAccess& server) {
  Error error = usage_error(fmt::format("the server answers with status {}", response.status),
                            server.url, "check the server's address and its log");
  const auto json = parse_json(response.body);
  if (!json.is_object() || !json.contains("error") || !json["error"].is_object()) return error;
  const auto take = [&](const char* name, std::string& into) {
    const auto found = json["error"].find(name);
    if (found != json["error"].end() && found->is_string())
      into = shorten(found->get<std::string>(), 1000);
  };
  take("what", error.what);
  take("where", error.where);
  take("next", error.next);
  return error;
}

bool is_for_now(int status) {
  return status >= 500 || status == 408 || status == 425 || status == 429;
}

Delivered judge(const Result<HttpResponse>& response, const ServerAccess& server) {
  Delivered delivered;
  if (!response) {
    const bool is_usage = response.error().kind == ErrorKind::usage;
    return {is_usage ? State::rejected : State::later, {}, response.error()};
  }
  if (response->status == 200) return {State::taken, {}, {}};
  delivered.state = is_for_now(response->status) ? State::later : State::rejected;
  delivered.error = error_of(*response, server);
  return delivered;
}

BodySource body_of(const ReportFile& file, ByteSource bytes) {
  auto piece = std::make_shared<std::vector<char>>(piece_bytes);
  return [&file, bytes = std::move(bytes), piece,
          hash = std::make_shared<ContentHash>()]() mutable -> Result<std::string_view> {
    const auto count = bytes(*piece);
    if (!count) return count.error();
    const std::string_view read(piece->data(), *count);
    hash->add(read);
    // Under the same name in the history there must be the same contents.
    if (read.empty() && std::move(*hash).hex() != file.hash())
      return usage_error("has changed while it was sent", file.name(), "ingest it again");
    return read;
  };
}

}  // namespace

Delivered knock(const ServerAccess& server) {
  return judge(send(request_to(server, "GET", "")), server);
}

Delivered deliver(const ReportFile& file, const Delivery& delivery, const ServerAccess& server) {
  const auto bytes = file.bytes();
  if (!bytes) return {State::rejected, {}, bytes.error()};
  HttpRequest request = request_to(server, "POST", to_query(to_fields(delivery)));
  request.source = body_of(file, *bytes);
  const auto response = send(request);
  Delivered delivered = judge(response, server);
  if (delivered.state != State::taken) return delivered;
  const auto report = report_from_json(response->body);
  if (!report) return {State::rejected, {}, report.error()};
  delivered.report = *report;
  return delivered;
}

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using State = Delivered::State;

constexpr int format_version = 1;

Error disk_error(const std::string& what, const std::string& where) {
  return internal_error(fmt::format("{}: {}", what, ::strerror(errno)), where,
                        "make room there, or ingest the report again when the server is back");
}

// Under its name only when all of it is on the disk.
Result<void> write_durably(const std::string& path, const ByteSource& bytes) {
  const std::string unfinished = fmt::format("{}.{}.tmp", path, ::getpid());
  UniqueFd fd(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return disk_error("cannot be written", unfinished);
  std::vector<char> piece(256 * 1024);
  for (;;) {
    const auto count = bytes(piece);
    if (!count) return count.error();
    if (*count == 0) break;
    for (size_t at = 0; at < *count;) {
      const ssize_t written = ::write(fd.get(), piece.data() + at, *count - at);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        const Error error = disk_error("cannot be written", unfinished);
        ::unlink(unfinished.c_str());
        return error;
      }
      at += static_cast<size_t>(written);
    }
  }
  if (::fsync(fd.get()) != 0 || ::rename(unfinished.c_str(), path.c_str()) != 0)
    return disk_error("cannot be written", path);
  return {};
}

Result<void> sync_folder(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return disk_error("cannot be written", folder);
  return {};
}

struct Letter {
  std::string server;
  Delivery delivery;
};

std::optional<Letter> read_letter(const std::string& path) {
  std::ifstream in(path);
  const Json json = parse_json(std::string(std::istreambuf_iterator<char>(in), {}));
  if (!json.is_object() || json.value("format", 0) != format_version) return std::nullopt;
  QueryFields fields;
  if (const auto found = json.find("fields"); found != json.end() && found->is_object())
    for (const auto& [name, value] : found->items())
      if (value.is_string()) fields[name] = value.get<std::string>();
  return Letter{json.value("server", ""), delivery_from(fields)};
}

// The names of what waits, without their endings, oldest first.
std::vector<std::string> waiting_in(const std::string& folder) {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;
    const auto time = fs::last_write_time(at->path(), gone);
    if (at->path().extension() == ".json" && !gone) found.emplace_back(time, at->path().stem());
  }
  std::ranges::sort(found);
  std::vector<std::string> names;
  for (auto& [time, name] : found) names.push_back(std::move(name));
  return names;
}

}  // namespace

std::string default_outbox_folder() {
  for (const std::string& folder : default_spill_folders()) {
    std::error_code failed;
    fs::create_directories(folder + "/outbox", failed);
    if (!failed && ::access((folder + "/outbox").c_str(), W_OK) == 0) return folder + "/outbox";
  }
  return default_spill_folders().back() + "/outbox";
}

Result<void> Outbox::keep(const ReportFile& file, const Delivery& delivery,
                          const std::string& server) {
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  const auto bytes = file.bytes();
  if (!bytes) return bytes.error();
  const std::string name = session_uuid_of(file, delivery.settings);
  if (const auto written = write_durably(path(name + ".xml"), *bytes); !written) return written;
  const Json letter{
      {"format", format_version}, {"server", server}, {"fields", to_fields(delivery)}};
  const std::string text = json_text(letter, 2) + "\n";
  if (const auto written = write_durably(path(name + ".json"), bytes_of_text(text)); !written)
    return written;
  return sync_folder(folder_);
}

Result<Outbox::Flushed> Outbox::flush(const std::string& server, const Send& send) {
  Flushed flushed;
  const auto names = waiting_in(folder_);
  if (names.empty()) return flushed;
  const UniqueFd lock(::open(path("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return disk_error("the outbox cannot be locked", folder_);
  flushed.is_busy = ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0;
  bool is_away = flushed.is_busy;
  for (const std::string& name : names) {
    const auto letter = read_letter(path(name + ".json"));
    const auto file = ReportFile::open(path(name + ".xml"));
    if (!letter || !file || letter->server != server || is_away) {
      ++(letter && letter->server == server ? flushed.left : flushed.elsewhere);
      continue;
    }
    const Delivered delivered = send(*file, letter->delivery);
    is_away = delivered.state == State::later;
    if (is_away) {
      ++flushed.left;
      continue;
    }
    if (delivered.state == State::rejected) {
      flushed.problems.push_back(delivered.error);
      ::rename(path(name + ".json").c_str(), path(name + ".rejected").c_str());
      continue;
    }
    ++flushed.delivered;
    ::unlink(path(name + ".json").c_str());
    ::unlink(path(name + ".xml").c_str());
  }
  return flushed;
}

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
