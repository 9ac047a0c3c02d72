#include "web/outbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "store/spill.h"
#include "util/json.h"
#include "util/unique_fd.h"

namespace unflake {
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

}  // namespace unflake
