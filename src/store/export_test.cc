#include "store/recorder.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/fake_store.h"
#include "support/history_runs.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

class ExportTest : public testing::Test {
 protected:
  void SetUp() override {
    SessionRecord session = session_of_commit("c0ffee");
    session.uuid = "one";
    session.surroundings.build = "build-7";
    session.seed = 42;
    const auto id = store_.begin_session(session);
    RunRecord odd = failing_run("odd", 3, "bb");
    odd.output = "bytes \xff that are no text";
    odd.attempt = 2;
    ASSERT_TRUE(store_.record(*id, passing_run("a", 1)));
    ASSERT_TRUE(store_.record(*id, failing_run("a", 2)));
    ASSERT_TRUE(store_.record(*id, odd));
    RunRecord trial = failing_run("a", 4);
    trial.purpose = "candidate";
    trial.plan = "queue.cc:57=200ms \xff";
    trial.output.clear();
    ASSERT_TRUE(store_.record(*id, trial));
    ASSERT_TRUE(store_.suppress(*id, {"suite", "a"}, "00000000000000aa"));
    LifecycleStep step;
    step.kind = LifecycleStep::Kind::report_closed;
    step.test = {"suite", "a"};
    step.signature = "00000000000000aa";
    step.at = at_second(9);
    step.commit = "abc";
    step.reason = "waits";
    step.owner = "@me";
    step.url = "https://example.org/1";
    ASSERT_TRUE(store_.lifecycle().note(step));
    CauseRecord cause;
    cause.title = "a == b";
    cause.signatures = {"00000000000000aa"};
    cause.state = CauseRecord::State::closed;
    cause.opened = at_second(2);
    cause.closed = at_second(9);
    cause.category = "async wait";
    ASSERT_TRUE(store_.lifecycle().save_cause(cause));
  }

  std::string exported(Store& store, TimePoint since = TimePoint::min()) {
    std::string text;
    const auto count = export_history(store, "mine", since, [&](std::string_view line) {
      text += line;
      return Result<void>();
    });
    EXPECT_TRUE(count);
    return text;
  }

  Result<ImportCount> import(Store& store, const std::string& text) {
    const std::string path = folder_.file("export.jsonl");
    std::ofstream(path, std::ios::binary) << text;
    return import_history(store, path);
  }

  TempFolder folder_;
  FakeStore store_;
};

TEST_F(ExportTest, Everything_comes_back_as_it_was) {
  FakeStore other;
  const std::string text = exported(store_);
  const auto imported = import(other, text);
  ASSERT_TRUE(imported) << to_string(imported.error());
  EXPECT_EQ(imported->runs, 4);
  EXPECT_EQ(imported->steps, 1);
  EXPECT_EQ(imported->causes, 1);
  EXPECT_EQ(imported->bad_lines, 0);
  EXPECT_FALSE(imported->cut_short);
  EXPECT_EQ(exported(other), text);
}

TEST_F(ExportTest, Goes_through_a_real_store_unchanged) {
  auto real = open_store({folder_.file("history.db")});
  ASSERT_TRUE(real);
  const std::string text = exported(store_);
  ASSERT_TRUE(import(**real, text));
  EXPECT_EQ(exported(**real), text);
}

TEST_F(ExportTest, Imported_twice_it_counts_once) {
  auto real = open_store({folder_.file("history.db")});
  ASSERT_TRUE(real);
  const std::string text = exported(store_);
  ASSERT_TRUE(import(**real, text));
  const auto again = import(**real, text);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(exported(**real), text);
}

TEST_F(ExportTest, A_cause_that_was_reopened_since_stays_so) {
  const std::string text = exported(store_);
  store_.known_causes[0].state = CauseRecord::State::open;
  ASSERT_TRUE(import(store_, text));
  ASSERT_EQ(store_.known_causes.size(), 1u);
  EXPECT_EQ(store_.known_causes[0].state, CauseRecord::State::open);
}

TEST_F(ExportTest, Leaves_out_what_is_older_than_was_asked_for) {
  const std::string text = exported(store_, at_second(5));
  FakeStore other;
  ASSERT_TRUE(import(other, text));
  EXPECT_TRUE(other.runs.empty());
  EXPECT_EQ(other.known_steps.size(), 1u);
  EXPECT_TRUE(other.known_causes.empty());
}

TEST_F(ExportTest, One_that_lacks_its_end_is_told) {
  std::string text = exported(store_);
  text.resize(text.rfind("\n{") + 1);
  const auto imported = import(store_, text);
  ASSERT_TRUE(imported);
  EXPECT_TRUE(imported->cut_short);
}

TEST_F(ExportTest, One_of_a_newer_version_is_refused) {
  const auto imported = import(store_, "{\"unflake_export\": 2}\n");
  ASSERT_FALSE(imported);
  EXPECT_NE(imported.error().what.find("newer"), std::string::npos);
}

TEST_F(ExportTest, An_empty_history_is_an_export_too) {
  FakeStore empty, other;
  const auto imported = import(other, exported(empty));
  ASSERT_TRUE(imported) << to_string(imported.error());
  EXPECT_EQ(imported->runs, 0);
}

TEST_F(ExportTest, Bad_lines_in_between_are_named_and_left_out) {
  std::string text = exported(store_);
  text.insert(text.find('\n') + 1,
              "{\"lifecycle\": 3}\n{\"cause\": {}}\n{\"suppressed\": []}\n{\"target\": \"t\"}\n");
  FakeStore other;
  const auto imported = import(other, text);
  ASSERT_TRUE(imported) << to_string(imported.error());
  EXPECT_EQ(imported->bad_lines, 4);
  EXPECT_EQ(imported->first_bad[0].line, 2);
  EXPECT_EQ(imported->runs, 4);
}

TEST_F(ExportTest, Runs_are_imported_in_batches) {
  FakeStore many, other;
  const auto id = many.begin_session(session_of_commit("c"));
  for (int i = 0; i < 12'000; ++i) ASSERT_TRUE(many.record(*id, passing_run("a", i)));
  ASSERT_TRUE(import(other, exported(many)));
  EXPECT_EQ(other.runs.size(), 12'000u);
  EXPECT_EQ(other.batches, 3u);
}

TEST_F(ExportTest, Stops_at_the_first_line_that_is_not_taken) {
  int lines = 0;
  const auto count =
      export_history(store_, "", TimePoint::min(), [&](std::string_view) -> Result<void> {
        if (++lines == 3) return internal_error("the disk is full");
        return {};
      });
  EXPECT_FALSE(count);
  EXPECT_EQ(lines, 3);
}

}  // namespace
}  // namespace unflake
