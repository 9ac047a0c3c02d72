#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "store/postgres/pg_connection.h"
#include "store/store.h"

namespace unflake {

// Refuses a server or a database that a history cannot be in. Throws PgFailure, as all of these.
void check_server(const PgConnection& connection, int version, const std::string& encoding);

// Makes the tables, or brings them up to date. Whoever comes at the same time waits for the first.
void make_schema(PgConnection& connection);
void require_newest_schema(PgConnection& connection);

int64_t make_project(PgConnection& connection, const std::string& name);
// A number that no project has when there is none of that name.
int64_t find_project(PgConnection& connection, const std::string& name);

Result<std::unique_ptr<Store>> open_postgres_store(const StoreAddress& address, Duration patience);
Result<std::unique_ptr<Store>> open_postgres_store_to_read(const StoreAddress& address,
                                                           Duration patience);

}  // namespace unflake
