#include "causes/cause_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/history_runs.h"

namespace unflake {
namespace {

FlakyFailure flaky(const std::string& test, Failure failure, int64_t first = 0, int64_t last = 9) {
  FlakyFailure row;
  row.test = {"suite", test};
  row.signature = signature_of(failure);
  row.failure = std::move(failure);
  row.first = at_second(first);
  row.last = at_second(last);
  return row;
}

FlakyFailure flaky_at(const std::string& commit, const std::string& test, Failure failure,
                      int64_t second) {
  FlakyFailure row = flaky(test, std::move(failure), second, second);
  row.first_commit = row.last_commit = commit;
  return row;
}

Failure check(const std::string& file, int line, const std::string& expression,
              const std::string& message = "") {
  return {FailureKind::assertion, file, line, "", expression, message};
}

Failure thrown(const std::string& message) {
  return {FailureKind::exception, "", 0, "", "", message};
}

Failure crash(FailureKind kind, const std::string& file, int line, const std::string& function,
              const std::string& message) {
  return {kind, file, line, function, "", message};
}

struct Pair {
  const char* name;
  FlakyFailure a, b;
};

bool are_linked(const Pair& pair) {
  const std::vector<FlakyFailure> both{pair.a, pair.b};
  return link_causes(both, {}, at_second(0)).size() == 1;
}

std::vector<Pair> pairs_of_one_cause() {
  return {
      {"the same failure of two tests",
       flaky("Mail.Sends", check("fixture.h", 12, "server.start()", "port is in use")),
       flaky("Mail.Reads", check("fixture.h", 12, "server.start()", "port is in use"))},
      {"set-up that says what it misses, in two files",
       flaky("Orders.Adds", check("orders_test.cc", 20, "",
                                  "cannot connect to database orders at db1:5432: refused")),
       flaky("Bills.Sums", check("bills_test.cc", 91, "",
                                 "cannot connect to database orders at db1:6543: refused"))},
      {"an exception of a library, in two tests",
       flaky("A.One", thrown("bind: address already in use, socket /tmp/x7/agent.sock")),
       flaky("B.Two", thrown("bind: address already in use, socket /tmp/q9/agent.sock"))},
      {"a message that names its test",
       flaky("Queue.Drains_quickly",
             thrown("Queue.Drains_quickly: broker lost its lease while draining")),
       flaky("Queue.Keeps_order",
             thrown("Queue.Keeps_order: broker lost its lease while draining"))},
      {"a check that an edit has moved",
       flaky("Pool.Grows", check("pool_test.cc", 40, "pool.size() == 4u"), 0, 10),
       flaky("Pool.Grows", check("pool_test.cc", 43, "pool.size() == 4u"), 20, 30)},
      {"a data race in one function, on two lines",
       flaky("Cache.Fills",
             crash(FailureKind::thread_sanitizer, "cache.cc", 10, "Cache::put", "data race")),
       flaky("Cache.Drops",
             crash(FailureKind::thread_sanitizer, "cache.cc", 14, "Cache::put", "data race"))},
      {"a crash in one function",
       flaky("A.One", crash(FailureKind::signal, "src/net/loop.cc", 7, "Loop::run", "SIGSEGV")),
       flaky("B.Two",
             crash(FailureKind::signal, "/ci/src/net/loop.cc", 9, "Loop::run", "SIGSEGV"))},
      {"one line, one word more",
       flaky("A.One", check("a_test.cc", 5, "ok", "replica three is behind the leader")),
       flaky("A.One", check("a_test.cc", 5, "ok", "replica three is far behind the leader"))},
      {"a Python assertion with its values",
       flaky("test_sync", thrown("AssertionError: replica lagged 12 entries behind leader eu-1")),
       flaky("test_merge", thrown("AssertionError: replica lagged 7 entries behind leader eu-1"))},
      {"a Java exception with its cause",
       flaky("SessionIT", thrown("org.postgresql.util.PSQLException: FATAL: sorry, too many "
                                 "clients already")),
       flaky("LedgerIT", thrown("org.postgresql.util.PSQLException: FATAL: sorry, too many "
                                "clients already [pool 3]"))},
  };
}

std::vector<Pair> pairs_of_two_causes() {
  return {
      {"the same bare check in two files", flaky("A.One", check("a_test.cc", 10, "ok")),
       flaky("B.One", check("b_test.cc", 10, "ok"))},
      {"the same bare check on two lines of one file", flaky("A.One", check("a_test.cc", 10, "ok")),
       flaky("A.Two", check("a_test.cc", 30, "ok"))},
      {"two lines of one test that fail at the same time",
       flaky("A.One", check("a_test.cc", 10, "ok"), 0, 10),
       flaky("A.One", check("a_test.cc", 12, "ok"), 5, 20)},
      {"two lines of one test that failed once each",
       flaky("A.One", check("a_test.cc", 10, "ok"), 0, 0),
       flaky("A.One", check("a_test.cc", 12, "ok"), 9, 9)},
      {"two lines that failed in one commit",
       flaky_at("c1", "A.One", check("a_test.cc", 10, "pool.size() == 4u"), 0),
       flaky_at("c1", "A.One", check("a_test.cc", 12, "pool.size() == 4u"), 9)},
      {"files of one name in two folders",
       flaky("A.One", check("/src/net/test.cc", 10, "done", "queue seven lost its order")),
       flaky("B.One", check("/src/db/test.cc", 11, "done", "row four has no owner"))},
      {"one line, two messages",
       flaky("A.One", check("a_test.cc", 10, "ok", "the disk under the journal is full")),
       flaky("A.One", check("a_test.cc", 10, "ok", "peer closed connection without farewell"))},
      {"exit statuses of two tests",
       flaky("one.sh", {FailureKind::exit_status, "", 0, "", "", "exit status 1"}),
       flaky("two.sh", {FailureKind::exit_status, "", 0, "", "", "exit status 1"})},
      {"time-outs of two tests", flaky("A.One", {FailureKind::timeout, "", 0, "", "", ""}),
       flaky("B.Two", {FailureKind::timeout, "", 0, "", "", ""})},
      {"crashes without a place", flaky("A.One", crash(FailureKind::signal, "", 0, "", "SIGSEGV")),
       flaky("B.Two", crash(FailureKind::signal, "", 0, "", "SIGSEGV"))},
      {"waits that ran out in two files",
       flaky("A.One", check("a_test.cc", 10, "", "timed out waiting for condition after 5 s")),
       flaky("B.Two", check("b_test.cc", 20, "", "timed out waiting for condition after 9 s"))},
      {"time-outs of two Java tests",
       flaky("FooIT", thrown("java.util.concurrent.TimeoutException: Timed out after 30 seconds")),
       flaky("BarIT", thrown("java.util.concurrent.TimeoutException: Timed out after 5 seconds"))},
      {"Java values that differ", flaky("FooTest.sums", thrown("expected:<3> but was:<4>")),
       flaky("BarTest.sorts", thrown("expected:<true> but was:<false>"))},
      {"Go values that differ", flaky("TestSum", thrown("got 3, want 4")),
       flaky("TestSort", thrown("got 1, want 2"))},
      {"null pointers of two tests", flaky("FooTest.a", thrown("java.lang.NullPointerException")),
       flaky("BarTest.b", thrown("java.lang.NullPointerException"))},
      {"races in two functions",
       flaky("A.One", crash(FailureKind::thread_sanitizer, "a.cc", 10, "A::put", "data race")),
       flaky("A.One", crash(FailureKind::thread_sanitizer, "a.cc", 20, "A::get", "data race"))},
      {"two reports of one function",
       flaky("A.One",
             crash(FailureKind::address_sanitizer, "a.cc", 10, "A::put", "heap-use-after-free")),
       flaky("A.One",
             crash(FailureKind::address_sanitizer, "a.cc", 12, "A::put", "stack-buffer-overflow"))},
      {"checks of one size", flaky("A.One", check("a_test.cc", 10, "result.size() == 3")),
       flaky("A.Two", check("a_test.cc", 50, "result.size() == 3"))},
      {"a crash and a check that say the same",
       flaky("A.One", thrown("broker lost its lease while draining")),
       flaky("A.Two", check("a_test.cc", 3, "", "broker lost its lease while draining"))},
  };
}

TEST(Causes, Failures_of_one_cause_are_linked) {
  for (const Pair& pair : pairs_of_one_cause()) EXPECT_TRUE(are_linked(pair)) << pair.name;
}

TEST(Causes, Failures_of_two_causes_are_kept_apart) {
  for (const Pair& pair : pairs_of_two_causes()) EXPECT_FALSE(are_linked(pair)) << pair.name;
}

TEST(Causes, A_known_cause_keeps_its_id_its_issue_and_its_signatures) {
  const Failure old_place = check("pool_test.cc", 40, "pool.size() == 4u");
  CauseRecord known;
  known.id = 7;
  known.title = "as a person has named it";
  known.url = "https://forge/issues/3";
  known.signatures = {signature_of(old_place), "of a failure that nobody remembers"};
  const std::vector failures{
      flaky("Pool.Grows", old_place, 0, 10),
      flaky("Pool.Grows", check("pool_test.cc", 43, "pool.size() == 4u"), 20, 30)};
  const auto causes = link_causes(failures, std::vector{known}, at_second(40));
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].record.id, 7);
  EXPECT_EQ(causes[0].record.title, known.title);
  EXPECT_EQ(causes[0].record.url, known.url);
  EXPECT_EQ(causes[0].record.signatures.size(), 3u);
  EXPECT_TRUE(causes[0].changed);
  EXPECT_EQ(causes[0].failures, (std::vector<size_t>{0, 1}));
}

TEST(Causes, Nothing_new_changes_nothing) {
  const std::vector failures{flaky("A.One", check("a_test.cc", 10, "ok"))};
  auto once = link_causes(failures, {}, at_second(40));
  once[0].record.id = 1;
  const auto twice = link_causes(failures, std::vector{once[0].record}, at_second(50));
  EXPECT_FALSE(twice[0].changed);
  EXPECT_EQ(twice[0].record.signatures, once[0].record.signatures);
}

CauseRecord closed_at(int64_t second, const Failure& failure) {
  CauseRecord record;
  record.id = 1;
  record.signatures = {signature_of(failure)};
  record.state = CauseRecord::State::closed;
  record.closed = at_second(second);
  record.reopened = 1;
  return record;
}

TEST(Causes, A_closed_cause_that_fails_afterwards_is_reopened) {
  const Failure failure = check("a_test.cc", 10, "ok");
  const std::vector failures{flaky("A.One", failure, 0, 30)};
  const auto causes = link_causes(failures, std::vector{closed_at(20, failure)}, at_second(40));
  EXPECT_TRUE(causes[0].came_back);
  EXPECT_EQ(causes[0].record.state, CauseRecord::State::open);
  EXPECT_EQ(causes[0].record.reopened, 2);
}

TEST(Causes, A_failure_of_code_without_the_fix_is_no_return) {
  const Failure failure = check("a_test.cc", 10, "ok");
  const std::vector failures{flaky("A.One", failure, 0, 30)};
  const auto causes = link_causes(failures, std::vector{closed_at(20, failure)}, at_second(40),
                                  [](const CauseRecord&, const FlakyFailure&) { return false; });
  EXPECT_EQ(causes[0].record.state, CauseRecord::State::closed);
}

TEST(Causes, A_closed_cause_whose_failures_are_older_stays_closed) {
  const Failure failure = check("a_test.cc", 10, "ok");
  const std::vector failures{flaky("A.One", failure, 0, 10)};
  const auto causes = link_causes(failures, std::vector{closed_at(20, failure)}, at_second(40));
  EXPECT_FALSE(causes[0].came_back);
  EXPECT_EQ(causes[0].record.state, CauseRecord::State::closed);
}

TEST(Causes, A_cause_without_failures_is_still_there) {
  const auto causes =
      link_causes({}, std::vector{closed_at(20, check("a_test.cc", 10, "ok"))}, at_second(40));
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_TRUE(causes[0].failures.empty());
  EXPECT_FALSE(causes[0].changed);
}

TEST(Causes, A_signature_that_two_causes_claim_belongs_to_the_older_one) {
  const Failure failure = check("a_test.cc", 10, "ok");
  std::vector<CauseRecord> known(2);
  known[0].id = 9;
  known[1].id = 4;
  known[0].signatures = known[1].signatures = {signature_of(failure)};
  const auto causes = link_causes(std::vector{flaky("A.One", failure)}, known, at_second(40));
  EXPECT_EQ(causes[0].record.id, 4);
  EXPECT_EQ(causes[0].failures.size(), 1u);
  EXPECT_TRUE(causes[1].failures.empty());
}

TEST(Causes, The_order_of_the_failures_does_not_matter) {
  std::vector<FlakyFailure> all;
  for (const auto& pairs : {pairs_of_one_cause(), pairs_of_two_causes()})
    for (const Pair& pair : pairs) all.insert(all.end(), {pair.a, pair.b});
  const auto titles = [&all] {
    std::vector<std::vector<std::string>> groups;
    for (LinkedCause& cause : link_causes(all, {}, at_second(0)))
      groups.push_back(std::move(cause.record.signatures));
    std::ranges::sort(groups);
    return groups;
  };
  const auto expected = titles();
  std::mt19937 random(1);
  std::ranges::shuffle(all, random);
  EXPECT_EQ(titles(), expected);
}

TEST(Causes, Thousands_of_signatures_that_look_alike_are_linked) {
  std::vector<FlakyFailure> failures;
  for (int i = 0; i < 5'000; ++i)
    failures.push_back(flaky(
        "Suite.Case" + std::to_string(i),
        check("t.cc", i + 1, "ok", "worker" + std::to_string(i) + " lost its lease on shard")));
  size_t linked = 0;
  for (const LinkedCause& cause : link_causes(failures, {}, at_second(0)))
    linked += cause.failures.size();
  EXPECT_EQ(linked, failures.size());
}

TEST(Causes, Hostile_texts_are_bounded) {
  std::string long_text;
  for (int i = 0; i < 100'000; ++i) long_text += "w" + std::to_string(i) + " \xff\x01";
  const std::vector failures{flaky("A.One", thrown(long_text)),
                             flaky("B.Two", thrown(std::string(1'000'000, '/'))),
                             flaky("C.Three", thrown(std::string("\0\0\0", 3)))};
  EXPECT_LE(traits_of(failures[0]).shingles.size(), 400u);
  EXPECT_EQ(link_causes(failures, {}, at_second(0)).size(), 3u);
}

}  // namespace
}  // namespace unflake
