#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "store/store.h"
#include "support/postgres_server.h"
#include "support/temp_folder.h"

namespace unflake {

// An empty history of a test's own, which goes when the test is over.
class FreshHistory {
 public:
  virtual ~FreshHistory() = default;
  virtual std::string url() const = 0;
};

// A kind of database that histories can be in: what is true of a store is tested on each.
struct StoreBackend {
  std::string name;
  std::unique_ptr<FreshHistory> (*make)();

  friend std::ostream& operator<<(std::ostream& out, const StoreBackend& backend) {
    return out << backend.name;
  }
};

class FreshFile : public FreshHistory {
 public:
  std::string url() const override { return folder_.file("deep/er/history.db"); }

 private:
  TempFolder folder_;
};

class FreshDatabase : public FreshHistory {
 public:
  std::string url() const override { return url_; }

 private:
  std::string url_ = PostgresServer::shared().new_namespace();
};

inline std::vector<StoreBackend> store_backends() {
  return {
      {"Sqlite", []() -> std::unique_ptr<FreshHistory> { return std::make_unique<FreshFile>(); }},
      {"Postgres",
       []() -> std::unique_ptr<FreshHistory> { return std::make_unique<FreshDatabase>(); }}};
}

}  // namespace unflake
