#include "search/reproduce/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/trace_builder.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::SizeIs;

ExperimentResult run_of(OutcomeKind kind, Duration duration, const Trace& trace) {
  ExperimentResult result;
  result.outcome.kind = kind;
  result.outcome.duration = duration;
  result.trace = std::make_shared<Trace>(trace);
  return result;
}

Trace polling_loop(uint64_t visits, const std::string& site = "a.cc:1:poll") {
  Trace trace = TraceBuilder().thread("main").call("main", site, 2, 3).trace();
  trace.visits.push_back({0, 0, visits, {}});
  return trace;
}

TEST(Profile, Has_every_place_once_with_the_most_visits_of_a_run) {
  Profile profile;
  add(profile, run_of(OutcomeKind::pass, 10ms, polling_loop(3)));
  add(profile, run_of(OutcomeKind::pass, 10ms, polling_loop(7)));
  add(profile, run_of(OutcomeKind::pass, 10ms, polling_loop(5)));
  add(profile, run_of(OutcomeKind::pass, 10ms, polling_loop(1, "a.cc:2:poll")));
  ASSERT_THAT(profile.places, SizeIs(2));
  EXPECT_EQ(profile.places[0].visits, 7u);
  EXPECT_EQ(profile.places[0].first, 2ms);
}

TEST(Profile, Takes_its_times_from_runs_that_ended) {
  Profile profile;
  add(profile, run_of(OutcomeKind::pass, 10ms, {}));
  add(profile, run_of(OutcomeKind::timeout, 1h, {}));
  add(profile, run_of(OutcomeKind::fail, 30ms, {}));
  EXPECT_EQ(profile.average, 20ms);
  EXPECT_EQ(profile.longest, 30ms);
}

TEST(Profile, Has_a_passing_run_as_its_model_or_one_that_ended_or_any) {
  Profile profile;
  EXPECT_EQ(profile.model(), nullptr);
  ExperimentResult untold = run_of(OutcomeKind::pass, 1ms, {});
  untold.trace = nullptr;
  add(profile, untold);
  EXPECT_EQ(profile.model(), nullptr);
  for (const OutcomeKind kind : {OutcomeKind::timeout, OutcomeKind::fail, OutcomeKind::pass}) {
    add(profile, run_of(kind, 1ms, {}));
    ASSERT_NE(profile.model(), nullptr);
    EXPECT_EQ(profile.model()->outcome.kind, kind);
  }
}

TEST(Profile, Counts_failures_by_signature) {
  Profile profile;
  ExperimentResult failed = run_of(OutcomeKind::fail, 1ms, {});
  failed.outcome.signature = "a";
  add(profile, failed);
  add(profile, run_of(OutcomeKind::pass, 1ms, {}));
  EXPECT_EQ(profile.failures(), 1);
}

// Would take minutes if every place were looked for among all others.
TEST(Profile, Of_very_many_places_is_made_quickly) {
  Trace trace = TraceBuilder().thread("main").trace();
  for (uint32_t i = 0; i < 20000; ++i) {
    TracedSite site;
    site.name.file = "a.cc";
    site.name.line = static_cast<int>(i) + 1;
    site.name.api = "poll";
    trace.sites.push_back(site);
    trace.visits.push_back({0, i, 1, {}});
  }
  Profile profile;
  for (int i = 0; i < 2; ++i) add(profile, run_of(OutcomeKind::pass, 1ms, trace));
  EXPECT_THAT(profile.places, SizeIs(20000));
}

}  // namespace
}  // namespace unflake
