#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/store.h"
#include "support/history_runs.h"
#include "support/store_backends.h"

namespace unflake {

// The words that tests of a store share.
class StoreWords {
 protected:
  explicit StoreWords(std::string url) : url_(std::move(url)) { open(); }

  std::unique_ptr<Store> open_project(const std::string& project) const {
    auto opened = open_store({url_, project});
    EXPECT_TRUE(opened) << to_string(opened.error());
    return opened ? *std::move(opened) : nullptr;
  }

  void open() {
    store_.reset();
    store_ = open_project("");
    ASSERT_NE(store_, nullptr);
  }

  SessionId begin(const SessionRecord& record) {
    const auto begun = store_->begin_session(record);
    EXPECT_TRUE(begun) << to_string(begun.error());
    return begun ? *begun : 0;
  }
  SessionId begin(const std::string& commit = "c0ffee") { return begin(session_of_commit(commit)); }

  void record(SessionId session, const RunRecord& run) {
    const auto recorded = store_->record(session, run);
    ASSERT_TRUE(recorded) << to_string(recorded.error());
  }

  void record_all(SessionId session, const std::vector<RunRecord>& runs) {
    const auto recorded = store_->record_all(session, runs);
    ASSERT_TRUE(recorded) << to_string(recorded.error());
  }

  void end(SessionId session) {
    const auto ended = store_->end_session(session);
    ASSERT_TRUE(ended) << to_string(ended.error());
  }

  void suppress(SessionId session, const std::string& name, const std::string& signature) {
    const auto suppressed = store_->suppress(session, {"suite", name}, signature);
    ASSERT_TRUE(suppressed) << to_string(suppressed.error());
  }

  // Brings every run to where it stays.
  void settle() {
    const auto settled = store_->forget({}, at_second(0));
    ASSERT_TRUE(settled) << to_string(settled.error());
  }

  TestSummary summary(const std::string& name) {
    const auto found = store_->summarise_test({"suite", name});
    if (!found || !*found) {
      ADD_FAILURE() << name << " is not there";
      return {};
    }
    return **found;
  }

  std::vector<std::string> ranking(const std::string& pattern, size_t most = 100) {
    const auto tests = store_->summarise(pattern, most);
    EXPECT_TRUE(tests);
    std::vector<std::string> names;
    if (tests)
      for (const TestSummary& test : *tests) names.push_back(test.test.name);
    return names;
  }

  RunCounts count(const std::string& name, const Window& window = {},
                  const std::string& signature = "00000000000000aa") {
    const auto counts = store_->count_runs({"suite", name}, signature, window);
    EXPECT_TRUE(counts) << to_string(counts.error());
    return counts ? *counts : RunCounts{};
  }

  std::vector<FlakyFailure> flaky(const Window& window = {}, size_t most = 100) {
    const auto failures = store_->lifecycle().flaky_failures(window, most);
    EXPECT_TRUE(failures) << to_string(failures.error());
    return failures ? *failures : std::vector<FlakyFailure>{};
  }

  // Of the project without a name.
  Prevalence prevalence(const Window& window = {}) {
    const auto rows = store_->lifecycle().prevalence(window);
    EXPECT_TRUE(rows) << to_string(rows.error());
    if (rows)
      for (const Prevalence& row : *rows)
        if (row.project.empty()) return row;
    return {};
  }

  std::string url_;
  std::unique_ptr<Store> store_;
};

struct HistoryOfBackend {
  std::unique_ptr<FreshHistory> history_;
};

// A store in each kind of database.
class StoreFixture : public testing::TestWithParam<StoreBackend>,
                     private HistoryOfBackend,
                     protected StoreWords {
 protected:
  StoreFixture() : HistoryOfBackend{GetParam().make()}, StoreWords(history_->url()) {}
};

// Tests of `fixture`, on every kind of database.
#define UNFLAKE_ON_EVERY_BACKEND(fixture)                                       \
  INSTANTIATE_TEST_SUITE_P(Every, fixture, testing::ValuesIn(store_backends()), \
                           [](const auto& backend) { return std::string(backend.param.name); })

}  // namespace unflake
