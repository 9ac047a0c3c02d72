#include "ingest/report_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>

#include "util/text.h"

namespace unflake {
namespace {

using std::chrono::sys_days;

constexpr double longest_seconds = 30 * 86400.0;
constexpr std::chrono::year first_year{1980}, last_year{2200};

// "1,234.5" and "1,234,567" have thousands; "0,25" and "12,5" a decimal comma.
std::string with_point(std::string_view text) {
  const size_t comma = text.find(',');
  const bool has_point = text.find('.') != std::string_view::npos;
  const size_t decimals = text.size() - comma - 1;
  const bool is_decimal = !has_point && text.find(',', comma + 1) == std::string_view::npos &&
                          (decimals != 3 || text.substr(0, comma) == "0");
  std::string plain;
  for (const char c : text)
    if (c != ',' || is_decimal) plain += c == ',' ? '.' : c;
  return plain;
}

// The value of a number of fixed width, which is removed from the text.
std::optional<int> take_number(std::string_view& text, size_t digits) {
  int value = 0;
  if (text.size() < digits) return std::nullopt;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + digits, value);
  if (failed != std::errc() || end != text.data() + digits || value < 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

Duration take_fraction(std::string_view& text) {
  int64_t microseconds = 0, unit = 100'000;
  if (!take(text, ".,")) return Duration(0);
  for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; text.remove_prefix(1), unit /= 10)
    microseconds += (text[0] - '0') * unit;
  return Duration(microseconds);
}

// "", "Z", "+02:00", "+0200", "+02"
std::optional<Duration> take_zone(std::string_view text) {
  if (text.empty() || text == "Z" || text == "z") return Duration(0);
  const bool is_west = text[0] == '-';
  if (!take(text, "+-")) return std::nullopt;
  const auto hours = take_number(text, 2);
  take(text, ":");
  const auto minutes = text.empty() ? std::optional<int>(0) : take_number(text, 2);
  if (!hours || !minutes || !text.empty() || *hours > 18 || *minutes > 59) return std::nullopt;
  const Duration zone = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
  return is_west ? -zone : zone;
}

std::optional<sys_days> take_date(std::string_view& text) {
  const auto year = take_number(text, 4);
  const bool first = take(text, "-");
  const auto month = take_number(text, 2);
  const bool second = take(text, "-");
  const auto day = take_number(text, 2);
  if (!year || !month || !day || !first || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || date.year() < first_year || date.year() > last_year) return std::nullopt;
  return sys_days(date);
}

}  // namespace

ReportedTime parse_seconds(std::string_view text) {
  text = trim(text);
  if (text.empty()) return {};
  const bool has_comma = text.find(',') != std::string_view::npos;
  const std::string plain = has_comma ? with_point(text) : std::string();
  if (has_comma) text = plain;
  double seconds = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (failed == std::errc::result_out_of_range) return {Duration(0), true};
  if (failed != std::errc() || (!unit.empty() && unit != "s") || std::isnan(seconds) || seconds < 0)
    return {Duration(0), true};
  if (seconds > longest_seconds)
    return {std::chrono::duration_cast<Duration>(std::chrono::days(30)), true};
  return {Duration(std::llround(seconds * 1e6)), false};
}

std::optional<TimePoint> parse_report_timestamp(std::string_view text) {
  text = trim(text);
  const auto date = take_date(text);
  if (!date) return std::nullopt;
  if (text.empty()) return TimePoint(*date);
  if (!take(text, "T t")) return std::nullopt;
  const auto hours = take_number(text, 2);
  const bool colon = take(text, ":");
  const auto minutes = take_number(text, 2);
  if (!hours || !minutes || !colon || *hours > 24 || *minutes > 59) return std::nullopt;
  const auto seconds = take(text, ":") ? take_number(text, 2) : std::optional<int>(0);
  if (!seconds || *seconds > 60) return std::nullopt;
  const Duration fraction = take_fraction(text);
  const auto zone = take_zone(text);
  if (!zone) return std::nullopt;
  return TimePoint(*date) + std::chrono::hours(*hours) + std::chrono::minutes(*minutes) +
         std::chrono::seconds(*seconds) + fraction - *zone;
}

std::optional<TimePoint> parse_epoch_seconds(std::string_view text) {
  text = trim(text);
  int64_t seconds = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool is_number = failed == std::errc() && end == text.data() + text.size();
  const TimePoint first = sys_days(first_year / 1 / 1), last = sys_days(last_year / 1 / 1);
  if (!is_number || seconds < first.time_since_epoch() / std::chrono::seconds(1) ||
      seconds > last.time_since_epoch() / std::chrono::seconds(1))
    return std::nullopt;
  return TimePoint(std::chrono::seconds(seconds));
}

void KeptText::clear() {
  if (!empty()) capture_ = BoundedCapture(head_bytes, tail_bytes);
}

std::string KeptText::text() const {
  const std::string tail = capture_.tail();
  const uint64_t missing = capture_.total() - capture_.head().size() - tail.size();
  if (missing == 0) return capture_.head() + tail;
  return fmt::format("{}\n[... {} bytes not shown ...]\n{}", capture_.head(), missing, tail);
}

// Keeps the memory of what every case has.
void ReportedCase::clear() {
  classname.clear();
  name.clear();
  full_name.clear();
  why_not_run.clear();
  status = Status::none;
  time = {};
  timestamp.reset();
  has_result = has_assertions = of_ctest = is_skipped = false;
  runs = failed_runs = 0;
  failures.clear();
  output.clear();
}

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

// "run" is also what a case that failed has; an element says that.
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

// CTest's own Test.xml: <Site><Testing><StartTestTime/><Test Status=><Name/><Results>...

namespace unflake {
namespace {

constexpr std::string_view short_elements[] = {"StartTestTime", "Name", "Value"};

}  // namespace

void CaseHandler::start_ctest(std::string_view element, const XmlAttributes& attributes) {
  if (element == "Testing") saw_report_ = true;
  if (element == "Test" && attributes.find("Status")) {  // the list above the tests has none
    case_.clear();
    in_ctest_case_ = case_.of_ctest = true;
    const std::string_view status = attributes.value("Status");
    case_.status = status == "passed"   ? ReportedCase::Status::run
                   : status == "failed" ? ReportedCase::Status::failed
                                        : ReportedCase::Status::not_run;
    if (case_.status == ReportedCase::Status::failed) {
      case_.failures.reserve(1);
      case_.failures.emplace_back().message = "Failed";
    }
  }
  if (element == "NamedMeasurement") measurement_ = attributes.value("name");
  if (element == "Measurement") measurement_ = "Output";
  for (const std::string_view known : short_elements) {
    if (element != known) continue;
    short_text_.clear();
    wants_short_text_ = true;
  }
  if (element == "Value" && measurement_ == "Output") start_ctest_value(attributes);
}

// The compressed form would need another library to read what CTest writes plainly on request.
void CaseHandler::start_ctest_value(const XmlAttributes& attributes) {
  wants_short_text_ = false;
  if (attributes.find("compression") || attributes.find("encoding"))
    packed_outputs_ += case_.status == ReportedCase::Status::failed;
  else
    texts_.back() = &case_.output;
}

void CaseHandler::end_ctest(std::string_view element) {
  wants_short_text_ = false;
  if (element == "Site") has_site_ = false;
  if (element == "StartTestTime" && !in_ctest_case_) {
    context_.suites.resize(1);
    context_.suites[0].timestamp = parse_epoch_seconds(short_text_);
  }
  if (!in_ctest_case_) return;
  if (element == "Name") case_.name = case_.classname = trim(short_text_);
  if (element == "Value") take_ctest_measurement();
  if (element == "NamedMeasurement" || element == "Measurement") measurement_.clear();
  if (element != "Test") return;
  in_ctest_case_ = false;
  take_case();
}

void CaseHandler::take_ctest_measurement() {
  const std::string_view value = trim(short_text_);
  if (measurement_ == "Execution Time") case_.time = parse_seconds(value);
  if (measurement_ == "Completion Status" && case_.status == ReportedCase::Status::not_run)
    case_.why_not_run = value;
  if (case_.failures.empty()) return;
  // "Exit Code" has CTest's word for the end; only the status shows a time-out.
  if (measurement_ == "Exit Code" && value != "Failed") case_.failures[0].message = value;
  if (measurement_ == "Completion Status" && value == "Timeout")
    case_.failures[0].message = "Timeout";
}

}  // namespace unflake
