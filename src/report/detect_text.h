#pragma once

#include <string>

#include "model/detect_report.h"
#include "report/layout.h"

namespace unflake {

// A look for flaky tests as it happens: what is done, what was found, and on a terminal a last line
// that counts.
class DetectProgress : public Consumer {
 public:
  DetectProgress(Sink& sink, bool colour, bool live) : sink_(sink), style_(colour), live_(live) {}
  ~DetectProgress() override { print(""); }
  void on(const Event& event) override;

 private:
  void print(const std::string& line);
  void count();

  Sink& sink_;
  const Style style_;
  const bool live_;
  bool is_counting_ = false;
  int runs_ = 0, trials_ = 0, found_ = 0;
  std::string now_;
};

std::string detect_text(const DetectReport& report, const Style& style);
// docs/formats.md describes the members.
std::string detect_json(const DetectReport& report);
// What was found is a failure, with its kind as type; what has shown no sign passes.
std::string detect_junit(const DetectReport& report);
// One page without anything to load.
std::string detect_html(const DetectReport& report);

std::string curve_text(const RerunCurve& curve);
std::string curve_json(const RerunCurve& curve);
std::string curve_svg(const RerunCurve& curve);
std::string curve_html(const RerunCurve& curve);

}  // namespace unflake
