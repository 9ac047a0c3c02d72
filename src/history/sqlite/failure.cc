#include "history/sqlite/failure.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>
#include <cstring>

#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* use_another = "give another file with --store FILE";

Error cannot_open(int system_errno, const std::string& path) {
  if (system_errno == 0)
    return internal_error(
        "cannot open the history database", path,
        "check that its folder can be written to (SQLite keeps files beside it), or " +
            std::string(use_another));
  return internal_error(
      fmt::format("cannot open the history database: {}", std::strerror(system_errno)), path,
      fmt::format("check the permissions of the file and its folder, or {}", use_another));
}

Error read_only(int code, const std::string& path) {
  if (code == SQLITE_READONLY_DBMOVED)
    return internal_error("the history database was moved or deleted while in use", path,
                          "put it back; runs that it lacks are kept");
  return internal_error(
      "the history database cannot be written to", path,
      fmt::format("check the permissions of the file and its folder, or {}", use_another));
}

Error io_error(int code, int system_errno, const std::string& detail, const std::string& path) {
  const std::string reason = system_errno != 0 ? std::strerror(system_errno) : detail;
  const bool shared_memory = code == SQLITE_IOERR_SHMOPEN || code == SQLITE_IOERR_SHMMAP ||
                             code == SQLITE_IOERR_SHMSIZE || code == SQLITE_IOERR_SHMLOCK;
  return internal_error(
      fmt::format("input/output error on the history database: {}", reason), path,
      shared_memory
          ? "its file system may lack shared memory or locks: keep the history on a local "
            "disk with --store FILE"
          : "check the disk and its free space, then try again");
}

}  // namespace

Error explain_sqlite(int code, int system_errno, const std::string& detail,
                     const std::string& path) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return internal_error("another process keeps the history database locked", path,
                            fmt::format("end that process (`fuser {}` names it), or {}",
                                        shell_quote(path), use_another));
    case SQLITE_FULL:
      return internal_error("the disk of the history database is full", path,
                            fmt::format("free some space, or {}", use_another));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return internal_error(
          fmt::format("the history database is damaged: {}", detail), path,
          fmt::format("save what is left with `sqlite3 {} .recover | sqlite3 NEW.db`, or move the "
                      "file away to start a new history",
                      shell_quote(path)));
    case SQLITE_CANTOPEN:
      return cannot_open(system_errno, path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return read_only(code, path);
    case SQLITE_IOERR:
      return io_error(code, system_errno, detail, path);
    default:
      return internal_error(fmt::format("the history database failed: {} ({})", detail, code), path,
                            "try again; if it stays, move the file away and report this");
  }
}

}  // namespace unflake
