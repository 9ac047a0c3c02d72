#include "report/study_json.h"

#include "report/timestamp.h"
#include "stats/intervals.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::ordered_json;

template <class Row>
Json list_of(const std::vector<Row>& rows, Json (*make)(const Row&)) {
  Json list = Json::array();
  for (const Row& row : rows) list.push_back(make(row));
  return list;
}

Json share(int64_t part, int64_t whole) {
  const Interval interval = exact_interval(part, whole);
  return {{"count", part}, {"of", whole}, {"interval_95", {interval.low, interval.high}}};
}

Json number_or_null(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json json_of(const Spread& spread) {
  if (spread.count == 0) return nullptr;
  return {{"count", spread.count},
          {"min", spread.min},
          {"lower_quartile", spread.lower_quartile},
          {"median", spread.median},
          {"upper_quartile", spread.upper_quartile},
          {"max", spread.max},
          {"mean", spread.mean}};
}

Json json_of(const PrevalenceRow& row) {
  return {{"project", printable(row.project)},
          {"tests", row.tests},
          {"builds", row.builds},
          {"failed_builds", row.failed_builds},
          {"runs", row.runs},
          {"median_build_us", row.median_build.count()},
          {"flaky_tests", row.flaky_tests},
          {"flaky_failures", row.flaky_failures},
          {"suppressed", row.suppressed},
          {"flaky_builds_of_failed", share(row.flaky_builds, row.failed_builds)},
          {"flaky_builds_of_all", share(row.flaky_builds, row.builds)}};
}

Json json_of(const FlakyTestRow& row) {
  return {{"project", printable(row.project)},
          {"flaky", row.flaky},
          {"closed", share(row.closed, row.flaky)},
          {"with_commit", row.with_commit},
          {"with_link", row.with_link},
          {"never_flaky", row.never_flaky}};
}

Json json_of(const RateRow& row) {
  return {{"project", printable(row.project)},
          {"tests", row.tests},
          {"runs", row.runs},
          {"passed_and_failed", share(row.both, row.tests)},
          {"reproduced_on_demand", row.on_demand},
          {"failure_rates", json_of(row.rates)}};
}

Json json_of(const RunTimes& times) {
  return {{"runs", times.runs},
          {"mean_us", times.mean.count()},
          {"median_of_medians_us", times.median.count()}};
}

const char* name_of(RunTimeRow::Tendency tendency) {
  switch (tendency) {
    case RunTimeRow::Tendency::longer:
      return "longer";
    case RunTimeRow::Tendency::shorter:
      return "shorter";
    case RunTimeRow::Tendency::unclear:
      break;
  }
  return "unclear";
}

Json json_of(const RunTimeRow& row) {
  return {{"project", printable(row.project)},
          {"passing", json_of(row.passing)},
          {"failing", json_of(row.failing)},
          {"tests_longer", row.longer},
          {"tests_shorter", row.shorter},
          {"tests_same", row.same},
          {"median_ratio", row.ratio},
          {"sign_test_p", row.p},
          {"failing_runs_are", name_of(row.tendency)}};
}

Json json_of(const CategoryCounts& counts) {
  Json causes = Json::array(), places = Json::object();
  for (const CategoryRow& row : counts.causes)
    causes.push_back({{"cause", printable(row.name)}, {"tests", share(row.tests, counts.tests)}});
  const int64_t read = counts.fixes.fixes - counts.fixes.unreadable;
  for (const FixPlace place : all_fix_places)
    places[std::string(to_string(place))] =
        share(counts.fixes.places[static_cast<size_t>(place)], read);
  return {{"flaky_tests", counts.tests},          {"explained", counts.explained},
          {"causes", std::move(causes)},          {"fixes", counts.fixes.fixes},
          {"commits_read", counts.fixes.commits}, {"fixes_not_read", counts.fixes.unreadable},
          {"places", std::move(places)}};
}

Json json_of(const RepairTimeRow& row) {
  return {{"project", printable(row.project)},
          {"closed", row.survival.ended},
          {"open", row.survival.open},
          {"closed_days", json_of(row.closed)},
          {"median_days", number_or_null(row.survival.median)},
          {"median_days_interval_95",
           {number_or_null(row.survival.median_low), number_or_null(row.survival.median_high)}}};
}

Json kinds_of(const FixCounts& fixes) {
  Json async = Json::object(), all = Json::object();
  for (const FixKind kind : all_fix_kinds) {
    const auto i = static_cast<size_t>(kind);
    const std::string name(to_string(kind));
    async[name] = share(fixes.async_kinds[i], fixes.async_fixes);
    all[name] = share(fixes.kinds[i], fixes.fixes - fixes.unreadable);
  }
  return {{"async_wait", std::move(async)}, {"all", std::move(all)}};
}

Json json_of(const Reoccurrence& one) {
  return {{"project", printable(one.project)},        {"test", printable(to_string(one.test))},
          {"signature", printable(one.signature)},    {"closed", timestamp_in_seconds(one.closed)},
          {"again", timestamp_in_seconds(one.again)}, {"commit", printable(one.commit)}};
}

Json json_of(const ReoccurrenceCounts& counts) {
  return {{"tests", share(counts.tests_again, counts.tests)},
          {"tests_only_failing", counts.tests_only_failing},
          {"days", json_of(counts.days)},
          {"failures", list_of(counts.all, json_of)}};
}

Json json_of(const Tries& tries) {
  const Interval interval = exact_interval(tries.failures, tries.runs);
  return {{"failures", tries.failures},
          {"runs", tries.runs},
          {"interval_95", {interval.low, interval.high}}};
}

Json json_of(const ClaimedFix& fix) {
  return {{"project", printable(fix.project)},
          {"test", printable(to_string(fix.test))},
          {"signature", printable(fix.signature)},
          {"closed", timestamp_in_seconds(fix.at)},
          {"commit", printable(fix.commit)},
          {"before", json_of(fix.before)},
          {"after", json_of(fix.after)},
          {"p", fix.p},
          {"p_corrected", fix.p_corrected},
          {"rate_after", to_string(fix.verdict)},
          {"more_runs", fix.more_runs ? Json(*fix.more_runs) : Json(nullptr)}};
}

}  // namespace

std::string study_json(const Study& study) {
  Json notes = Json::array();
  for (const std::string& note : study.notes) notes.push_back(printable(note));
  const Json whole = {
      {"format", 1},
      {"from", timestamp_in_seconds(study.from)},
      {"until", timestamp_in_seconds(study.until)},
      {"complete_since",
       study.complete_since ? Json(timestamp_in_seconds(*study.complete_since)) : Json(nullptr)},
      {"prevalence", list_of(study.prevalence, json_of)},
      {"flaky_tests", list_of(study.flaky_tests, json_of)},
      {"rates", list_of(study.rates, json_of)},
      {"run_times", list_of(study.run_times, json_of)},
      {"categories", json_of(study.categories)},
      {"repair_times", list_of(study.repair_times, json_of)},
      {"fix_kinds", kinds_of(study.categories.fixes)},
      {"reoccurrences", json_of(study.reoccurrences)},
      {"claimed_fixes", list_of(study.claimed_fixes, json_of)},
      {"notes", std::move(notes)}};
  return json_text(whole, 2) + "\n";
}

}  // namespace unflake
