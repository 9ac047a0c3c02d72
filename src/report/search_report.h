#pragma once

#include "report/events.h"
#include "report/sink.h"
#include "report/style.h"

namespace unflake {

// A search for people: what is tried and why, as it happens, and what was found.
class SearchReport : public Consumer {
 public:
  SearchReport(Sink& sink, bool colour) : sink_(sink), style_(colour) {}
  void on(const Event& event) override;

 private:
  void tell(const SearchStarted& search);
  void tell(const SearchStep& step);
  void tell(const TrialEnded& trial);
  void tell(const FailureReproduced& reproduced);
  void tell(const Note& note);
  template <class Other>
  void tell(const Other&) {}

  Sink& sink_;
  const Style style_;
  std::string strategy_;  // whose steps were told last
  int reruns_ = 0;
};

// What a repro shows, in a few lines: the failure, the plan, how often it came, the slack.
std::string repro_text(const Repro& repro, const Style& style);

}  // namespace unflake
