#include "store/sqlite/database.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
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

namespace {

using Clock = std::chrono::steady_clock;

bool is_busy(int code) {
  const int primary = code & 0xff;
  return primary == SQLITE_BUSY || primary == SQLITE_LOCKED || primary == SQLITE_PROTOCOL;
}

int flags_of(OpenMode mode) {
  switch (mode) {
    case OpenMode::create:
      return SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    case OpenMode::existing:
      return SQLITE_OPEN_READWRITE;
    case OpenMode::read_only:
      break;
    case OpenMode::immutable:
      return SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
  }
  return SQLITE_OPEN_READONLY;
}

// Only a URI can say that a file does not change.
std::string immutable_uri(std::string_view path) {
  std::string uri = path.starts_with('/') ? "file://" : "file:";
  for (const char c : path)
    uri += c == '%' || c == '?' || c == '#' ? fmt::format("%{:02x}", c) : std::string(1, c);
  return uri + "?immutable=1";
}

}  // namespace

Database::Database(std::string path, OpenMode mode, Duration patience)
    : path_(std::move(path)), patience_(patience) {
  sqlite3* handle = nullptr;
  const std::string name = mode == OpenMode::immutable ? immutable_uri(path_) : path_;
  const int code =
      sqlite3_open_v2(name.c_str(), &handle, flags_of(mode) | SQLITE_OPEN_NOMUTEX, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) fail(handle != nullptr ? sqlite3_extended_errcode(handle) : code);
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_handler(handle, wait_for_lock, this);
}

void Database::execute(const char* sql) {
  const int code = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

void Database::execute_patiently(const char* sql) {
  int code = SQLITE_OK;
  for (int waits = 0;; ++waits) {
    code = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
    if (!is_busy(code) || !wait_again(waits)) break;
  }
  if (code != SQLITE_OK) fail(code);
}

int64_t Database::integer(const char* sql) {
  Statement statement(*this, sql);
  Query query(statement);
  return query.next() ? query.integer(0) : 0;
}

std::string Database::text(const char* sql) {
  Statement statement(*this, sql);
  Query query(statement);
  return query.next() ? query.text(0) : "";
}

bool Database::has_moved() const {
  int moved = 0;
  const int code = sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return code == SQLITE_OK && moved != 0;
}

void Database::fail(int code) const {
  sqlite3* handle = handle_.get();
  const std::string detail = handle != nullptr && (sqlite3_errcode(handle) & 0xff) == (code & 0xff)
                                 ? sqlite3_errmsg(handle)
                                 : sqlite3_errstr(code);
  const int primary = code & 0xff;
  const bool from_system = primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR;
  const int system_errno = handle != nullptr && from_system ? sqlite3_system_errno(handle) : 0;
  throw DatabaseFailure(explain_sqlite(code, system_errno, detail, path_));
}

int Database::wait_for_lock(void* self, int waits) {
  return static_cast<Database*>(self)->wait_again(waits) ? 1 : 0;
}

// Writers hold the lock for microseconds, so the first waits are short; SQLite's own are not.
bool Database::wait_again(int waits) {
  const auto now = Clock::now();
  if (waits == 0) waiting_since_ = now;
  if (now - waiting_since_ >= patience_) return false;
  std::this_thread::sleep_for(std::chrono::microseconds(50) * (1 << std::min(waits, 7)));
  return true;
}

Statement::Statement(Database& database, std::string_view sql) : database_(&database) {
  sqlite3_stmt* handle = nullptr;
  const int code = sqlite3_prepare_v3(database.handle(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) database.fail(code);
}

Query::~Query() {
  sqlite3_reset(handle());
  sqlite3_clear_bindings(handle());
}

bool Query::next() {
  const int code = sqlite3_step(handle());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) statement_.database_->fail(code);
  return false;
}

std::string Query::text(int column) const {
  const void* bytes = sqlite3_column_blob(handle(), column);
  const int size = sqlite3_column_bytes(handle(), column);
  return bytes != nullptr ? std::string(static_cast<const char*>(bytes), static_cast<size_t>(size))
                          : std::string();
}

void Query::check(int code) const {
  if (code != SQLITE_OK) statement_.database_->fail(code);
}

Transaction::Transaction(Database& database, Access access) : database_(database) {
  database.execute(access == Access::write ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
  if (database_.in_transaction())
    sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.execute_patiently("COMMIT");
}

}  // namespace unflake
