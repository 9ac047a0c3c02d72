#include "history/spill.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "history/spill_json.h"
#include "util/environment.h"
#include "util/json.h"

namespace unflake {
Result<void> SpillFile::append(const SessionRecord& session, const RunRecord& run) {
  if (session_ != session.uuid) {
    const Result<void> begun = file_ ? write_line(json_text(to_json(session))) : create(session);
    if (!begun) return begun;
    session_ = session.uuid;
  }
  return write_line(json_text(to_json(run)));
}

Result<void> SpillFile::create(const SessionRecord& session) {
  Error last = internal_error("there is no folder to keep runs in");
  for (const std::string& folder : folders_) {
    std::error_code ignored;  // opening the file tells what is wrong
    std::filesystem::create_directories(folder, ignored);
    path_ = fmt::format("{}/spill-{}.jsonl", folder, session.uuid);
    file_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    const Result<void> written = file_ ? write_line(json_text(to_json(session)))
                                       : internal_error(std::strerror(errno), path_);
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

}  // namespace unflake
