#include "store/sqlite/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "store/store.h"
#include "util/files.h"
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

namespace {

constexpr int64_t application_id = 0x756e666b;  // "unfk"

[[noreturn]] void refuse(ErrorKind kind, std::string what, const std::string& path,
                         std::string next) {
  throw DatabaseFailure({kind, std::move(what), path, std::move(next)});
}

void check_version(int64_t version, const std::string& path) {
  const auto newest = static_cast<int64_t>(newest_schema());
  if (version > newest)
    refuse(ErrorKind::internal,
           fmt::format("the history was made by a newer unflake: its format is version {}, this "
                       "unflake knows up to version {}",
                       version, newest),
           path, "upgrade unflake, or give another file with --store OTHER");
}

[[noreturn]] void refuse_foreign(const std::string& path) {
  refuse(ErrorKind::usage, "the file belongs to another application and is not an unflake history",
         path, "give another file with --store FILE");
}

[[noreturn]] void refuse_garbage(const std::string& path) {
  refuse(ErrorKind::usage, "the file is not a history: it is not an SQLite database", path,
         "give another file with --store FILE, or move this one away to start a new history");
}

// The head of every SQLite file. Read without SQLite, because SQLite may already write to a file
// (a hot journal, a left-over log) when it opens it.
struct FileHeader {
  std::array<unsigned char, 100> bytes{};
  size_t size = 0;

  bool is_sqlite() const {
    return size == bytes.size() && std::memcmp(bytes.data(), "SQLite format 3", 16) == 0;
  }
  int64_t number_at(size_t offset) const {
    int64_t number = 0;
    for (size_t i = 0; i < 4; ++i) number = number << 8 | bytes[offset + i];
    return number;
  }
  int64_t page_size() const {
    const int64_t size = bytes[16] << 8 | bytes[17];
    return size == 1 ? 65'536 : size;  // the largest size does not fit into the two bytes
  }
  int64_t user_version() const { return number_at(60); }
  int64_t application() const { return number_at(68); }
};

FileHeader read_header(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  FileHeader header;
  if (!file) throw DatabaseFailure(explain_sqlite(SQLITE_CANTOPEN, errno, "", path));
  while (header.size < header.bytes.size()) {
    const ssize_t got =
        ::read(file.get(), header.bytes.data() + header.size, header.bytes.size() - header.size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DatabaseFailure(explain_sqlite(SQLITE_IOERR, errno, "", path));
    if (got == 0) break;
    header.size += static_cast<size_t>(got);
  }
  return header;
}

// Most applications leave the id at 0, so a file without one is foreign as soon as it has a table.
// The tables are counted first: a process that creates a history writes them and the id at once.
bool is_foreign(Database& database) {
  const bool has_tables = database.integer("SELECT count(*) FROM sqlite_schema") > 0;
  const int64_t id = database.integer("PRAGMA application_id");
  return id != application_id && (id != 0 || has_tables);
}

bool is_foreign(const std::string& path, Duration patience) {
  try {
    Database reader(path, OpenMode::read_only, patience);
    return is_foreign(reader);
  } catch (const DatabaseFailure&) {
    return false;  // such as a creation that was interrupted; opening it for good says more
  }
}

// SQLite notices when whole pages are missing at the end, and fills up what is left of a page with
// zeros. While somebody writes or has died writing, there is a log or a journal.
void refuse_torn_page(const FileHeader& header, int64_t size, const std::string& path) {
  const bool in_use =
      std::filesystem::exists(path + "-wal") || std::filesystem::exists(path + "-journal");
  if (!in_use && header.page_size() > 0 && size % header.page_size() != 0)
    throw DatabaseFailure(explain_sqlite(SQLITE_CORRUPT, 0, "its end is missing", path));
}

// Nothing when there is no file yet.
std::optional<int64_t> size_of_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::nullopt;
    throw DatabaseFailure(explain_sqlite(SQLITE_CANTOPEN, errno, "", path));
  }
  if (S_ISDIR(status.st_mode))
    refuse(ErrorKind::usage, "the history is a file, and this is a folder", path,
           "name a file in it: --store FOLDER/history.db");
  if (!S_ISREG(status.st_mode))
    refuse(ErrorKind::usage, "the history is a regular file, and this is not one", path,
           "give another file with --store FILE");
  return status.st_size;
}

void refuse_what_is_not_ours(const std::string& path, Duration patience) {
  const auto size = size_of_file(path);
  if (!size) return;
  const FileHeader header = read_header(path);
  if (header.size == 0) return;
  if (!header.is_sqlite()) refuse_garbage(path);
  if (header.application() == application_id) {
    check_version(header.user_version(), path);
    refuse_torn_page(header, *size, path);
    return;
  }
  if (header.application() != 0 || is_foreign(path, patience)) refuse_foreign(path);
}

std::string folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

bool can_write_in(const std::string& folder) {
  return ::access(folder.c_str(), W_OK | X_OK) == 0;
}

constexpr const char* record_elsewhere =
    "give a file in another folder with --store FILE, or use --no-history";

// SQLite keeps files beside the history, and would only say that it does not find them.
void make_folder_for(const std::string& path) {
  const std::string folder = folder_of(path);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    refuse(ErrorKind::internal,
           fmt::format("cannot make the folder of the history: {}", error.message()), folder,
           record_elsewhere);
  if (!can_write_in(folder))
    refuse(ErrorKind::internal,
           fmt::format("the history's folder is read-only: {}", std::strerror(errno)), path,
           record_elsewhere);
}

void apply(Database& database, int64_t version) {
  database.execute(migration(static_cast<size_t>(version), Dialect::sqlite).c_str());
  database.execute(
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", application_id, version)
          .c_str());
}

void migrate(Database& database) {
  if (is_foreign(database)) refuse_foreign(database.path());
  const auto newest = static_cast<int64_t>(newest_schema());
  while (database.integer("PRAGMA user_version") != newest) {
    Transaction transaction(database);
    const int64_t version = database.integer("PRAGMA user_version");  // others may be faster
    check_version(version, database.path());
    if (version < 0) refuse_foreign(database.path());
    if (version < newest) apply(database, version + 1);
    transaction.commit();
  }
}

// With a log beside the file, a commit is one write that survives the death of the process, and
// readers never wait. Where shared memory is missing, SQLite stays with a rollback journal; then
// only a full synchronisation keeps the file whole when the machine dies.
void choose_journal(Database& database) {
  database.execute_patiently("PRAGMA journal_mode = WAL");
  const bool log = database.text("PRAGMA journal_mode") == "wal";
  database.execute(log ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL");
}

// References are checked after a migration only, which may have to take a table away and make it
// anew. A page per run goes to the log; 4000 of them are checkpointed at once, because the cost of
// that is in the synchronisation and not in the number of pages.
constexpr const char* writer_settings =
    "PRAGMA foreign_keys = ON;"
    "PRAGMA secure_delete = OFF;"
    "PRAGMA wal_autocheckpoint = 4000;"
    "PRAGMA journal_size_limit = 67108864;";

constexpr const char* settings =
    "PRAGMA trusted_schema = OFF;"
    "PRAGMA cell_size_check = ON;"
    "PRAGMA temp_store = MEMORY;"
    "PRAGMA cache_size = -8000;";

[[noreturn]] void refuse_missing(const std::string& path) {
  refuse(ErrorKind::usage, "there is no history yet", path,
         "`unflake run TARGET` records every run");
}

bool has_bytes(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return !error && size > 0;
}

// A reader cleans up after a writer that died, where it can. Where it cannot, what the writer left
// decides: a log is readable with its index only, and a history without one does not change.
OpenMode mode_for_reading(const std::string& path) {
  if (can_write_in(folder_of(path))) return OpenMode::existing;
  const bool has_index = std::filesystem::exists(path + "-shm");
  if (has_bytes(path + "-wal") && !has_index)
    refuse(ErrorKind::internal,
           "the history was not closed, and its folder is read-only: its log cannot be read", path,
           "copy the file and the one that ends in -wal to another folder, and read the copy with "
           "--store FILE");
  const bool in_use = std::filesystem::exists(path + "-wal") && has_index;
  return in_use || has_bytes(path + "-journal") ? OpenMode::read_only : OpenMode::immutable;
}

void require_newest_schema(Database& database) {
  if (is_foreign(database)) refuse_foreign(database.path());
  const int64_t version = database.integer("PRAGMA user_version");
  check_version(version, database.path());
  const auto newest = static_cast<int64_t>(newest_schema());
  if (version != newest)
    refuse(ErrorKind::internal,
           fmt::format("the history's format is version {}, this unflake reads version {}", version,
                       newest),
           database.path(), "`unflake run TARGET` brings it up to date");
}

}  // namespace

std::unique_ptr<Database> open_history(const std::string& path, Duration patience) {
  refuse_what_is_not_ours(path, patience);
  make_folder_for(path);
  auto database = std::make_unique<Database>(path, OpenMode::create, patience);
  if (database->read_only())
    refuse(ErrorKind::internal, "the history cannot be written to: check its permissions", path,
           record_elsewhere);
  database->execute_patiently(settings);
  migrate(*database);
  database->execute_patiently(writer_settings);
  choose_journal(*database);
  return database;
}

std::unique_ptr<Database> open_history_to_read(const std::string& path, Duration patience) {
  if (size_of_file(path).value_or(0) == 0) refuse_missing(path);
  refuse_what_is_not_ours(path, patience);
  auto database = std::make_unique<Database>(path, mode_for_reading(path), patience);
  database->execute_patiently(settings);
  database->execute_patiently("PRAGMA query_only = ON");
  require_newest_schema(*database);
  return database;
}

}  // namespace unflake
