#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "search/balance/balance.h"

namespace unflake {

// What is known about one value: the smallest that holds and the largest that does not.
struct Bracket {
  Duration holds{};
  std::optional<Duration> fails = std::nullopt;
  Duration finest = std::chrono::microseconds(200);  // closer than this there is nothing to gain

  bool is_closed() const;
  // Where to look next: at once for none at all, then down in big steps, then in the middle.
  Duration next() const;
};

// The edge is steep: near it a value is either nearly always good or often bad. A single bad run
// may be the machine's fault.
inline constexpr RateCheck::Limits locating{.tolerated = 0.05, .refused = 0.5, .error = 0.05};

// The search for the smallest values at which a test still holds: all of them go down together, and
// only when that fails is it found out who was to blame. A passing run is evidence for every value
// at once.
class BalanceSearch {
 public:
  BalanceSearch(BalanceRuns& runs, const BalanceOptions& options, const TimeProfile& profile,
                BalanceReport& report);

  void operator()(const std::vector<size_t>& searched);

 private:
  using Verdict = TriedSetting::Verdict;

  void balance_all();
  void leave_out_watchdogs();
  bool is_watchdog(size_t value);
  void leave_out_intervals();
  bool measure_base(LoadLevel load);
  void choose_at_once();
  void raise();
  void raise_at(LoadLevel load);
  std::vector<size_t> may_be_raised() const;
  std::vector<size_t> too_short_at(LoadLevel load);
  void take_raised(const std::vector<size_t>& members);
  void search_also(const std::vector<size_t>& members);
  bool lowers_rate(const std::vector<size_t>& members, LoadLevel load);
  bool lowers_rate_again(const std::vector<size_t>& members, LoadLevel load);
  bool has_time_to_locate() const;
  bool may_jump() const;
  bool can_jump(size_t value) const;
  bool is_located(size_t value) const;
  Duration next(size_t value) const;
  void lower_all(std::vector<size_t> members);
  void lower(std::span<const size_t> members, const Setting& candidates);
  void halve_all(const std::vector<size_t>& members);
  void halve(size_t value);
  // Whether the values that were located, a little longer, hold.
  enum class Settled { yes, no, flaky_after_all };
  Settled settle();
  Setting target();
  void lift_final(bool with_unneeded);
  void refine(const Setting& target);
  void forget_needs();
  bool mostly_fails(const Setting& setting, LoadLevel load) const;
  bool fails_by_itself(LoadLevel load, int runs);
  void climb(Setting& setting, double step, bool with_unneeded) const;
  void leave_out_unused();
  void hold_at_all_loads();
  // What became of the values at a load.
  enum class Held { yes, no, not_tried };
  Held hold_at(LoadLevel load);
  Held climb_at(LoadLevel load);
  void let_go_of_unneeded(Setting& setting, LoadLevel load, const RateCheck::Limits& limits);
  void scale_for_other_machine();
  void measure_final();
  void measure_careful();
  void note_needs();
  void write();
  void describe(size_t value);
  std::string why_kept(size_t value) const;

  Verdict check(const Setting& setting, LoadLevel load, const RateCheck::Limits& limits);
  Verdict check_once(const Setting& setting, LoadLevel load, const RateCheck::Limits& limits);
  bool fails_clearly_more(const Setting& setting, LoadLevel load) const;
  bool was_disturbed(const Setting& setting, LoadLevel load, BalanceRuns::Counts before);
  bool is_measured(size_t value, double spread) const;
  RateCheck::Limits confirming() const;
  std::string text_of(const Setting& setting) const;
  std::string places_text(const std::vector<size_t>& members) const;
  std::optional<Duration> fails_at(LoadLevel load, size_t value) const;
  void tell(const Setting& setting, LoadLevel load, int64_t hits, int64_t runs);
  Duration finest(size_t value) const;
  bool can_afford(int base_runs) const;
  bool was_raised() const { return ceiling_ != own_; }
  bool is_changed(size_t value) const { return final_[value] != own_[value]; }
  long changed() const {
    return std::ranges::count_if(searched_, [&](size_t i) { return is_changed(i); });
  }

  BalanceRuns& runs_;
  const BalanceOptions& options_;
  const TimeProfile& profile_;
  BalanceReport& report_;
  std::vector<TimeValue> values_;
  Setting own_;
  std::vector<Bracket> brackets_;
  Setting ceiling_;  // beyond which nothing is tried: their own, or what they were raised to
  Setting holding_;  // the smallest values that held together
  Setting final_;
  Setting careful_;  // the same without what may weaken the test
  std::vector<size_t> searched_;
  std::map<LoadLevel, OwnFailures> base_;  // what is accounted for
  std::map<LoadLevel, Setting> at_load_, fails_at_load_;
  Duration locate_until_{};
  bool needs_are_known_ = true;
  bool raise_was_tried_ = false;
  bool ran_short_ = false;  // of time to locate the shortest ones
  bool is_settled_ = false;
  std::map<size_t, std::string> why_kept_;
};

}  // namespace unflake
