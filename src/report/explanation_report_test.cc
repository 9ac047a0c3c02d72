#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/explanation_pages.h"
#include "report/layout.h"
#include "report/trace_json.h"
#include "support/trace_builder.h"
#include "util/json.h"

namespace unflake {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* worker = "post.cc:22#1";

size_t times_in(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// A worker delivers while the test sleeps; under the plan it delivers too late.
class ExplanationReports : public testing::Test {
 protected:
  ExplanationReports() {
    repro_.test = {"post_test", "Post.Delivers"};
    repro_.failure.file = "post_test.cc";
    repro_.failure.line = 45;
    repro_.failure.expression = "delivered() == 1";
    Intervention delay;
    delay.site = parse_site("post.cc:24:pthread_mutex_lock").value();
    delay.threads = Intervention::Threads::named;
    delay.thread.text = worker;
    delay.duration = std::chrono::milliseconds(100);
    repro_.plan.interventions = {delay};
    repro_.with_plan = {20, 20};
    repro_.without_plan = {1, 50};
    repro_.slack = Slack{Duration(6'000), Duration(8'000)};
    repro_.doses = {{Duration(5'000), {0, 10}}, {Duration(10'000), {9, 10}}};
    make_runs();
  }

  void make_runs() {
    TraceBuilder passing, failing;
    for (TraceBuilder* builder : {&passing, &failing})
      builder->thread("main").thread(thread_, "main", 1, 110);
    passing.call(thread_, "post.cc:24:pthread_mutex_lock", 5, 5.1, 0xa);
    failing.delay(thread_, "post.cc:24:pthread_mutex_lock", 5, 105)
        .call(thread_, "post.cc:24:pthread_mutex_lock", 105, 105.1, 0xa);
    for (TraceBuilder* builder : {&passing, &failing})
      builder->call("main", "post_test.cc:44:nanosleep", 2, 12)
          .asks_for(10)
          .call("main", "post.cc:30:pthread_mutex_lock", 12.1, 12.2, 0xa);
    failing.fails("main", "post_test.cc", 45, 12.3);
    passing_.trace = passing.trace();
    failing_.trace = failing.trace();
    failing_.outcome.kind = OutcomeKind::fail;
  }

  ExplanationReport report() {
    explanation_ = explain(repro_, &passing_, &failing_);
    return {repro_, explanation_, &passing_, &failing_, notes_, [](const std::string&, int line) {
              return line == 24 ? std::string("  std::lock_guard lock(mutex_);") : std::string();
            }};
  }

  void make_margin() {
    repro_.slack = Slack{std::chrono::milliseconds(3700), std::chrono::milliseconds(4050)};
    repro_.plausibility = Plausibility::margin;
    repro_.machine_lateness = MachineLateness{Duration(200), Duration(20'000)};
  }

  std::string html() { return explanation_html(report()); }
  std::string text() { return explanation_text(report(), Style(false)); }

  std::string thread_ = worker;
  Repro repro_;
  ObservedRun passing_, failing_;
  std::vector<std::string> notes_;
  Explanation explanation_;
};

TEST_F(ExplanationReports, The_first_sentence_names_no_file) {
  EXPECT_EQ(first_sentence(report()),
            "The test sleeps 10.0 ms and relies on another thread to be done by then. That takes "
            "3.00 ms when nobody is late. It fails as soon as another thread is late by 8.00 ms.");
  EXPECT_THAT(text(), HasSubstr("\n" + first_sentence(report()) + "\n"));
  EXPECT_THAT(html(), HasSubstr(html_prose(first_sentence(report()))));
}

TEST_F(ExplanationReports, The_first_sentence_names_functions_and_threads_as_their_author_would) {
  report();
  explanation_.pair->first.place.function = "(anonymous namespace)::Post::deliver::{lambda}::run";
  explanation_.late[0].role = "the thread that runs `Post::work`";
  const ExplanationReport shown{repro_, explanation_, &passing_, &failing_, {}, nullptr};
  EXPECT_THAT(first_sentence(shown), HasSubstr("relies on `Post::deliver` to be done by then."));
  EXPECT_THAT(first_sentence(shown), HasSubstr("as soon as the thread that runs `Post::work` is"));
  explanation_.causes = {{RootCauseKind::teardown_race, 1, {}}};
  EXPECT_THAT(first_sentence(shown), HasSubstr("`Post::deliver` may still have to come when"));
  explanation_.pair->first.place.function = "Post::~Post";
  EXPECT_THAT(first_sentence(shown), HasSubstr("goes on as long as `Post::~Post` has not ended"));
  explanation_.pair->first.place.function = "city::mail::Post<std::pair<int, int>>::deliver";
  explanation_.causes = {{RootCauseKind::ordering, 1, {}}};
  EXPECT_THAT(first_sentence(shown), HasSubstr("The test does not wait for `Post::deliver`."));
}

TEST_F(ExplanationReports, The_first_sentence_tells_two_calls_of_one_function_apart) {
  report();
  explanation_.causes = {{RootCauseKind::ordering, 1, {}}};
  FlippedPair& pair = *explanation_.pair;
  pair.first.place.function = pair.second.place.function = "Box::put";
  pair.first.caller = CodeSpot{"post.cc", 60, "ride"};
  pair.second.caller = CodeSpot{"post.cc", 61, "walk"};
  const ExplanationReport shown{repro_, explanation_, &passing_, &failing_, {}, nullptr};
  EXPECT_THAT(first_sentence(shown), HasSubstr("Nothing makes `ride` come before `walk`"));
  pair.second.caller.reset();
  pair.first.thread = pair.second.thread = "main";
  EXPECT_THAT(first_sentence(shown), HasSubstr("one call of `Box::put` come before another one"));
}

TEST_F(ExplanationReports, The_first_sentence_says_that_a_guess_is_one) {
  report();
  explanation_.causes = {{RootCauseKind::ordering, 0.7, {"no wait stands between them"}}};
  explanation_.pair->is_shown = false;
  explanation_.experiments.clear();
  const ExplanationReport shown{repro_, explanation_, &passing_, &failing_, {}, nullptr};
  EXPECT_THAT(first_sentence(shown), Not(HasSubstr("no experiment")));
  explanation_.experiments = {"no step was found from which on it may be late"};
  EXPECT_THAT(first_sentence(shown), HasSubstr("suggest, and no experiment has shown it."));
  explanation_.pair->is_shown = true;
  EXPECT_THAT(first_sentence(shown), Not(HasSubstr("no experiment")));
}

TEST_F(ExplanationReports, Say_of_a_gap_that_nobody_may_come_in_between) {
  report();
  explanation_.causes = {{RootCauseKind::teardown_race, 1, {}}};
  FlippedPair& pair = *explanation_.pair;
  pair.is_gap = true;
  pair.first.place.function = "Sampler::~Sampler";
  pair.second.place.function = "Registry::~Registry";
  const ExplanationReport shown{repro_, explanation_, &passing_, &failing_, {}, nullptr};
  EXPECT_THAT(first_sentence(shown), HasSubstr("`Registry::~Registry` takes away what another "
                                               "thread uses until `Sampler::~Sampler` is over."));
  EXPECT_THAT(explanation_text(shown, Style(false)), HasSubstr("in between, another thread sees"));
}

TEST_F(ExplanationReports, Say_what_experiments_show) {
  report();
  explanation_.experiments = {"main late before post.cc:24 fails, late after it passes"};
  const ExplanationReport shown{repro_, explanation_, &passing_, &failing_, {}, nullptr};
  for (const std::string& page : {explanation_text(shown, Style(false)), explanation_html(shown)})
    EXPECT_THAT(page, HasSubstr("main late before post.cc:24 fails, late after it passes"));
}

TEST_F(ExplanationReports, The_text_says_who_must_come_first) {
  EXPECT_THAT(text(), HasSubstr("thread `post.cc:22#1` (started by main at post.cc:22) must call "
                                "pthread_mutex_lock at post.cc:24 before main calls "
                                "pthread_mutex_lock at post.cc:30."));
}

TEST_F(ExplanationReports, The_text_says_how_long_was_waited_for_what) {
  EXPECT_THAT(text(), HasSubstr("main does not wait for that, it sleeps: 10.0 ms at "
                                "post_test.cc:44 (10.0 ms asked for). What it relies on took 3.00 "
                                "ms when the test passed."));
}

TEST_F(ExplanationReports, The_text_says_how_late_is_too_late) {
  EXPECT_THAT(text(), HasSubstr("8.00 ms is enough, 6.00 ms is not."));
}

TEST_F(ExplanationReports, The_text_has_cause_figures_plan_and_advice) {
  const std::string all = text();
  for (const char* part :
       {"root cause: async wait", "or else ordering", "20 of 20 runs", "1 of 50 runs",
        "slack: 6.00 ms late still passes", "Wait for the condition itself",
        "post.cc:24:pthread_mutex_lock@post.cc:22#1=100ms"})
    EXPECT_THAT(all, HasSubstr(part));
}

TEST_F(ExplanationReports, A_hold_waits_for_another_thread_and_is_no_delay) {
  Intervention passed = repro_.plan.interventions[0];
  passed.action = Intervention::Action::watch;
  passed.site = parse_site("post.cc:30:pthread_mutex_lock").value();
  passed.position = Intervention::Position::after;
  passed.thread.text = "main";
  repro_.plan.interventions[0].action = Intervention::Action::hold;
  repro_.plan.interventions[0].until = 1;
  repro_.plan.interventions.push_back(passed);
  for (TracedCall& call : failing_.trace.calls)
    if (call.is_intervention) call.object = 1;  // the first intervention of the plan
  const std::string other = "post.cc:30:pthread_mutex_lock:after@main";
  EXPECT_THAT(text(), HasSubstr("had to wait before post.cc:24:pthread_mutex_lock until " + other +
                                " was passed."));
  EXPECT_THAT(text(), Not(HasSubstr("made late by")));
  EXPECT_THAT(html(), HasSubstr("<title>waits for " + other + " at post.cc:24:pthread_mutex_lock"));
  EXPECT_THAT(html(), Not(HasSubstr("delay of the plan at")));
}

TEST_F(ExplanationReports, The_plan_itself_is_none_of_those_tried_before) {
  repro_.candidates = 1;
  EXPECT_THAT(text(), HasSubstr("the first plan that was tried"));
  repro_.candidates = 2;
  EXPECT_THAT(text(), HasSubstr("1 plan tried before this one"));
}

TEST_F(ExplanationReports, Source_lines_are_quoted_with_their_numbers) {
  EXPECT_THAT(text(), HasSubstr(">    24 |   std::lock_guard lock(mutex_);"));
  EXPECT_THAT(html(), HasSubstr("<b>   24    std::lock_guard lock(mutex_);</b>"));
}

TEST_F(ExplanationReports, The_page_says_what_the_text_says) {
  const ExplanationWords words = words_of(report());
  const std::string page = html();
  for (const auto* lines : {&words.story, &words.evidence, &words.figures, &words.plan})
    for (const std::string& line : *lines) EXPECT_THAT(page, HasSubstr(html_prose(line)));
  EXPECT_THAT(page, HasSubstr("thread <code>post.cc:22#1</code> (started by"));
  EXPECT_THAT(page, Not(HasSubstr("`")));
}

TEST_F(ExplanationReports, The_page_needs_nothing_else) {
  const std::string page = html();
  for (const char* part : {"<script", "http:", "https:", "src=", "href=", "url(", "@import"})
    EXPECT_THAT(page, Not(HasSubstr(part)));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
}

TEST_F(ExplanationReports, The_page_draws_both_runs_the_delay_the_failure_and_the_pair) {
  const std::string page = html();
  EXPECT_GE(times_in(page, "<svg class=\"timeline\""), 2u);
  EXPECT_THAT(page, HasSubstr("<rect class=\"delay\""));
  EXPECT_THAT(page, HasSubstr("<g class=\"failure\""));
  EXPECT_THAT(page, HasSubstr("<line class=\"link\""));
  EXPECT_EQ(times_in(page, "<svg class=\"dose\""), 1u);
  EXPECT_THAT(page, HasSubstr("9 of 10 runs failed, 95 % interval"));
}

TEST_F(ExplanationReports, Nothing_from_a_test_is_markup) {
  thread_ = "</script><b x=\"'&\x1b\x01\xff#1";
  repro_.test.name = "<img src=x onerror=alert(1)>";
  repro_.failure.expression = "\"><svg onload=alert(1)>";
  notes_ = {"</body>"};
  make_runs();
  const std::string page = html();
  for (const char* part : {"</script", "<b x", "<img", "<svg onload", "\x1b", "\x01", "\xff"})
    EXPECT_THAT(page, Not(HasSubstr(part)));
  EXPECT_EQ(times_in(page, "</body>"), 1u);
}

TEST_F(ExplanationReports, Names_of_a_megabyte_are_cut) {
  repro_.test.name = std::string(1 << 20, 'x');
  thread_ = std::string(1 << 20, 'y');
  make_runs();
  EXPECT_LT(html().size(), 200'000u);
  EXPECT_LT(text().size(), 50'000u);
}

TEST_F(ExplanationReports, Of_many_calls_the_page_draws_some_and_says_so) {
  TraceBuilder busy;
  busy.thread("main").thread(thread_, "main", 1);
  for (int i = 0; i < 5'000; ++i) busy.call("main", "a.cc:1:read", 0.02 * i, 0.02 * i + 0.01);
  passing_.trace = busy.trace();
  const std::string page = html();
  EXPECT_LT(times_in(page, "<rect"), 4'000u);
  EXPECT_THAT(page, HasSubstr("the 1500 longest calls are drawn, 3500 shorter ones are not"));
}

TEST_F(ExplanationReports, Of_many_threads_the_ones_that_matter_are_drawn) {
  TraceBuilder busy;
  for (int i = 0; i < 60; ++i) busy.thread("pool.cc:" + std::to_string(i) + "#1");
  busy.thread("main").thread(thread_, "main", 1);
  busy.call(thread_, "post.cc:24:pthread_mutex_lock", 5, 5.1, 0xa)
      .call("main", "post.cc:30:pthread_mutex_lock", 12.1, 12.2, 0xa);
  passing_.trace = busy.trace();
  const TimelineFrame frame = whole_frame(report());
  EXPECT_EQ(frame.lanes.size(), 24u);
  EXPECT_EQ(frame.threads_left_out, 38u);
  EXPECT_THAT(frame.lanes, testing::IsSupersetOf({std::string("main"), thread_}));
}

TEST_F(ExplanationReports, Many_threads_of_a_kind_share_a_lane) {
  TraceBuilder busy;
  busy.thread("main").thread(thread_, "main", 1);
  for (int i = 1; i <= 60; ++i) busy.thread(fmt::format("pool.cc:1#{}", i), "main", 2, 3);
  busy.call(thread_, "post.cc:24:pthread_mutex_lock", 5, 5.1, 0xa)
      .call("pool.cc:1#7", "post.cc:30:pthread_mutex_lock", 12.1, 12.2, 0xa);
  passing_.trace = busy.trace();
  const TimelineFrame frame = whole_frame(report());
  EXPECT_THAT(frame.lanes, testing::ElementsAre("main", thread_, std::string("pool.cc:1 x 60")));
  EXPECT_EQ(frame.threads_left_out, 0u);
  EXPECT_THAT(timeline_svg(report(), WhichRun::passing, frame).svg,
              HasSubstr("pool.cc:1#7: post.cc:30:pthread_mutex_lock"));
}

TEST_F(ExplanationReports, Are_the_same_every_time) {
  EXPECT_EQ(html(), html());
  EXPECT_EQ(explanation_json(report()), explanation_json(report()));
}

TEST_F(ExplanationReports, Are_made_without_any_run) {
  explanation_ = explain(repro_, nullptr, nullptr);
  const ExplanationReport nothing{repro_, explanation_, nullptr, nullptr, {}, nullptr};
  EXPECT_THAT(explanation_text(nothing, Style(true)), HasSubstr("no failing run"));
  EXPECT_THAT(explanation_html(nothing), Not(HasSubstr("<svg class=\"timeline\"")));
  EXPECT_TRUE(parse_json_or_throw(explanation_json(nothing))["critical"].is_null());
}

TEST_F(ExplanationReports, The_JSON_names_cause_and_both_points) {
  const auto json = parse_json_or_throw(explanation_json(report()));
  EXPECT_EQ(json["causes"][0]["cause"], "async wait");
  EXPECT_EQ(json["critical"]["place"]["line"], 24);
  EXPECT_EQ(json["barrier"]["thread"], "main");
  EXPECT_EQ(json["wait"]["asked_us"], 10'000);
}

TEST_F(ExplanationReports, Two_runs_of_one_Chrome_trace_share_no_process) {
  class TextSink : public Sink {
   public:
    void write(std::string_view bytes) override { text += bytes; }
    std::string text;
  } sink;
  write_chrome_traces({{"passing run", &passing_.trace}, {"failing run", &failing_.trace}}, sink);
  std::map<std::string, int> pids;
  const auto json = parse_json_or_throw(sink.text);
  for (const auto& event : json["traceEvents"])
    if (event["name"] == "process_name") pids[event["args"]["name"]] = event["pid"];
  ASSERT_EQ(pids.size(), 2u);
  EXPECT_NE(pids["passing run: test"], pids["failing run: test"]);
}

TEST(DoseChart, Without_measurements_is_nothing) {
  EXPECT_EQ(dose_svg(Repro()), "");
}

TEST(AxisStep, Gives_a_handful_of_marks) {
  for (const double length : {1.0, 7.0, 35.0, 99.0, 1234.0, 2e6}) {
    EXPECT_LE(length / axis_step(length), 10) << length;
    EXPECT_GE(length / axis_step(length), 2) << length;
  }
}

TEST_F(ExplanationReports, Do_not_tell_to_repair_a_margin) {
  make_margin();
  for (const std::string& page : {text(), html(), explanation_json(report())}) {
    EXPECT_THAT(page, HasSubstr("Nothing has to be repaired"));
    EXPECT_THAT(page, Not(HasSubstr("Wait for the condition itself")));
    EXPECT_THAT(page, HasSubstr("3.70 s late"));
  }
  EXPECT_THAT(text(), HasSubstr("no flaw, a margin\n  holds until 3.70 s late"));
  EXPECT_THAT(text(), Not(HasSubstr("root cause")));
  EXPECT_THAT(html(), HasSubstr("No flaw, a margin"));
  EXPECT_THAT(html(), Not(HasSubstr("Root cause")));
  EXPECT_THAT(explanation_json(report()), HasSubstr("\"is_margin\": true"));
}

TEST_F(ExplanationReports, Tell_how_to_repair_what_somebody_has_seen_however_late_it_takes) {
  make_margin();
  repro_.was_seen = true;
  EXPECT_THAT(text(), HasSubstr("Wait for the condition itself"));
  EXPECT_THAT(text(), HasSubstr("root cause"));
  EXPECT_THAT(explanation_json(report()), HasSubstr("\"plausibility\": \"margin\""));
}

TEST_F(ExplanationReports, Say_of_a_bound_no_more_than_the_runs_show) {
  repro_.slack = Slack{Duration(0), Duration(482'000)};
  repro_.doses = {{Duration(0), {0, 5}}, {Duration(120'000), {0, 3}}, {Duration(482'000), {5, 5}}};
  EXPECT_THAT(text(), HasSubstr("slack: at most 482 ms; with 120 ms 0 of 3 runs failed"));
  EXPECT_THAT(text(), Not(HasSubstr("0 us")));
}

}  // namespace
}  // namespace unflake
