#include "report/balance_pages.h"

#include <algorithm>

#include "report/trace_text.h"
#include "stats/rates.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::ordered_json;

Json head(const char* kind) {
  return {{"format", "unflake-balance"}, {"version", 1}, {"kind", kind}};
}

std::string text_of(std::string_view text) {
  return printable(shorten(text, longest_text));
}

Json texts(const std::vector<std::string>& all) {
  Json list = Json::array();
  for (const std::string& text : all) list.push_back(text_of(text));
  return list;
}

const char* name_of(BalancedValue::Change change) {
  switch (change) {
    case BalancedValue::Change::shorten:
      return "shorten";
    case BalancedValue::Change::keep:
      return "keep";
    case BalancedValue::Change::raise:
      return "raise";
    case BalancedValue::Change::not_searched:
      break;
  }
  return "not_searched";
}

const char* name_of(TriedSetting::Verdict verdict) {
  switch (verdict) {
    case TriedSetting::Verdict::holds:
      return "holds";
    case TriedSetting::Verdict::fails:
      return "fails";
    case TriedSetting::Verdict::undecided:
      break;
  }
  return "undecided";
}

const char* name_of(ClaimReport::Answer answer) {
  switch (answer) {
    case ClaimReport::Answer::fails_less:
      return "fails_less";
    case ClaimReport::Answer::fails_more:
      return "fails_more";
    case ClaimReport::Answer::no_difference:
      return "no_difference";
    case ClaimReport::Answer::cannot_tell:
      break;
  }
  return "cannot_tell";
}

// The members that every count of failures has.
void add_count(Json& json, const Count& failures, double confidence) {
  const Interval interval = failures.interval(confidence);
  json["failures"] = failures.hits;
  json["runs"] = failures.runs;
  json["interval"] = {interval.low, interval.high};
}

void add_times(Json& json, const Spread& times) {
  json["mean_ms"] = times.count > 0 ? Json(times.mean) : Json(nullptr);
  json["median_ms"] = times.count > 0 ? Json(times.median) : Json(nullptr);
}

Json setting(const TriedSetting& one, double confidence) {
  Json values = Json::array();
  for (const Duration value : one.values) values.push_back(value.count());
  Json json = {{"values_us", values}, {"load", to_string(one.load)}};
  add_count(json, one.failures, confidence);
  json["new_failures"] = one.new_failures;
  add_times(json, one.run_time);
  json["verdict"] = name_of(one.verdict);
  json["refused_rate"] = one.refused_rate > 0 ? Json(one.refused_rate) : Json(nullptr);
  json["final"] = one.is_final;
  json["careful"] = one.is_careful;
  json["on_front"] = one.on_front;
  return json;
}

Json settings(const std::vector<TriedSetting>& all, double confidence) {
  Json list = Json::array();
  for (const TriedSetting& one : all) list.push_back(setting(one, confidence));
  return list;
}

Json callers(const TimeValue& value) {
  Json list = Json::array();
  const auto runs = static_cast<int64_t>(std::max<uint64_t>(1, value.runs));
  for (const TimeValue::Caller& caller : value.callers)
    list.push_back({{"location", text_of(caller.location)},
                    {"asked_us", {{"least", caller.least.count()}, {"most", caller.most.count()}}},
                    {"visits", caller.visits},
                    {"spent_us_per_run", (caller.spent / runs).count()}});
  return list;
}

Json json_of(const TimeValue& value) {
  return {{"site", text_of(to_string(value.site))},
          {"location", text_of(value.location)},
          {"executable", text_of(value.executable)},
          {"group", text_of(value.group)},
          {"use", to_string(value.use())},
          {"project", value.is_project},
          {"constant", value.is_constant()},
          {"asked_us", {{"least", value.least.count()}, {"most", value.most.count()}}},
          {"visits", value.visits},
          {"runs", value.runs},
          {"ran_out", value.ran_out},
          {"ended_early", value.ended_early},
          {"spent_us_per_run", value.spent_per_run().count()},
          {"quiet", value.is_quiet()},
          {"callers", callers(value)}};
}

Json loads(const std::vector<BalancedValue::AtLoad>& all) {
  Json list = Json::array();
  for (const auto& at : all)
    list.push_back({{"load", to_string(at.load)},
                    {"smallest_us", at.smallest.count()},
                    {"fails_us", at.fails ? Json(at.fails->count()) : Json(nullptr)}});
  return list;
}

Json json_of(const std::optional<Needed>& needed) {
  if (!needed) return nullptr;
  const bool has_no_site = needed->call == SiteName();
  return {{"times", needed->times},
          {"median_us", needed->median.count()},
          {"longest_us", needed->longest.count()},
          {"at_tolerance_us", needed->at_tolerance.count()},
          {"event", has_no_site ? Json(nullptr) : Json(text_of(to_string(needed->call)))},
          {"event_location", text_of(needed->call_location)},
          {"event_thread", text_of(needed->call_thread)}};
}

Json json_of(const std::optional<ValueInSource>& source) {
  if (!source) return nullptr;
  return {{"file", text_of(source->file)},         {"line", source->line},
          {"text", text_of(source->text)},         {"old_text", text_of(source->old_text)},
          {"new_text", text_of(source->new_text)}, {"why_not", text_of(source->why_not)},
          {"caution", text_of(source->caution)}};
}

Json json_of(const BalancedValue& one) {
  Json json = json_of(one.value);
  json["change"] = name_of(one.change);
  json["proposed_us"] = one.proposed.count();
  json["loads"] = loads(one.loads);
  json["unneeded"] = one.is_unneeded;
  json["may_weaken"] = one.may_weaken();
  json["reason"] = text_of(one.reason);
  json["needed"] = json_of(one.needed);
  json["source"] = json_of(one.source);
  return json;
}

void add_report(Json& json, const BalanceReport& report) {
  json["test"] = text_of(to_string(report.test));
  json["tolerance"] = report.tolerance;
  json["confidence"] = report.confidence;
  json["scale"] = report.scale;
  json["method"] = text_of(report.method);
  json["runs"] = report.runs;
  json["at_once"] = report.at_once;
  json["elapsed_us"] = report.elapsed.count();
  json["interrupted"] = report.interrupted;
  json["out_of_budget"] = report.out_of_budget;
  json["saved_ms"] = report.saved_ms();
  json["saved_carefully_ms"] = report.saved_carefully_ms();
  json["values"] = Json::array();
  for (const BalancedValue& value : report.values) json["values"].push_back(json_of(value));
  json["base"] = settings(report.base, report.confidence);
  json["base_failures"] = texts(report.base_failures);
  json["tried"] = settings(report.tried, report.confidence);
  json["notes"] = texts(report.notes);
}

Json with_value(const Count& failures, const Spread& times, double confidence) {
  Json json;
  add_count(json, failures, confidence);
  add_times(json, times);
  return json;
}

Json json_of(const ClaimReport::AtLoad& at, double confidence) {
  return {{"load", to_string(at.load)},
          {"from", with_value(at.with_from, at.time_with_from, confidence)},
          {"to", with_value(at.with_to, at.time_with_to, confidence)},
          {"p", at.p_value},
          {"detectable", at.detectable},
          {"more_runs", at.more_runs},
          {"answer", name_of(at.answer)}};
}

Json json_of(const SuiteBalance::Entry& entry) {
  Json json = {{"test", text_of(to_string(entry.test))},
               {"before_ms", entry.before_ms},
               {"after_ms", entry.after_ms},
               {"saved_ms", entry.saved_ms()},
               {"why_not", text_of(entry.why_not)},
               {"report", nullptr}};
  if (!entry.report) return json;
  json["report"] = Json::object();
  add_report(json["report"], *entry.report);
  return json;
}

std::string written(const Json& json) {
  return json_text(json, 1) + "\n";
}

}  // namespace

std::string balance_json(const BalanceReport& report) {
  Json json = head("test");
  add_report(json, report);
  return written(json);
}

std::string claim_json(const ClaimReport& report) {
  Json json = head("claim");
  json["test"] = text_of(to_string(report.test));
  json["value"] = json_of(report.value);
  json["from_us"] = report.from.count();
  json["to_us"] = report.to.count();
  json["confidence"] = report.confidence;
  json["runs"] = report.runs;
  json["elapsed_us"] = report.elapsed.count();
  json["interrupted"] = report.interrupted;
  json["loads"] = Json::array();
  for (const auto& at : report.loads) json["loads"].push_back(json_of(at, report.confidence));
  json["notes"] = texts(report.notes);
  return written(json);
}

std::string suite_balance_json(const SuiteBalance& suite) {
  Json json = head("suite");
  json["target"] = text_of(suite.target);
  json["runs"] = suite.runs;
  json["elapsed_us"] = suite.elapsed.count();
  json["interrupted"] = suite.interrupted;
  json["tests"] = Json::array();
  for (const SuiteBalance::Entry& entry : suite.entries) json["tests"].push_back(json_of(entry));
  return written(json);
}

}  // namespace unflake
