#pragma once

#include <memory>

#include "store/store.h"

namespace unflake {

Result<std::unique_ptr<Store>> open_postgres_store(const StoreAddress& address, Duration patience);
Result<std::unique_ptr<Store>> open_postgres_store_to_read(const StoreAddress& address,
                                                           Duration patience);

}  // namespace unflake
