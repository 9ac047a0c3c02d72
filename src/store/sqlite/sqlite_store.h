#pragma once

#include <memory>

#include "store/store.h"

namespace unflake {

// See open_store and open_store_to_read.
Result<std::unique_ptr<Store>> open_sqlite_store(const StoreAddress& address, Duration patience);
Result<std::unique_ptr<Store>> open_sqlite_store_to_read(const StoreAddress& address,
                                                         Duration patience);

}  // namespace unflake
