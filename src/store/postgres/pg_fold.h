#pragma once

#include "store/postgres/pg_connection.h"

namespace unflake {

// Adds runs to the sums over tests, when enough of them wait and nobody else does it.
void fold_when_due(PgConnection& connection);
void fold_everything(PgConnection& connection);

}  // namespace unflake
