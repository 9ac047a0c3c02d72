#pragma once

#include "history/postgres/libpq.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "history/postgres/pg_failure.h"
#include "history/postgres/pg_values.h"
#include "util/duration.h"

namespace unflake {

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

}  // namespace unflake
