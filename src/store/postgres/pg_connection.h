#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/values.h"
#include "util/time.h"

namespace unflake {

// PostgreSQL's text holds valid UTF-8 without NUL; the names of tests may be any bytes. What it
// cannot hold becomes the control character SUB and two hexadecimal digits, and so does SUB itself:
// every text comes back as it was, and ordinary ones look the same in psql.
std::string to_stored_text(std::string_view text);
std::string from_stored_text(std::string_view stored);

struct PgBytes {
  std::string_view bytes;
};

// The parameters of one statement: $1, $2 and so on.
class PgValues {
 public:
  template <class... Values>
  explicit PgValues(const Values&... values) {
    values_.reserve(sizeof...(values));
    (add(values), ...);
  }

  // As libpq wants them.
  std::vector<const char*> pointers() const;
  std::vector<int> lengths() const;
  std::vector<int> formats() const;

 private:
  struct Value {
    std::string text;
    bool null = false;
    bool binary = false;
  };

  template <std::integral Number>
  void add(Number number) {
    values_.push_back({std::to_string(static_cast<int64_t>(number))});
  }
  template <class Inner>
  void add(const std::optional<Inner>& value) {
    if (value)
      add(*value);
    else
      values_.push_back({.text = "", .null = true});
  }
  void add(double number);
  void add(const char* text) { add(std::string_view(text)); }
  void add(const std::string& text) { add(std::string_view(text)); }
  void add(std::string_view text);
  void add(PgBytes bytes);
  void add(const std::vector<int64_t>& numbers);
  void add(const std::vector<double>& numbers);
  void add(const std::vector<std::string>& texts);

  std::vector<Value> values_;
};

#define UNFLAKE_LIBPQ_FUNCTIONS(USE) \
  USE(clear)                         \
  USE(cmdTuples)                     \
  USE(connectPoll)                   \
  USE(connectStartParams)            \
  USE(connectionNeedsPassword)       \
  USE(conninfoFree)                  \
  USE(conninfoParse)                 \
  USE(errorMessage)                  \
  USE(exec)                          \
  USE(execParams)                    \
  USE(finish)                        \
  USE(freemem)                       \
  USE(getisnull)                     \
  USE(getlength)                     \
  USE(getvalue)                      \
  USE(ntuples)                       \
  USE(parameterStatus)               \
  USE(resultErrorField)              \
  USE(resultStatus)                  \
  USE(serverVersion)                 \
  USE(setErrorVerbosity)             \
  USE(setNoticeProcessor)            \
  USE(socket)                        \
  USE(status)                        \
  USE(unescapeBytea)

// libpq, without the letters before each name. Linked, it and the twenty libraries behind it would
// make every command start 3 ms later, for the few that have a server to talk to.
struct LibPq {
#define UNFLAKE_DECLARE(name) decltype(&::PQ##name) name = nullptr;
  UNFLAKE_LIBPQ_FUNCTIONS(UNFLAKE_DECLARE)
#undef UNFLAKE_DECLARE
};

// Loads it when it is needed first; throws PgFailure when it is not there.
const LibPq& pq();

// As it may be shown: without passwords, wherever in the url they stand.
std::string url_without_passwords(const std::string& url);

struct PgFailure : StoreFailure {
  // Whether the same work may succeed when it is done again.
  enum class Cure { none, repeat, reconnect, wait };

  PgFailure(Error error, Cure cure) : StoreFailure(std::move(error)), cure(cure) {}
  Cure cure;
};

// What a server, or libpq, said. `state` is the SQLSTATE, empty when no server answered.
struct PgComplaint {
  std::string state;
  std::string message;
  bool while_connecting = false;
};

// What that means for the person whose history this is. `place`: the url as it may be shown.
PgFailure explain_postgres(const PgComplaint& complaint, const std::string& place);

// Finds the SQLSTATE in a message of libpq's verbose form, and its first line without it.
PgComplaint read_complaint(const std::string& verbose_message);

class PgRows {
 public:
  explicit PgRows(PGresult* result) : result_(result) {}

  int size() const { return pq().ntuples(result_.get()); }
  bool empty() const { return size() == 0; }
  int64_t changed() const;  // how many rows the statement wrote

  bool is_null(int row, int column) const {
    return pq().getisnull(result_.get(), row, column) != 0;
  }
  int64_t integer(int row, int column) const;  // 0 for what is none
  double real(int row, int column) const;
  std::string text(int row, int column) const;
  std::string bytes(int row, int column) const;

 private:
  struct Clear {
    void operator()(PGresult* result) const { pq().clear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

// A connection that is made again when it was lost, but never in the middle of a transaction.
// Everything here throws PgFailure. It keeps no state on the server between two transactions, so
// that a pool may stand in between.
class PgConnection {
 public:
  // `patience`: how long to wait for the server, and for the locks of others.
  PgConnection(std::string url, Duration patience);
  ~PgConnection();
  PgConnection(const PgConnection&) = delete;
  PgConnection& operator=(const PgConnection&) = delete;

  template <class... Values>
  PgRows run(const char* sql, const Values&... values) {
    return run_with(sql, PgValues(values...));
  }
  void execute(const std::string& script);  // several statements, none with parameters

  // How often the connection was lost: what was known of the database may be wrong in a new one.
  int generation() const { return generation_; }
  int server_version() const { return pq().serverVersion(handle_.get()); }
  std::string server_encoding() const;
  Duration patience() const { return patience_; }
  const std::string& place() const { return place_; }  // the url as it may be shown
  [[noreturn]] void fail(const PgComplaint& complaint) const;

 private:
  friend class PgTransaction;
  PgRows run_with(const char* sql, const PgValues& values);
  PgRows checked(PGresult* result);
  void connect();
  void connect_once(std::chrono::steady_clock::time_point deadline);
  void make_sure_of_connection();

  struct Finish {
    void operator()(PGconn* handle) const { pq().finish(handle); }
  };
  std::string url_, place_;
  Duration patience_;
  int generation_ = 0;
  bool in_transaction_ = false;
  std::unique_ptr<PGconn, Finish> handle_;
};

enum class PgAccess { read, write };

// Rolls back unless committed. A reader sees one state of the database, whatever others write.
class PgTransaction {
 public:
  explicit PgTransaction(PgConnection& connection, PgAccess access = PgAccess::write);
  PgTransaction(const PgTransaction&) = delete;
  PgTransaction& operator=(const PgTransaction&) = delete;
  ~PgTransaction();
  void commit();

 private:
  PgConnection& connection_;
};

RunRow read_run(const PgRows& rows, int row);  // of UNFLAKE_RUN_COLUMNS, from the first column on

// Runs, column by column.
struct RunColumns {
  std::vector<int64_t> test, started_us, session, attempt, duration_us, outcome, signature, plan;

  explicit RunColumns(std::span<const RunRow> runs);
};

// The columns of `signatures` after the id.
#define UNFLAKE_FAILURE_COLUMNS "signature, kind, file, line, function, expression, message"
Failure read_failure(const PgRows& rows, int row, int kind_column);

}  // namespace unflake
