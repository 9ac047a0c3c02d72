#include "store/store.h"

#include "store/postgres/pg_connection.h"
#include "store/postgres/postgres_store.h"
#include "store/sqlite/sqlite_store.h"

namespace unflake {
bool is_postgres(const StoreAddress& address) {
  return address.url.starts_with("postgres://") || address.url.starts_with("postgresql://");
}

std::string to_string(const StoreAddress& address) {
  return is_postgres(address) ? url_without_passwords(address.url) : address.url;
}

Result<std::vector<TestSummary>> Store::summarise_tests(std::span<const TestId> tests) {
  std::vector<TestSummary> summaries;
  for (const TestId& test : tests) {
    auto summary = summarise_test(test);
    if (!summary) return summary.error();
    if (*summary) summaries.push_back(std::move(**summary));
  }
  return summaries;
}

Result<std::unique_ptr<Store>> open_store(const StoreAddress& address, Duration patience) {
  if (is_postgres(address)) return open_postgres_store(address, patience);
  return open_sqlite_store(address, patience);
}

Result<std::unique_ptr<Store>> open_store_to_read(const StoreAddress& address, Duration patience) {
  if (is_postgres(address)) return open_postgres_store_to_read(address, patience);
  return open_sqlite_store_to_read(address, patience);
}

}  // namespace unflake
