#include "report/explanation_json.h"

#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::ordered_json;

Json time_or_null(std::optional<Duration> time) {
  return time ? Json(time->count()) : Json(nullptr);
}

Json place(const CodeSpot& where) {
  return {{"file", printable(where.file)},
          {"line", where.line},
          {"function", printable(where.function)}};
}

const char* name_of(Moment::What what) {
  switch (what) {
    case Moment::What::call:
      return "call";
    case Moment::What::return_from_call:
      return "return";
    case Moment::What::thread_end:
      return "thread_end";
    case Moment::What::failure:
      return "failure";
  }
  return "";
}

Json moment(const Moment& one) {
  Json json = {{"what", name_of(one.what)},
               {"thread", printable(one.thread)},
               {"started_by", printable(one.started_by)},
               {"place", place(one.place)}};
  if (one.caller) json["caller"] = place(*one.caller);
  if (!one.api.empty()) json["api"] = printable(one.api);
  json["passing_us"] = time_or_null(one.passing);
  json["failing_us"] = time_or_null(one.failing);
  return json;
}

Json wait(const CoveringWait& one) {
  return {{"moment", moment(one.moment)},
          {"is_sleep", one.is_sleep},
          {"times", one.times},
          {"asked_us", time_or_null(one.asked)},
          {"passing_us", time_or_null(one.passing)},
          {"failing_us", one.failing.count()},
          {"ran_out_passing", one.ran_out_passing},
          {"ran_out_failing", one.ran_out_failing},
          {"needed_us", time_or_null(one.needed)}};
}

Json causes(const std::vector<Cause>& all) {
  Json list = Json::array();
  for (const Cause& cause : all) {
    Json evidence = Json::array();
    for (const std::string& text : cause.evidence) evidence.push_back(printable(text));
    list.push_back(
        {{"cause", to_string(cause.kind)}, {"score", cause.score}, {"evidence", evidence}});
  }
  return list;
}

Json late(const std::vector<Lateness>& all) {
  Json list = Json::array();
  for (const Lateness& one : all)
    list.push_back({{"thread", printable(one.thread)},
                    {"started_by", printable(one.started_by)},
                    {"site", printable(one.site)},
                    {"position", one.position},
                    {"place", place(one.place)},
                    {"longest_us", one.longest.count()},
                    {"times", one.times}});
  return list;
}

}  // namespace

std::string explanation_json(const ExplanationReport& report) {
  const ExplanationWords words = words_of(report);
  const Explanation& found = report.explanation;
  Json json = {
      {"format", 1},
      {"test", words.test},
      {"outcome", to_string(report.repro.outcome)},
      {"signature", printable(report.repro.signature)},
      {"plausibility",
       report.repro.plausibility ? Json(to_string(*report.repro.plausibility)) : Json(nullptr)},
      {"is_margin", words.is_margin},
      {"causes", causes(found.causes)},
      {"advice", words.advice},
      {"critical", found.pair ? moment(found.pair->first) : Json(nullptr)},
      {"barrier", found.pair ? moment(found.pair->second) : Json(nullptr)},
      {"same_object", found.pair && found.pair->same_object},
      {"wait", found.wait ? wait(*found.wait) : Json(nullptr)},
      {"failure", found.failure ? moment(*found.failure) : Json(nullptr)},
      {"late", late(found.late)},
      {"story", words.story},
      {"figures", words.figures},
      {"plan", words.plan},
      {"notes", words.notes}};
  return json_text(json, 1) + "\n";
}

}  // namespace unflake
