#include "store/postgres/pg_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/postgres_server.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

Error error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const PgFailure& failure) {
    return failure.error;
  }
  ADD_FAILURE() << "nothing failed";
  return {};
}

Error error_of_connecting(const std::string& url) {
  return error_of([&] { PgConnection connection(url, 5s); });
}

void terminate(int64_t backend) {
  PostgresServer::shared().execute(
      "postgres", "SELECT pg_terminate_backend(" + std::to_string(backend) + ", 10000)");
}

TEST(PgConnection, Gives_back_every_kind_of_value) {
  PgConnection connection(PostgresServer::shared().url_of("postgres"), 5s);
  const std::string any_bytes("a\0\xff\\\"',{}\x1a", 10);
  const std::vector<std::string> texts = {any_bytes, "", "NULL"};
  const PgRows rows = connection.run(
      "SELECT $1::bigint, $2::float8, $3::text, $4::bytea, $5::bigint, cardinality($6::bigint[]),"
      " ($7::text[])[1], ($7::text[])[2], ($7::text[])[3]",
      INT64_MIN, 1.5e300, any_bytes, PgBytes{any_bytes}, std::optional<int64_t>(),
      std::vector<int64_t>{1, -2, 3}, texts);
  EXPECT_EQ(rows.integer(0, 0), INT64_MIN);
  EXPECT_EQ(rows.real(0, 1), 1.5e300);
  EXPECT_EQ(rows.text(0, 2), any_bytes);
  EXPECT_EQ(rows.bytes(0, 3), any_bytes);
  EXPECT_TRUE(rows.is_null(0, 4));
  EXPECT_EQ(rows.integer(0, 5), 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rows.text(0, 6 + i), texts[static_cast<size_t>(i)]);
}

TEST(PgConnection, Is_made_again_by_the_call_after_the_one_that_lost_it) {
  PgConnection connection(PostgresServer::shared().url_of("postgres"), 5s);
  terminate(connection.run("SELECT pg_backend_pid()").integer(0, 0));
  EXPECT_THAT(error_of([&] { connection.run("SELECT 1"); }).what, HasSubstr("connection"));
  EXPECT_EQ(connection.run("SELECT 1").integer(0, 0), 1);
  EXPECT_EQ(connection.generation(), 1);
}

TEST(PgConnection, Does_not_go_on_with_half_a_transaction_when_it_was_lost) {
  PgConnection connection(PostgresServer::shared().url_of("postgres"), 5s);
  {
    PgTransaction transaction(connection);
    terminate(connection.run("SELECT pg_backend_pid()").integer(0, 0));
    EXPECT_THAT(error_of([&] { connection.run("SELECT 1"); }).what, HasSubstr("connection"));
    EXPECT_THAT(error_of([&] { connection.run("SELECT 1"); }).what, HasSubstr("lost"));
    EXPECT_THAT(error_of([&] { transaction.commit(); }).what, HasSubstr("lost"));
  }
  EXPECT_EQ(connection.run("SELECT 1").integer(0, 0), 1);
}

TEST(PgConnection, Rolls_back_what_was_not_committed) {
  const std::string url = PostgresServer::shared().new_database();
  PgConnection connection(url, 5s);
  connection.execute("CREATE TABLE t (i BIGINT)");
  {
    PgTransaction transaction(connection);
    connection.run("INSERT INTO t VALUES (1)");
  }
  EXPECT_EQ(connection.run("SELECT count(*) FROM t").integer(0, 0), 0);
}

TEST(PgConnection, Says_what_to_do_about_a_wrong_password_and_does_not_show_it) {
  PostgresServer::shared().execute(
      "postgres", "DROP ROLE IF EXISTS locked; CREATE ROLE locked LOGIN PASSWORD 'right'");
  std::string url = PostgresServer::shared().url_of("postgres", "locked:wr0ng");
  const Error error = error_of_connecting(url);
  EXPECT_THAT(error.what, HasSubstr("password"));
  EXPECT_THAT(error.next, HasSubstr("PGPASSWORD"));
  EXPECT_EQ(error.kind, ErrorKind::usage);
  EXPECT_THAT(to_string(error), Not(HasSubstr("wr0ng")));
  EXPECT_THAT(error_of_connecting(PostgresServer::shared().url_of("postgres", "locked")).what,
              HasSubstr("asks for a password"));
}

TEST(PgConnection, Says_what_to_do_about_a_missing_database) {
  const Error error = error_of_connecting(PostgresServer::shared().url_of("missing"));
  EXPECT_THAT(error.what, HasSubstr("no such database"));
  EXPECT_THAT(error.next, HasSubstr("createdb"));
}

TEST(PgConnection, Says_that_no_server_is_there) {
  const Error error = error_of_connecting("postgres:///db?host=/nowhere");
  EXPECT_THAT(error.what, HasSubstr("cannot reach"));
  EXPECT_THAT(error.where, HasSubstr("/nowhere"));
}

TEST(PgConnection, Shows_no_password_of_a_url_that_cannot_be_read) {
  for (const std::string url : {"postgres://me:s3cret@host:port/db", "postgres://me:s3cret@[::/db",
                                "postgres://me:s3/cret@host/db"})
    EXPECT_THAT(to_string(error_of_connecting(url)), Not(HasSubstr("s3"))) << url;
}

TEST(PgConnection, Waits_for_a_server_that_is_starting) {
  PostgresServer own;
  PgConnection connection(own.url_of("postgres"), 20s);
  own.stop();
  EXPECT_THAT(to_string(error_of([&] { connection.run("SELECT 1"); })), HasSubstr("connection"));
  EXPECT_THAT(error_of([&] { connection.run("SELECT 1"); }).what, HasSubstr("cannot reach"));
  own.start();
  EXPECT_EQ(connection.run("SELECT 1").integer(0, 0), 1);
}

}  // namespace
}  // namespace unflake
