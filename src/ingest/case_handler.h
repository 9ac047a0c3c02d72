#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ingest/reported_case.h"
#include "ingest/xml_reader.h"

namespace unflake {

// Where a case stands. `suites` is from the outside inwards.
struct CaseContext {
  std::string root_name;
  std::vector<ReportedSuite> suites;
};

// Puts the cases of JUnit's and of CTest's XML together, and forgets each when it was taken.
class CaseHandler : public XmlHandler {
 public:
  using Take = std::function<Result<void>(const ReportedCase&, const CaseContext&)>;
  explicit CaseHandler(Take take) : take_(std::move(take)) {}

  void start(std::string_view element, const XmlAttributes& attributes) override;
  void end(std::string_view element) override;
  void text(std::string_view text) override;
  const std::optional<Error>& failed() const override { return failed_; }

  bool saw_report() const { return saw_report_; }  // an element that only test reports have
  // Texts that CTest has packed are left out.
  int64_t packed_outputs() const { return packed_outputs_; }

 private:
  void start_suite(const XmlAttributes& attributes);
  void start_case(const XmlAttributes& attributes);
  void start_in_case(std::string_view element, const XmlAttributes& attributes);
  void start_failure(ReportedFailure::Run run, bool is_error, const XmlAttributes& attributes);
  void read_property(const XmlAttributes& attributes);
  void start_ctest(std::string_view element, const XmlAttributes& attributes);
  void start_ctest_value(const XmlAttributes& attributes);
  void end_ctest(std::string_view element);
  void take_ctest_measurement();
  void take_case();

  Take take_;
  std::optional<Error> failed_;
  CaseContext context_;
  ReportedCase case_;
  bool in_case_ = false, in_ctest_case_ = false;
  bool saw_report_ = false, has_site_ = false;
  int64_t packed_outputs_ = 0;
  std::vector<KeptText*> texts_;  // of each open element, where its text goes
  std::string short_text_;        // of CTest's small elements
  bool wants_short_text_ = false;
  std::string measurement_;  // the name of the one that is open
};

}  // namespace unflake
