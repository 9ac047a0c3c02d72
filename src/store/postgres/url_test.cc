#include "store/postgres/pg_connection.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

TEST(PostgresUrl, Is_shown_as_it_stands_when_it_holds_no_password) {
  for (const std::string url :
       {"postgres://host/db", "postgresql://me@host:5433/db", "postgres:///db?host=/run/pg",
        "postgres://me@/db?host=/tmp/x&sslmode=require", "postgres://host:5433/db"})
    EXPECT_EQ(url_without_passwords(url), url);
}

TEST(PostgresUrl, Is_shown_without_a_password) {
  EXPECT_EQ(url_without_passwords("postgres://me:secret@host/db"), "postgres://me@host/db");
  EXPECT_EQ(url_without_passwords("postgres://me:sec@ret@host/db"), "postgres://me@host/db");
  EXPECT_EQ(url_without_passwords("postgres://me:a?b/c@host/db?x=y"), "postgres://me@host/db?x=y");
  EXPECT_EQ(url_without_passwords("postgres://host/db?password=secret"), "postgres://host/db");
  EXPECT_EQ(url_without_passwords("postgres://host/db?user=me&password=secret&sslpassword=x&a=b"),
            "postgres://host/db?user=me&a=b");
}

}  // namespace
}  // namespace unflake
