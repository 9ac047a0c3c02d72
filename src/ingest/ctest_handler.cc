// CTest's own Test.xml: <Site><Testing><StartTestTime/><Test Status=><Name/><Results>...
#include "ingest/case_handler.h"
#include "util/text.h"

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

// The packed form would need another library to read what CTest writes plainly on request.
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
  // "Exit Code" has CTest's word for the end; of a time-out only the status tells.
  if (measurement_ == "Exit Code" && value != "Failed") case_.failures[0].message = value;
  if (measurement_ == "Completion Status" && value == "Timeout")
    case_.failures[0].message = "Timeout";
}

}  // namespace unflake
