#pragma once

#include <sqlite3.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/values.h"
#include "util/time.h"

namespace unflake {

struct DatabaseFailure : StoreFailure {
  using StoreFailure::StoreFailure;
};

// What SQLite's extended result code means for the person whose history this is.
Error explain_sqlite(int code, int system_errno, const std::string& detail,
                     const std::string& path);

enum class OpenMode {
  create,     // to write, and made when it is not there
  existing,   // to write, if it is there
  read_only,  // through the files that a writer keeps beside it
  immutable,  // without any such file: nobody writes as long as it is open
};

// A connection. Everything here throws DatabaseFailure, and nothing here is shared by threads.
class Database {
 public:
  // `patience`: how long to wait for a lock that another process holds.
  Database(std::string path, OpenMode mode, Duration patience);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void execute(const char* sql);
  int64_t integer(const char* sql);  // the one value that a query gives; 0 when it gives none
  std::string text(const char* sql);

  // Some locks are refused without asking the busy handler; this waits for those too.
  void execute_patiently(const char* sql);

  bool read_only() const { return sqlite3_db_readonly(handle_.get(), "main") == 1; }
  bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }
  int64_t changes() const { return sqlite3_changes64(handle_.get()); }
  bool has_moved() const;
  const std::string& path() const { return path_; }
  sqlite3* handle() const { return handle_.get(); }

  [[noreturn]] void fail(int code) const;

 private:
  static int wait_for_lock(void* self, int waits);
  bool wait_again(int waits);

  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  std::string path_;
  Duration patience_;
  std::chrono::steady_clock::time_point waiting_since_;
  std::unique_ptr<sqlite3, Close> handle_;
};

struct Blob {
  std::string_view bytes;
};

class Statement {
 public:
  Statement(Database& database, std::string_view sql);

  // Runs to the end; for statements that give no rows.
  template <class... Values>
  void run(const Values&... values);

 private:
  friend class Query;
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };
  Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

// One execution of a statement; gives the statement back when it ends.
class Query {
 public:
  template <class... Values>
  explicit Query(Statement& statement, const Values&... values) : statement_(statement) {
    [[maybe_unused]] int index = 0;
    (check(bind(++index, values)), ...);
  }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  ~Query();

  bool next();  // false: there is no further row
  bool is_null(int column) const { return sqlite3_column_type(handle(), column) == SQLITE_NULL; }
  int64_t integer(int column) const { return sqlite3_column_int64(handle(), column); }
  double real(int column) const { return sqlite3_column_double(handle(), column); }
  std::string text(int column) const;  // of a blob too

 private:
  sqlite3_stmt* handle() const { return statement_.handle_.get(); }
  void check(int code) const;
  template <std::integral Number>
  int bind(int index, Number value) {
    return sqlite3_bind_int64(handle(), index, static_cast<int64_t>(value));
  }
  template <std::integral Number>
  int bind(int index, std::optional<Number> value) {
    return value ? bind(index, *value) : sqlite3_bind_null(handle(), index);
  }
  int bind(int index, double value) { return sqlite3_bind_double(handle(), index, value); }
  int bind(int index, std::string_view text) {
    return sqlite3_bind_text64(handle(), index, text.data(), text.size(), SQLITE_TRANSIENT,
                               SQLITE_UTF8);
  }
  int bind(int index, Blob blob) {
    return sqlite3_bind_blob64(handle(), index, blob.bytes.data(), blob.bytes.size(),
                               SQLITE_TRANSIENT);
  }

  Statement& statement_;
};

template <class... Values>
void Statement::run(const Values&... values) {
  Query query(*this, values...);
  while (query.next()) {
  }
}

enum class Access { read, write };

// Rolls back unless committed. Writers take the lock at the start: a reader that becomes a writer
// half-way is refused when somebody else wrote in between.
class Transaction {
 public:
  explicit Transaction(Database& database, Access access = Access::write);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Database& database_;
};

// Opens or creates a history and brings it to the newest schema. A file that is not a history of
// this or an older version of unflake is refused and stays as it is, byte for byte.
std::unique_ptr<Database> open_history(const std::string& path, Duration patience);

// Opens a history of the newest schema for questions only, also where nothing can be written.
std::unique_ptr<Database> open_history_to_read(const std::string& path, Duration patience);

}  // namespace unflake
