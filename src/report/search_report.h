#pragma once

#include "model/events.h"
#include "report/sink.h"
#include "report/style.h"

namespace unflake {

// A search for people: what is tried and why, as it happens, and what was found. A live one counts
// the runs that get no line of their own on the last line of the terminal.
class SearchReport : public Consumer {
 public:
  SearchReport(Sink& sink, bool colour, bool live = false)
      : sink_(sink), style_(colour), live_(live) {}
  ~SearchReport() override { print(""); }
  void on(const Event& event) override;

 private:
  void tell(const SearchStarted& search);
  void tell(const SearchStep& step);
  void tell(const TrialEnded& trial);
  void tell(const FailureReproduced& reproduced);
  void tell(const Note& note);
  void tell(const SearchEnded&) { print(""); }
  template <class Other>
  void tell(const Other&) {}

  void print(const std::string& lines);
  void count(const TrialEnded& trial);
  void tell_profile();
  std::string failure_text(const Outcome& outcome);

  Sink& sink_;
  const Style style_;
  const bool live_;
  bool is_counting_ = false;  // the last line of the terminal is a count
  std::string strategy_;      // whose steps were told last
  std::string failure_;       // that was told last
  bool wants_any_ = true;     // failure, and not a given one
  int reruns_ = 0;
  int profile_runs_ = 0, profile_failures_ = 0;
};

// What a repro shows, in a few lines: the failure, the plan, how often it came, the slack.
std::string repro_text(const Repro& repro, const Style& style);

}  // namespace unflake
