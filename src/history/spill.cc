#include "history/spill.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "history/spill_json.h"
#include "util/environment.h"

namespace unflake {
namespace {

// Several times what a run with its bounded output and failure takes.
constexpr size_t longest_line = 4 * 1024 * 1024;
constexpr size_t most_bad_lines = 100;

// What is recorded at once.
constexpr size_t most_in_batch = 2000;
constexpr size_t most_batch_bytes = 16 * 1024 * 1024;

// Lines of a file that nobody vouches for: any bytes, any length.
class LineReader {
 public:
  explicit LineReader(const std::string& path)
      : file_(path, std::ios::binary), buffer_(longest_line) {}

  bool is_open() const { return file_.is_open(); }

  bool next() {
    file_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    if (file_.eof() && file_.gcount() == 0) return false;
    ++number_;
    too_long_ = file_.fail() && !file_.eof() && !file_.bad();
    const auto got = static_cast<size_t>(file_.gcount());
    text_ = std::string_view(buffer_.data(), file_.good() ? got - 1 : got);
    if (!too_long_) return !file_.bad();
    file_.clear();
    file_.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    return true;
  }

  std::string_view text() const { return text_; }
  bool too_long() const { return too_long_; }
  int64_t number() const { return number_; }

 private:
  std::ifstream file_;
  std::vector<char> buffer_;
  std::string_view text_;
  bool too_long_ = false;
  int64_t number_ = 0;
};

class Import {
 public:
  explicit Import(Store& store) : store_(store) {}

  Result<ImportCount> from(const std::string& path) {
    LineReader lines(path);
    if (!lines.is_open())
      return usage_error(fmt::format("cannot read the file: {}", std::strerror(errno)), path);
    while (lines.next()) {
      const Result<void> taken = take(lines);
      if (!taken) return taken.error();
    }
    if (const Result<void> ended = end(); !ended) return ended.error();
    if (session_) return count_;
    return usage_error("the file holds no spilled runs", path,
                       "import a file that unflake named when it could not write the history");
  }

 private:
  // An error is the store's; what is wrong with the line is noted and the import goes on.
  Result<void> take(const LineReader& line) {
    try {
      if (line.too_long()) return note_bad(line, "the line is too long");
      const auto value = nlohmann::json::parse(line.text());
      if (is_session(value)) return begin(session_from(value));
      if (!session_) return note_bad(line, "a run before any session");
      return add(run_from(value));
    } catch (const nlohmann::json::exception& exception) {
      return note_bad(line, exception.what());
    }
  }

  Result<void> add(RunRecord run) {
    batch_bytes_ += run.output.size();
    batch_.push_back(std::move(run));
    return batch_.size() >= most_in_batch || batch_bytes_ >= most_batch_bytes ? flush()
                                                                              : Result<void>();
  }

  Result<void> flush() {
    if (batch_.empty()) return {};
    const Result<void> recorded = store_.record_all(*session_, batch_);
    if (recorded) count_.runs += static_cast<int64_t>(batch_.size());
    batch_.clear();
    batch_bytes_ = 0;
    return recorded;
  }

  Result<void> end() {
    const Result<void> flushed = flush();
    return flushed && session_ ? store_.end_session(*session_) : flushed;
  }

  Result<void> begin(const SessionRecord& session) {
    if (const Result<void> ended = end(); !ended) return ended;
    const Result<SessionId> begun = store_.begin_session(session);
    if (!begun) return begun.error();
    session_ = *begun;
    return {};
  }

  Result<void> note_bad(const LineReader& line, std::string why) {
    if (++count_.bad_lines <= static_cast<int64_t>(most_bad_lines))
      count_.first_bad.push_back({line.number(), std::move(why)});
    return {};
  }

  Store& store_;
  std::optional<SessionId> session_;
  std::vector<RunRecord> batch_;
  size_t batch_bytes_ = 0;
  ImportCount count_;
};

}  // namespace

Result<void> SpillFile::append(const SessionRecord& session, const RunRecord& run) {
  if (session_ != session.uuid) {
    const Result<void> begun = file_ ? write_line(to_json(session).dump()) : create(session);
    if (!begun) return begun;
    session_ = session.uuid;
  }
  return write_line(to_json(run).dump());
}

Result<void> SpillFile::create(const SessionRecord& session) {
  Error last = internal_error("there is no folder to keep runs in");
  for (const std::string& folder : folders_) {
    std::error_code ignored;  // opening the file tells what is wrong
    std::filesystem::create_directories(folder, ignored);
    path_ = fmt::format("{}/spill-{}.jsonl", folder, session.uuid);
    file_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    const Result<void> written =
        file_ ? write_line(to_json(session).dump()) : internal_error(std::strerror(errno), path_);
    if (written) return {};
    last = written.error();
    if (file_) ::unlink(path_.c_str());
    file_.reset();
  }
  path_.clear();
  return last;
}

// All of the line or nothing: a torn line would spoil the one after it.
Result<void> SpillFile::write_line(std::string line) {
  line += '\n';
  const off_t start = ::lseek(file_.get(), 0, SEEK_END);
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      const Error error = internal_error(std::strerror(errno), path_);
      (void)!::ftruncate(file_.get(), start);
      return error;
    }
  }
  return {};
}

std::vector<std::string> default_spill_folders() {
  std::vector<std::string> folders;
  const std::string state = environment_variable("XDG_STATE_HOME"),
                    home = environment_variable("HOME"), temporary = environment_variable("TMPDIR");
  if (state.starts_with('/')) folders.push_back(state + "/unflake");
  if (home.starts_with('/')) folders.push_back(home + "/.local/state/unflake");
  folders.push_back(temporary.starts_with('/') ? temporary : "/tmp");
  return folders;
}

Result<ImportCount> import_spill(Store& store, const std::string& path) {
  return Import(store).from(path);
}

}  // namespace unflake
