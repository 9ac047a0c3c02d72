#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/sqlite/database.h"
#include "store/store.h"

namespace unflake {

// What a project's people and commands did about its tests, and its targets.

void note_step(Database& database, int64_t test, const LifecycleStep& step);
std::vector<LifecycleStep> read_lifecycle(Database& database, int64_t project,
                                          const Window& window);

std::vector<CauseRecord> read_causes(Database& database, int64_t project);
int64_t save_cause(Database& database, int64_t project, const CauseRecord& cause);

void remember_target(Database& database, int64_t project, const TargetRecord& target);
std::optional<TargetRecord> find_target(Database& database, int64_t project,
                                        const std::string& name);

// See open_store and open_store_to_read.
Result<std::unique_ptr<Store>> open_sqlite_store(const StoreAddress& address, Duration patience);
Result<std::unique_ptr<Store>> open_sqlite_store_to_read(const StoreAddress& address,
                                                         Duration patience);

}  // namespace unflake
