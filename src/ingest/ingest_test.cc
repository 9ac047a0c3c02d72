#include "ingest/ingest.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temp_folder.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

std::string many_cases(int count) {
  std::string text = "<testsuite name='s' timestamp='2026-03-01T12:00:00Z'>";
  for (int i = 0; i < count; ++i)
    text += "<testcase name='t" + std::to_string(i % 7) + "' time='0.001'/>";
  return text + "</testsuite>";
}

class Ingest : public testing::Test {
 protected:
  void SetUp() override {
    auto store = open_store({folder_.file("history.db"), ""});
    ASSERT_TRUE(store) << to_string(store.error());
    store_ = std::move(*store);
  }

  ReportFile file(const std::string& text, const std::string& name = "report.xml") {
    std::ofstream(folder_.file(name)) << text;
    auto opened = ReportFile::open(folder_.file(name));
    EXPECT_TRUE(opened);
    return std::move(*opened);
  }

  int64_t recorded() {
    int64_t runs = 0;
    const auto visited =
        store_->visit({.session = [](const SessionRecord&) { return Result<void>(); },
                       .run = [&](const RunRecord&) { return ++runs, Result<void>(); }});
    EXPECT_TRUE(visited);
    return runs;
  }

  TempFolder folder_;
  std::unique_ptr<Store> store_;
  IngestSettings settings_;
};

TEST_F(Ingest, A_report_that_is_delivered_twice_counts_once) {
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(ingest(file(many_cases(100)), settings_, *store_));
  EXPECT_EQ(recorded(), 100);
}

TEST_F(Ingest, Two_projects_may_get_the_same_report) {
  settings_.project = "other";
  auto other = open_store({folder_.file("history.db"), "other"});
  ASSERT_TRUE(other) << to_string(other.error());
  ASSERT_TRUE(ingest(file(many_cases(100)), settings_, **other));
  settings_.project = "";
  ASSERT_TRUE(ingest(file(many_cases(100)), settings_, *store_));
  EXPECT_EQ(recorded(), 100);
}

TEST_F(Ingest, A_report_without_times_that_was_touched_counts_once) {
  const ReportFile report =
      file("<testsuite name='s'><testcase name='a'/><testcase name='b'/></testsuite>");
  for (const auto age : {0s, 3600s}) {
    settings_.modified = report.modified() - age;
    const auto ingested = ingest(report, settings_, *store_);
    ASSERT_TRUE(ingested);
    EXPECT_EQ(ingested->counts.runs, 2);
    EXPECT_EQ(ingested->was_known, age != 0s);
  }
  EXPECT_EQ(recorded(), 2);
}

TEST_F(Ingest, What_unflake_wrote_of_a_session_in_the_history_is_known) {
  SessionRecord session;
  session.uuid = "0123";
  ASSERT_TRUE(store_->begin_session(session));
  const auto report_of = [&](const std::string& uuid) {
    return file(
        "<testsuites name='unflake'><testsuite name='s'><properties><property "
        "name='unflake.session' value='" +
        uuid +
        "'/></properties>"
        "<testcase name='a'/></testsuite></testsuites>");
  };
  int seen = 0;
  const auto known = ingest(report_of("0123"), settings_, *store_,
                            [&](SessionId, auto runs) { seen += static_cast<int>(runs.size()); });
  ASSERT_TRUE(known);
  EXPECT_TRUE(known->was_known && known->is_own);
  EXPECT_EQ(known->counts.runs, 1);
  EXPECT_EQ(seen, 1) << "a gate decides about it";
  EXPECT_EQ(recorded(), 0);
  const auto other = ingest(report_of("4567"), settings_, *store_);
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->was_known || other->is_own);
  EXPECT_EQ(recorded(), 1);
}

TEST_F(Ingest, A_property_of_a_case_or_of_another_tool_names_no_session) {
  SessionRecord session;
  session.uuid = "0123";
  ASSERT_TRUE(store_->begin_session(session));
  const std::string property =
      "<properties><property name='unflake.session' value='0123'/></properties>";
  for (const std::string& text :
       {"<testsuites name='unflake'><testsuite name='s'><testcase name='a'>" + property +
            "</testcase></testsuite></testsuites>",
        "<testsuites name='other'><testsuite name='s'>" + property +
            "<testcase name='a'/></testsuite></testsuites>"})
    EXPECT_FALSE(ingest(file(text), settings_, *store_)->was_known) << text;
  EXPECT_EQ(recorded(), 2);
}

TEST_F(Ingest, What_is_no_report_is_never_known) {
  for (const char* text : {"", "no XML", "<html></html>"})
    for (int i = 0; i < 2; ++i) {
      const auto ingested = ingest(file(text), settings_, *store_);
      ASSERT_TRUE(ingested);
      EXPECT_TRUE(ingested->refused) << text;
      EXPECT_FALSE(ingested->was_known) << text;
    }
}

TEST_F(Ingest, The_same_report_of_another_build_counts_too) {
  ASSERT_TRUE(ingest(file(many_cases(10)), settings_, *store_));
  settings_.surroundings.build = "2";
  ASSERT_TRUE(ingest(file(many_cases(10)), settings_, *store_));
  EXPECT_EQ(recorded(), 20);
}

TEST_F(Ingest, An_ingestion_that_broke_off_is_completed_by_the_next) {
  const ReportFile report = file(many_cases(50));
  std::vector<RunRecord> runs;
  const auto take = [&](std::span<RunRecord> more) -> Result<void> {
    runs.insert(runs.end(), more.begin(), more.end());
    return {};
  };
  ASSERT_TRUE(read_results(*report.bytes(), {"report.xml", {}, report.modified()}, take));
  SessionRecord session;
  session.uuid = session_uuid_of(report, settings_);
  const auto begun = store_->begin_session(session);
  ASSERT_TRUE(begun);
  ASSERT_TRUE(store_->record_all(*begun, std::span(runs).first(20)));
  ASSERT_TRUE(ingest(report, settings_, *store_));
  EXPECT_EQ(recorded(), 50);
}

TEST_F(Ingest, Of_a_report_that_was_cut_short_the_beginning_is_recorded) {
  const std::string whole = many_cases(20);
  const auto report = ingest(file(whole.substr(0, whole.size() - 40)), settings_, *store_);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->refused);
  EXPECT_EQ(recorded(), report->counts.runs);
  EXPECT_GE(recorded(), 18);
}

TEST_F(Ingest, Whoever_watches_sees_every_run_once_it_is_safe) {
  int64_t seen = 0;
  const auto see = [&](SessionId, std::span<const RunRecord> runs) {
    seen += static_cast<int64_t>(runs.size());
  };
  ASSERT_TRUE(ingest(file(many_cases(123)), settings_, *store_, see));
  EXPECT_EQ(seen, 123);
}

TEST(ReportFiles, A_pipe_is_read_as_a_file_is) {
  const std::string text = many_cases(3);
  const auto file = ReportFile::copy_of(bytes_of_text(text), "-");
  ASSERT_TRUE(file);
  for (int i = 0; i < 2; ++i) {
    const auto bytes = file->bytes();
    ASSERT_TRUE(bytes);
    std::string read(text.size(), '\0');
    EXPECT_EQ(*(*bytes)(read), text.size());
    EXPECT_EQ(read, text);
  }
}

TEST(ReportFiles, What_is_too_large_is_refused_while_it_comes_in) {
  ReportReceiver receiver("report", 1000);
  EXPECT_TRUE(receiver.add(std::string(1000, 'x')));
  EXPECT_FALSE(receiver.add("x"));
}

}  // namespace
}  // namespace unflake
