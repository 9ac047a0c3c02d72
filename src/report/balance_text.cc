#include "report/balance_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/layout.h"
#include "stats/rates.h"
#include "util/text.h"

namespace unflake {
namespace {

std::string indented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

std::string part(const Style& style, const std::string& heading,
                 const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  return "\n" + style.paint(Tone::plain, heading) + "\n" + indented(lines);
}

std::string table_text(const BalanceTable& table) {
  Table cells(table.header);
  for (const auto& row : table.rows) cells.add(row);
  return cells.text() + indented(table.remarks);
}

std::string notes_text(const Style& style, const std::vector<std::string>& notes) {
  std::string text = notes.empty() ? "" : "\n";
  for (const std::string& note : notes)
    text += fmt::format("{}: {}\n", style.paint(Tone::doubtful, "note"), note);
  return text;
}

std::string value_part(const Style& style, const BalancedValueWords& words) {
  std::string text = "\n" + style.paint(Tone::plain, words.title) + "\n";
  text +=
      "  " + (words.is_changed ? style.paint(Tone::good, words.proposal) : words.proposal) + "\n";
  for (const auto* lines : {&words.facts, &words.evidence, &words.advice}) text += indented(*lines);
  if (!words.place.empty()) text += "  " + words.place + "\n";
  if (!words.old_line.empty())
    text += fmt::format("    {}\n    {}\n", style.paint(Tone::bad, "- " + words.old_line),
                        style.paint(Tone::good, "+ " + words.new_line));
  if (!words.caution.empty()) text += "  " + style.paint(Tone::doubtful, words.caution) + "\n";
  return text;
}

}  // namespace

std::string balance_text(const BalanceReport& report, const Style& style, bool all) {
  const BalanceWords words = words_of(report);
  const bool is_changed = report.saved_ms() != 0;
  std::string text = words.test + "\n  " +
                     (is_changed ? style.paint(Tone::good, words.result) : words.result) + "\n";
  for (const BalancedValueWords& value : words.values) text += value_part(style, value);
  text += part(style, "in third-party code", words.foreign);
  if (const BalanceTable table = settings_table(report, all); !table.rows.empty())
    text += "\n" + style.paint(Tone::plain, "measured") + "\n" + table_text(table);
  text += indented(words.measured);
  text += part(style, "what this shows", words.meaning);
  return text + notes_text(style, words.notes);
}

std::string claim_text(const ClaimReport& report, const Style& style) {
  const ClaimWords words = words_of(report);
  std::string text = fmt::format("{}\n  {}\n", words.test, style.paint(Tone::plain, words.result));
  text += part(style, "the value", words.value);
  text += part(style, "measured", words.measured);
  text += part(style, "what this shows", words.answers);
  return text + notes_text(style, words.notes);
}

std::string suite_balance_text(const SuiteBalance& suite, const Style& style) {
  const SuiteBalanceWords words = words_of(suite);
  std::string text = style.paint(Tone::plain, words.result) + "\n";
  if (!words.ranking.rows.empty()) text += "\n" + table_text(words.ranking);
  return text + notes_text(style, words.notes);
}

namespace {

constexpr size_t most_columns = 6;

const char* verdict_text(TriedSetting::Verdict verdict) {
  switch (verdict) {
    case TriedSetting::Verdict::holds:
      return "holds";
    case TriedSetting::Verdict::fails:
      return "does not hold";
    case TriedSetting::Verdict::undecided:
      break;
  }
  return "undecided";
}

class SettingsTable {
 public:
  SettingsTable(const BalanceReport& report, bool all) : report_(report), all_(all) {}

  BalanceTable operator()() {
    choose_settings();
    if (rows_.empty()) return {};
    choose_columns();
    header();
    for (const TriedSetting* setting : rows_) row(*setting);
    remark();
    return std::move(table_);
  }

 private:
  bool is_shown(const TriedSetting& tried) const {
    return all_ || tried.is_final || tried.is_careful ||
           (tried.on_front && tried.load == LoadLevel::idle);
  }

  void choose_settings() {
    for (const TriedSetting& base : report_.base) rows_.push_back(&base);
    own_ = rows_.size();
    for (const TriedSetting& tried : report_.tried)
      if (is_shown(tried)) rows_.push_back(&tried);
    const auto order = [](const TriedSetting* a, const TriedSetting* b) {
      if (a->is_final != b->is_final) return a->is_final;
      if (a->is_careful != b->is_careful) return a->is_careful;
      if (a->load != b->load) return a->load < b->load;
      return a->values > b->values;
    };
    std::stable_sort(rows_.begin() + static_cast<std::ptrdiff_t>(own_), rows_.end(), order);
  }

  void remark() {
    if (std::ranges::any_of(rows_, [](const auto* row) { return row->is_careful; }))
      table_.remarks.push_back(
          "careful: as proposed, but waits that nothing ended early keep their time.");
    if (columns_left_out_ > 0)
      table_.remarks.push_back(
          fmt::format("{} with less time not shown: --json has all",
                      counted(static_cast<long long>(columns_left_out_), "more value")));
    const size_t left_out = report_.tried.size() + own_ - rows_.size();
    if (left_out > 0)
      table_.remarks.push_back(
          fmt::format("Of the others tried, only those that no other beats in both failures and "
                      "run time (idle); "
                      "{} more were tried.",
                      left_out));
  }

  // Values that are the same in all settings say nothing.
  void choose_columns() {
    for (size_t i = 0; i < report_.values.size(); ++i) {
      const Duration own = report_.values[i].value.most;
      const bool varies = std::ranges::any_of(report_.tried, [&](const TriedSetting& setting) {
        return i < setting.values.size() && setting.values[i] != own;
      });
      if (varies) columns_.push_back(i);
    }
    if (columns_.size() <= most_columns) return;
    columns_left_out_ = columns_.size() - most_columns;
    columns_.resize(most_columns);
  }

  void header() {
    table_.header = {"", "load"};
    for (const size_t i : columns_) table_.header.push_back(fmt::format("value {}", i + 1));
    for (const std::string& name :
         {std::string("failed"), confidence_text(report_.confidence) + " interval",
          std::string("mean run"), std::string("median run")})
      table_.header.push_back(name);
    if (all_) table_.header.push_back("verdict");
  }

  void row(const TriedSetting& setting) {
    const bool is_own = table_.rows.size() < own_;
    std::vector<std::string> cells{is_own               ? "now"
                                   : setting.is_final   ? "proposed"
                                   : setting.is_careful ? "careful"
                                                        : "",
                                   std::string(to_string(setting.load))};
    for (const size_t i : columns_)
      cells.push_back(i < setting.values.size() ? value_text(setting.values[i]) : "-");
    const Count& failures = setting.failures;
    const Spread& times = setting.run_time;
    cells.push_back(fmt::format("{}/{}", failures.hits, failures.runs));
    cells.push_back(interval_text(failures.interval(report_.confidence)));
    cells.push_back(times.count == 0 ? "-" : ms_text(times.mean));
    cells.push_back(times.count == 0 ? "-" : ms_text(times.median));
    if (all_) cells.push_back(is_own ? "" : verdict_text(setting.verdict));
    table_.rows.push_back(std::move(cells));
  }

  const BalanceReport& report_;
  const bool all_;
  BalanceTable table_;
  std::vector<const TriedSetting*> rows_;  // the test's own values first
  size_t own_ = 0;
  std::vector<size_t> columns_;
  size_t columns_left_out_ = 0;
};

bool has_result(const SuiteBalance::Entry& entry) {
  return entry.why_not.empty() && entry.report.has_value();
}

bool saves(const SuiteBalance::Entry& entry) {
  return has_result(entry) && entry.report->saved_carefully_ms() != 0;
}

std::string values_text(const SuiteBalance::Entry& entry) {
  if (!entry.report) return "-";
  const auto& values = entry.report->values;
  const auto changed = std::ranges::count_if(
      values, [](const BalancedValue& one) { return one.is_changed() && !one.may_weaken(); });
  return fmt::format("{} of {}", changed, values.size());
}

// What the proposed values save beyond what is counted.
double quiet_ms(const BalanceReport& report) {
  return report.saved_ms() - report.saved_carefully_ms();
}

std::string quiet_text(const BalanceReport& report) {
  std::vector<std::string> places;
  for (const BalancedValue& value : report.values)
    if (value.may_weaken()) places.push_back(to_string(value.value.site));
  return one_line(fmt::format(
      "not counted: {} with a shorter wait that nothing ended early ({}): it may test less",
      ms_text(quiet_ms(report)), join(places, ", ")));
}

std::string remark_text(const SuiteBalance::Entry& entry) {
  if (!entry.why_not.empty()) return one_line(entry.why_not);
  if (!entry.report) return "not searched";
  if (entry.report->may_weaken()) return quiet_text(*entry.report);
  return saves(entry) ? "" : words_of(*entry.report).result;
}

std::string sum_text(double saved_ms, int64_t tests, const SuiteBalance& suite) {
  const std::string all = counted(static_cast<long long>(suite.entries.size()), "test");
  if (tests == 0) return "nothing to save in " + all;
  return fmt::format("{} {} per run of the suite, in {} of {}", ms_text(std::abs(saved_ms)),
                     saved_ms < 0 ? "more" : "saved", tests, all);
}

std::vector<std::string> ranking_row(size_t rank, const SuiteBalance::Entry& entry) {
  const bool known = saves(entry);
  return {std::to_string(rank),
          one_line(to_string(entry.test)),
          known ? ms_text(entry.saved_ms()) : "-",
          known                 ? ms_text(entry.before_ms) + " -> " + ms_text(entry.after_ms)
          : entry.before_ms > 0 ? ms_text(entry.before_ms)
                                : "-",
          values_text(entry),
          remark_text(entry)};
}

}  // namespace

BalanceTable settings_table(const BalanceReport& report, bool all) {
  return SettingsTable(report, all)();
}

SuiteBalanceWords words_of(const SuiteBalance& suite) {
  SuiteBalanceWords words;
  words.ranking.header = {"", "test", "saved", "median run", "values changed", "remark"};
  double before = 0, after = 0, not_counted = 0;
  int64_t runs = 0, tests = 0;
  for (const SuiteBalance::Entry& entry : suite.entries) {
    words.ranking.rows.push_back(ranking_row(words.ranking.rows.size() + 1, entry));
    if (has_result(entry)) not_counted += quiet_ms(*entry.report);
    if (!saves(entry)) continue;
    before += entry.before_ms;
    after += entry.after_ms;
    runs += entry.report->careful_setting()->run_time.count;
    ++tests;
  }
  words.result = one_line(suite.target + ": " + sum_text(before - after, tests, suite));
  if (tests > 0)
    words.notes.push_back(fmt::format(
        "the sum over the tests of their median passing run, {} with their own values and {} with "
        "the proposed ones, idle, measured in {} with all new values of a test together; tests "
        "that "
        "run at the same time save less",
        ms_text(before), ms_text(after), counted(runs, "run")));
  if (not_counted > 0)
    words.notes.push_back(fmt::format(
        "another {} would be saved by shorter waits that nothing ended early in any run. They are "
        "neither in the sum nor in a patch: a test that is to show that nothing happens for some "
        "time shows less with a shorter one. Look at each; --site SITE takes one all the same",
        ms_text(not_counted)));
  words.notes.push_back(
      fmt::format("{} in {}", counted(suite.runs, "run"), format_duration(suite.elapsed)));
  if (suite.interrupted) words.notes.push_back("interrupted: tests after the last one are missing");
  return words;
}

}  // namespace unflake
