#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/plan.h"
#include "model/repro.h"
#include "model/test.h"
#include "model/trace.h"
#include "stats/distribution.h"

// What is known after the time values of a test were tried: what the search finds and the reports
// show.
namespace unflake {

enum class LoadLevel { idle, busy, one_core };

std::string_view to_string(LoadLevel load);  // "idle", "busy", "one core"

// Runs with the time values set to something.
struct TriedSetting {
  enum class Verdict {
    holds,      // no more failures than the tolerance allows, as far as these runs can tell
    fails,      // more of them
    undecided,  // the search was over before it could tell
  };
  std::vector<Duration> values;  // one for each of BalanceReport::values
  LoadLevel load = LoadLevel::idle;
  Count failures;
  int new_failures = 0;  // of these, such as runs with the test's own values did not show
  Spread run_time;       // in ms, of the runs that passed
  Verdict verdict = Verdict::undecided;
  double refused_rate = 0;  // what the check was made to refuse; 0: there was none
  bool is_final = false;    // the proposed values, all together
  bool is_careful = false;  // the same, but quiet waits keep their own
  bool on_front = false;    // no other setting at this load is both faster and fails less often
};

// Sets `on_front`, for each load by itself. A setting with which no run passed has no run time and
// is not on it.
void mark_front(std::vector<TriedSetting>& settings);

// How long what a wait waits for took, measured in every run: the end of the wait when it ended
// early, else the time of a call that passing runs had before the wait was over and failing
// runs did not.
struct Needed {
  int times = 0;  // that were measured: one in a run, or one at each visit that ended early
  Duration median{}, longest{};
  Duration at_tolerance{};  // estimated: longer than this is needed as rarely as is tolerated
  // What the wait is really for; without a site the end of the thread, without a thread the wait's
  // own end.
  SiteName call;
  std::string call_location;
  std::string call_thread;
};

// Where the value is in the source.
struct ValueInSource {
  std::string file;  // as it can be opened
  int line = 0;
  std::string text;      // the line as it is, trimmed
  std::string old_text;  // the expression that holds the value; empty: none was found
  std::string new_text;
  std::string why_not;       // why it cannot be edited; empty: it can
  size_t offset = 0;         // of the expression in its file
  std::string caution = {};  // what else the edit changes

  bool can_be_edited() const { return why_not.empty() && !old_text.empty(); }
};

struct BalancedValue {
  enum class Change {
    shorten,
    keep,
    raise,
    not_searched,  // `reason` says why
  };
  TimeValue value;
  Change change = Change::not_searched;
  Duration proposed{};  // the same as now when it is kept
  // The smallest value that held, at each load that was tried.
  struct AtLoad {
    LoadLevel load = LoadLevel::idle;
    Duration smallest{};
    std::optional<Duration> fails{};  // the largest one that did not hold, if that is known
  };
  std::vector<AtLoad> loads;
  bool is_unneeded = false;  // the test passes without any time here: see docs on vacuous waits
  std::string reason;        // one sentence for people
  std::optional<Needed> needed;
  std::optional<ValueInSource> source;

  bool is_changed() const { return change == Change::shorten || change == Change::raise; }
  // A shorter wait may show less than the test is meant to show: see TimeValue::is_quiet().
  bool may_weaken() const { return change == Change::shorten && value.is_quiet(); }
  bool is_left_for_its_length() const {
    return may_weaken() && !(source && source->can_be_edited());
  }
};

struct BalanceReport {
  TestId test;
  double tolerance = 0.001;
  double confidence = 0.95;
  double scale = 1;                   // for a slower machine; the proposed values have it in them
  std::string method;                 // "sequential" or "fatb"
  std::vector<BalancedValue> values;  // most time spent first
  // Runs with the test's own values, agent loaded, at each load that was tried. Empty when the test
  // cannot be measured: the notes say why.
  std::vector<TriedSetting> base;
  std::vector<std::string>
      base_failures;  // headlines of failures it has anyway, most frequent first
  std::vector<TriedSetting> tried;
  int runs = 0;  // all of them, profiling too
  int at_once = 1;
  Duration elapsed{};
  bool interrupted = false, out_of_budget = false;
  std::vector<std::string> notes;  // what else the reader should know, one sentence each

  const TriedSetting* final_setting(LoadLevel load) const;
  // At idle: the proposed values without those that may weaken the test; nullptr: none are left, or
  // they were not measured by themselves.
  const TriedSetting* careful_setting() const;
  bool may_weaken() const;
  // By the median run at idle, before and after; zero when nothing was proposed.
  double saved_ms() const;
  double saved_carefully_ms() const;  // of that, what does not weaken the test
};

// Whether a claimed fix, one value instead of another, changes how often the test fails.
struct ClaimReport {
  enum class Answer { fails_less, fails_more, no_difference, cannot_tell };
  TestId test;
  TimeValue value;
  Duration from{}, to{};
  struct AtLoad {
    LoadLevel load = LoadLevel::idle;
    Count with_from, with_to;
    Spread time_with_from, time_with_to;  // ms
    double p_value = 1;                   // Fisher's exact test, one-sided in the direction seen
    double detectable = 1;                // no_difference: a drop to this rate would have shown
    int more_runs = 0;                    // cannot_tell: of the new value, if they all pass
    Answer answer = Answer::cannot_tell;
  };
  std::vector<AtLoad> loads;
  double confidence = 0.95;
  int runs = 0;
  Duration elapsed{};
  bool interrupted = false;
  std::vector<std::string> notes;
};

struct SuiteBalance {
  struct Entry {
    TestId test;
    double before_ms = 0, after_ms = 0;  // median run, idle; after, quiet waits keep their time
    std::string why_not;                 // nothing was searched; empty: see `report`
    std::optional<BalanceReport> report;
    double saved_ms() const { return before_ms - after_ms; }
  };
  std::string target;
  std::vector<Entry> entries;  // most saved first
  int runs = 0;
  Duration elapsed{};
  bool interrupted = false;
};

}  // namespace unflake
