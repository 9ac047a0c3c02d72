#include "balance_answer.h"

#include <algorithm>

#include "util/json.h"

namespace unflake::eval {
namespace {

using nlohmann::json;

BalanceAnswer::Value read_value(const json& in) {
  BalanceAnswer::Value value;
  in.at("site").get_to(value.site);
  in.at("use").get_to(value.kind);
  in.at("change").get_to(value.change);
  in.at("reason").get_to(value.reason);
  in.at("asked_us").at("most").get_to(value.now_us);
  in.at("proposed_us").get_to(value.proposed_us);
  std::erase(value.kind, '-');  // "time-out"
  std::ranges::replace(value.kind, ' ', '_');
  return value;
}

void read_report(const json& in, BalanceAnswer& answer) {
  in.at("test").get_to(answer.test);
  in.at("runs").get_to(answer.runs);
  in.at("elapsed_us").get_to(answer.elapsed_us);
  in.at("saved_ms").get_to(answer.saved_ms);
  for (const json& value : in.at("values")) answer.values.push_back(read_value(value));
  for (const json& note : in.at("notes")) answer.notes.push_back(note);
  if (in.value("out_of_budget", false)) answer.error = "out of budget";
  if (in.value("interrupted", false)) answer.error = "interrupted";
}

BalanceAnswer read_entry(const json& in) {
  BalanceAnswer answer;
  in.at("test").get_to(answer.test);
  in.at("why_not").get_to(answer.error);
  in.at("before_ms").get_to(answer.before_ms);
  in.at("saved_ms").get_to(answer.saved_ms);
  // Its own leaves out what may weaken the test; here all that is proposed is tried.
  if (!in.at("report").is_null()) read_report(in["report"], answer);
  return answer;
}

json parse(const std::string& text, const char* kind) {
  json in = parse_json_or_throw(text);
  if (in.at("format") != "unflake-balance" || in.at("version") != 1 || in.at("kind") != kind)
    throw std::runtime_error("another format, version or kind");
  return in;
}

}  // namespace

std::string BalanceAnswer::Value::line() const {
  const std::string place = site.substr(site.find('!') + 1);  // after the name of a library
  const size_t file = place.find(':');
  return file == std::string::npos ? place : place.substr(0, place.find(':', file + 1));
}

const BalanceAnswer::Value* BalanceAnswer::at(const std::string& line) const {
  const auto found = std::ranges::find(values, line, &Value::line);
  return found == values.end() ? nullptr : &*found;
}

BalanceAnswer read_balance(const std::string& text) {
  BalanceAnswer answer;
  try {
    read_report(parse(text, "test"), answer);
  } catch (const std::exception& error) {
    answer.error = std::string("not readable: ") + error.what();
  }
  return answer;
}

SuiteAnswer read_suite_balance(const std::string& text) {
  SuiteAnswer answer;
  try {
    const json in = parse(text, "suite");
    in.at("target").get_to(answer.suite);
    in.at("runs").get_to(answer.runs);
    in.at("elapsed_us").get_to(answer.elapsed_us);
    for (const json& entry : in.at("tests")) answer.tests.push_back(read_entry(entry));
  } catch (const std::exception& error) {
    answer.error = std::string("not readable: ") + error.what();
  }
  return answer;
}

}  // namespace unflake::eval
