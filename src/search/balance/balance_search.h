#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "search/balance/balance.h"
#include "search/balance/balance_runs.h"

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

// What a search for the smallest values knows and has come to so far. Its steps below work on it
// one after the other.
struct BalanceBoard {
  BalanceBoard(BalanceRuns& runs, const BalanceOptions& options, const TimeProfile& profile,
               BalanceReport& report);

  BalanceRuns& runs;
  const BalanceOptions& options;
  const TimeProfile& profile;
  BalanceReport& report;
  const std::vector<TimeValue> values;
  const Setting own;
  std::vector<Bracket> brackets;
  Setting ceiling;   // beyond which nothing is tried: their own, or what they were raised to
  Setting holding;   // the smallest values that held together
  Setting proposed;  // in the end
  Setting careful;   // the same without what may weaken the test
  std::vector<size_t> searched;
  std::map<LoadLevel, OwnFailures> base;  // what is accounted for
  std::map<LoadLevel, Setting> at_load, fails_at_load;
  bool needs_are_known = true;
  bool ran_short = false;  // of time to locate the shortest ones
  bool is_settled = false;
  std::map<size_t, std::string> why_kept;

  Duration finest(size_t value) const;
  bool was_raised() const { return ceiling != own; }
  bool is_changed(size_t value) const { return proposed[value] != own[value]; }
  long changed() const {
    return std::ranges::count_if(searched, [&](size_t i) { return is_changed(i); });
  }
  void search_also(const std::vector<size_t>& members);
  void note_needs();
  std::string text_of(const Setting& setting) const;
};

// Whether a setting holds, against how the test does with its own times.
class SettingCheck {
 public:
  using Verdict = TriedSetting::Verdict;
  explicit SettingCheck(BalanceBoard& board) : board_(board) {}

  bool measure_base(LoadLevel load);
  void choose_at_once();
  bool fails_by_itself(LoadLevel load, int runs);
  Verdict check(const Setting& setting, LoadLevel load, const RateCheck::Limits& limits);
  Verdict check_once(const Setting& setting, LoadLevel load, const RateCheck::Limits& limits);
  bool mostly_fails(const Setting& setting, LoadLevel load) const;
  void tell(const Setting& setting, LoadLevel load, const Count& failed);

 private:
  bool fails_clearly_more(const Setting& setting, LoadLevel load) const;
  bool was_disturbed(const Setting& setting, LoadLevel load, BalanceRuns::Mark before);

  BalanceBoard& board_;
};

// What every step works with.
class BalanceStep {
 public:
  BalanceStep(BalanceBoard& board, SettingCheck& check) : board_(board), check_(check) {}

 protected:
  using Verdict = TriedSetting::Verdict;

  BalanceBoard& board_;
  SettingCheck& check_;
};

// Values that could be shorter, and would save nothing.
class Worth : BalanceStep {
 public:
  using BalanceStep::BalanceStep;
  void leave_out_watchdogs();
  void leave_out_intervals();

 private:
  bool is_watchdog(size_t value);
};

// Longer times for a test that fails by itself, where that helps.
class Raising : BalanceStep {
 public:
  using BalanceStep::BalanceStep;
  void raise();
  void raise_at(LoadLevel load);

 private:
  std::vector<size_t> may_be_raised() const;
  std::vector<size_t> too_short_at(LoadLevel load);
  void take_raised(const std::vector<size_t>& members);
  bool lowers_rate(const std::vector<size_t>& members, LoadLevel load);
  bool lowers_rate_again(const std::vector<size_t>& members, LoadLevel load);
  std::string places_text(const std::vector<size_t>& members) const;
};

// All values go down together, and only when that fails is it found out who was to blame. A passing
// run is evidence for every value at once.
class Lowering : BalanceStep {
 public:
  Lowering(BalanceBoard& board, SettingCheck& check, Duration until)
      : BalanceStep(board, check), locate_until_(until) {}
  void lower_all(std::vector<size_t> members);

 private:
  bool has_time_to_locate() const;
  bool may_jump() const;
  bool can_jump(size_t value) const;
  bool is_located(size_t value) const;
  Duration next(size_t value) const;
  void lower(std::span<const size_t> members, const Setting& candidates);

  const Duration locate_until_;
};

// FaTB's search: a fixed number of runs for each value, half the way down when none of them failed
// and half the way back up when one did. The paper halves towards zero also below a value that has
// failed, and so never comes to an end; here what has failed bounds it.
class Halving : BalanceStep {
 public:
  using BalanceStep::BalanceStep;
  void halve_all(const std::vector<size_t>& members);

 private:
  void halve(size_t value);
};

// Whether the values that were located, a little longer, hold.
class Settling : BalanceStep {
 public:
  enum class Settled { yes, no, flaky_after_all };
  using BalanceStep::BalanceStep;
  Settled settle();
  void leave_out_unused();
  RateCheck::Limits confirming() const;
  void climb(Setting& setting, double step, bool with_unneeded) const;

 private:
  bool is_measured(size_t value, double spread) const;
  bool can_afford(int base_runs) const;
  Setting target();
  void lift_final(bool with_unneeded);
  void refine(const Setting& target);
  void forget_needs();
};

// Whether they hold on a busy machine, too.
class AtLoads : BalanceStep {
 public:
  AtLoads(BalanceBoard& board, SettingCheck& check, Settling& settling, Raising& raising)
      : BalanceStep(board, check), settling_(settling), raising_(raising) {}
  void hold_at_all_loads();

 private:
  // What became of the values at a load.
  enum class Held { yes, no, not_tried };
  Held hold_at(LoadLevel load);
  Held climb_at(LoadLevel load);
  void let_go_of_unneeded(Setting& setting, LoadLevel load, const RateCheck::Limits& limits);

  Settling& settling_;
  Raising& raising_;
};

// What the proposed values save.
class Finishing : BalanceStep {
 public:
  using BalanceStep::BalanceStep;
  void measure_final();

 private:
  void scale_for_other_machine();
  void measure_careful();
};

// The search for the smallest values at which a test still holds, step by step.
class BalanceSearch {
 public:
  BalanceSearch(BalanceRuns& runs, const BalanceOptions& options, const TimeProfile& profile,
                BalanceReport& report);

  void operator()(const std::vector<size_t>& searched);

 private:
  void balance_all();

  BalanceBoard board_;
  SettingCheck check_;
  Raising raising_;
  Settling settling_;
};

// What the board says, into its report.
void write_report(BalanceBoard& board);

// How long what a wait waits for takes, when the runs show it. The runs that are near the edge tell
// what it is: a call of another thread that every passing run had before the wait was over, and
// every failing run had not. From then on each run measures how long it took, whatever its setting,
// and a hundred such times say more of the rare ones than a hundred passes do.
// `number` is the value's place in the settings of the runs.
std::optional<Needed> needed_time(const TimeValue& value, size_t number,
                                  std::span<const KeptRun> runs, double tolerance);

}  // namespace unflake
