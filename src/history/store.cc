#include "history/store.h"

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
  const size_t scheme = address.url.find("://");
  const size_t at = address.url.find('@');
  if (!is_postgres(address) || at == std::string::npos) return address.url;
  const size_t password = address.url.find(':', scheme + 3);
  if (password > at) return address.url;
  return address.url.substr(0, password) + address.url.substr(at);
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
