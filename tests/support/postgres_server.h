#pragma once

#include <sys/types.h>

#include <string>

#include "support/temp_folder.h"

namespace unflake {

// A real PostgreSQL server of one's own, from Debian's package, that is reached by a socket in its
// folder only. It ends with the process that started it, also when that one is killed.
class PostgresServer {
 public:
  // Unsafe: without waiting for the disk, which tests do not need.
  enum class Durability { unsafe, as_in_production };
  explicit PostgresServer(Durability durability = Durability::unsafe);
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;
  ~PostgresServer();

  // The one that all tests of this process share.
  static PostgresServer& shared();

  // Of a new, empty database that no other test sees.
  std::string new_database();
  // Of a namespace of one's own in a database that all share, which is made much faster.
  std::string new_namespace();
  std::string url_of(const std::string& database, const std::string& user = "unflake") const;
  void execute(const std::string& database, const std::string& sql) const;
  std::string value_of(const std::string& database, const std::string& sql) const;

  void start();
  void stop();  // at once, as a crash would

 private:
  void make_cluster();
  void wait_until_ready();

  TempFolder folder_;
  Durability durability_;
  pid_t owner_ = 0;  // a forked child must not end it
  pid_t server_ = -1;
  int databases_ = 0, namespaces_ = 0;
};

}  // namespace unflake
