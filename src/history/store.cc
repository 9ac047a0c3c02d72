#include "history/store.h"

#include "history/postgres/url.h"
#include "history/sqlite/sqlite_store.h"

namespace unflake {
namespace {

Error no_postgres(const StoreAddress& address) {
  return internal_error("not there yet", to_string(address));
}

}  // namespace

bool is_postgres(const StoreAddress& address) {
  return address.url.starts_with("postgres://") || address.url.starts_with("postgresql://");
}

std::string to_string(const StoreAddress& address) {
  return is_postgres(address) ? url_without_passwords(address.url) : address.url;
}

Result<std::unique_ptr<Store>> open_store(const StoreAddress& address, Duration patience) {
  if (is_postgres(address)) return no_postgres(address);
  return open_sqlite_store(address, patience);
}

Result<std::unique_ptr<Store>> open_store_to_read(const StoreAddress& address, Duration patience) {
  if (is_postgres(address)) return no_postgres(address);
  return open_sqlite_store_to_read(address, patience);
}

}  // namespace unflake
