#include "ingest/case_handler.h"

#include <charconv>

#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_failures_of_case = 100;
constexpr size_t longest_attribute = 64 * 1024;
constexpr size_t longest_short_text = 4096;
constexpr int64_t most_runs_of_case = 1000;

using Run = ReportedFailure::Run;

struct FailureTag {
  std::string_view element;
  Run run;
  bool is_error;
};

// "flaky" and "rerun" are Maven Surefire's and cargo-nextest's, <rerun> is pytest's.
constexpr FailureTag failure_tags[] = {
    {"failure", Run::last, false},        {"error", Run::last, true},
    {"flakyFailure", Run::before, false}, {"flakyError", Run::before, true},
    {"rerun", Run::before, false},        {"rerunFailure", Run::after, false},
    {"rerunError", Run::after, true}};

void assign(std::string& into, std::string_view value) {
  into.assign(value.substr(0, longest_attribute));
}

int64_t number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::clamp<int64_t>(value, 0, most_runs_of_case);
}

// "run" is also what a case that failed has; an element tells that.
ReportedCase::Status status_of(std::string_view word) {
  using Status = ReportedCase::Status;
  if (word.empty()) return Status::none;
  if (word == "fail" || word == "failed" || word == "FAILED") return Status::failed;
  if (word == "notrun" || word == "disabled" || word == "skipped") return Status::not_run;
  return Status::run;
}

}  // namespace

void CaseHandler::start(std::string_view element, const XmlAttributes& attributes) {
  texts_.push_back(nullptr);
  if (in_ctest_case_) return start_ctest(element, attributes);
  if (in_case_) return start_in_case(element, attributes);
  if (element == "testcase") return start_case(attributes);
  if (element == "testsuite") return start_suite(attributes);
  if (element == "testsuites") {
    saw_report_ = true;
    context_ = {};
    assign(context_.root_name, attributes.value("name"));
  } else if (element == "Site") {
    has_site_ = true;
    context_ = {};
  } else if (has_site_) {
    start_ctest(element, attributes);
  }
}

void CaseHandler::end(std::string_view element) {
  texts_.pop_back();
  if (in_ctest_case_ || has_site_) return end_ctest(element);
  if (element == "testcase" && in_case_) {
    in_case_ = false;
    take_case();
  } else if (element == "testsuite" && !in_case_ && !context_.suites.empty()) {
    context_.suites.pop_back();
  }
}

void CaseHandler::text(std::string_view text) {
  if (!texts_.empty() && texts_.back()) texts_.back()->append(text);
  if (wants_short_text_ && short_text_.size() < longest_short_text)
    short_text_.append(text.substr(0, longest_short_text));
}

void CaseHandler::start_suite(const XmlAttributes& attributes) {
  saw_report_ = true;
  if (texts_.size() == 1) context_ = {};  // a document without <testsuites>
  ReportedSuite& suite = context_.suites.emplace_back();
  assign(suite.name, attributes.value("name"));
  suite.timestamp = parse_report_timestamp(attributes.value("timestamp"));
  suite.has_id = attributes.find("id").has_value();
  suite.of_catch2 = attributes.value("hostname") == "tbd";
  suite.of_doctest = attributes.find("doctest_version").has_value();
}

void CaseHandler::start_case(const XmlAttributes& attributes) {
  saw_report_ = in_case_ = true;
  case_.clear();
  assign(case_.classname, attributes.value("classname"));
  assign(case_.name, attributes.value("name"));
  case_.status = status_of(attributes.value("status"));
  case_.time = parse_seconds(attributes.value("time"));
  case_.timestamp = parse_report_timestamp(attributes.value("timestamp"));
  const auto result = attributes.find("result");
  case_.has_result = result.has_value();
  case_.has_assertions = attributes.find("assertions").has_value();
  case_.is_skipped = result == "skipped" || result == "suppressed";
  const std::string_view status = attributes.value("status");
  case_.of_ctest =
      case_.classname == case_.name && !case_.has_result &&
      (status == "run" || status == "fail" || status == "notrun" || status == "disabled");
}

void CaseHandler::start_in_case(std::string_view element, const XmlAttributes& attributes) {
  for (const FailureTag& tag : failure_tags)
    if (element == tag.element) return start_failure(tag.run, tag.is_error, attributes);
  KeptText* const around = texts_.size() > 1 ? texts_[texts_.size() - 2] : nullptr;
  if (element == "skipped" || element == "disabled") case_.is_skipped = true;
  if (element == "skipped" && case_.of_ctest)
    assign(case_.why_not_run, attributes.value("message"));
  if (element == "property") read_property(attributes);
  if (element == "stackTrace") texts_.back() = around;
  if (element == "system-out" || element == "system-err")
    texts_.back() = around ? &case_.failures.back().output : &case_.output;
}

void CaseHandler::start_failure(ReportedFailure::Run run, bool is_error,
                                const XmlAttributes& attributes) {
  if (case_.failures.size() == most_failures_of_case) return;
  case_.failures.reserve(most_failures_of_case);  // pointers into it are kept
  ReportedFailure& failure = case_.failures.emplace_back();
  failure.run = run;
  failure.is_error = is_error;
  assign(failure.message, attributes.value("message"));
  assign(failure.type, attributes.value("type"));
  if (const auto time = attributes.find("time")) failure.time = parse_seconds(*time);
  failure.timestamp = parse_report_timestamp(attributes.value("timestamp"));
  texts_.back() = &failure.text;
}

// Those that unflake writes; everybody else's are not about the result.
void CaseHandler::read_property(const XmlAttributes& attributes) {
  const std::string_view name = attributes.value("name"), value = attributes.value("value");
  if (name == "unflake.runs") case_.runs = number(value);
  if (name == "unflake.failures") case_.failed_runs = number(value);
  if (name == "unflake.test") assign(case_.full_name, value);
}

void CaseHandler::take_case() {
  if (failed_) return;
  if (const auto taken = take_(case_, context_); !taken) failed_ = taken.error();
}

}  // namespace unflake
