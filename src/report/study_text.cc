#include "report/study_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/layout.h"
#include "stats/rates.h"
#include "util/text.h"
#include "util/time.h"

namespace unflake {
namespace {

std::string number(int64_t value) {
  std::string digits = std::to_string(value);
  for (size_t at = digits.size(); at > 3 + (value < 0 ? 1u : 0u); at -= 3)
    digits.insert(at - 3, ",");
  return digits;
}

std::string window_text(const Study& study) {
  return fmt::format("{} to {} UTC", timestamp_in_minutes(study.from),
                     timestamp_in_minutes(study.until));
}

StudyTable prevalence_table(const Study& study) {
  StudyTable table{"1",
                   "How prevalent flaky tests are, " + window_text(study),
                   {"project", "tests", "builds", "failed", "runs", "median build", "flaky tests",
                    "flaky failures", "of these suppressed", "failed builds with one (95 %)"},
                   {},
                   {},
                   {}};
  int64_t builds = 0;
  for (const PrevalenceRow& row : study.prevalence) {
    builds += row.builds;
    table.rows.push_back({project_text(row.project), number(row.tests), number(row.builds),
                          number(row.failed_builds), number(row.runs),
                          format_duration(row.median_build), number(row.flaky_tests),
                          number(row.flaky_failures), number(row.suppressed),
                          share_text(row.flaky_builds, row.failed_builds)});
  }
  table.remarks = {
      "a build is all sessions of one CI build; it failed when a test failed in it, flaky or not",
      "local runs (`unflake run` without --ci and outside of CI) are not builds; tests, runs and "
      "flaky tests are of all",
      "a flaky failure is a test that failed and passed on the same code, once for each build"};
  if (builds == 0)
    table.remarks.push_back(
        "no build is recorded in this time: `unflake run` and `unflake ingest` record them; --days "
        "and --since look further back");
  return table;
}

StudyTable flaky_test_table(const Study& study) {
  StudyTable table{"2",
                   "Flaky tests ever seen, and what became of them",
                   {"project", "flaky tests", "closed (95 %)", "with a commit", "with a link"},
                   {},
                   {},
                   {}};
  int64_t flaky = 0, closed = 0, others = 0;
  for (const FlakyTestRow& row : study.flaky_tests) {
    flaky += row.flaky;
    closed += row.closed;
    others += row.never_flaky;
    table.rows.push_back({project_text(row.project), number(row.flaky),
                          share_text(row.closed, row.flaky), number(row.with_commit),
                          number(row.with_link)});
  }
  table.remarks = {
      "flaky here and in all tables: failed where it passed on the same code",
      "closed: every report of the test is closed or its quarantine lifted, and it was not flaky "
      "since. That is a claim; the table of claimed fixes tests it"};
  if (others > 0)
    table.remarks.push_back(fmt::format(
        "not counted in any table: {} in quarantine or reported, now or before, that no recorded "
        "run has shown to be flaky",
        counted(others, "test")));
  if (flaky == 0)
    table.remarks.push_back(
        "no test is known to be flaky: `unflake run TARGET --ci` finds them, `unflake run -n 100` "
        "sooner");
  else if (closed == 0)
    table.remarks.push_back("nothing was closed yet: closed reports and lifted quarantines tell");
  return table;
}

std::string rate_or_dash(const RateRow& row, double rate) {
  return row.both == 0 ? "-" : percent(rate);
}

StudyTable rate_table(const Study& study) {
  StudyTable table{"3",
                   "How often flaky tests fail",
                   {"project", "flaky tests", "runs", "with a pass and a failure (95 %)",
                    "mean rate", "median rate", "quartiles", "range", "reproduced on demand"},
                   {},
                   {},
                   {}};
  for (const RateRow& row : study.rates) {
    const Spread& rates = row.rates;
    const bool none = row.both == 0;
    table.rows.push_back({project_text(row.project), number(row.tests), number(row.runs),
                          share_text(row.both, row.tests), rate_or_dash(row, rates.mean),
                          rate_or_dash(row, rates.median),
                          none ? "-" : interval_text({rates.lower_quartile, rates.upper_quartile}),
                          none ? "-" : interval_text({rates.min, rates.max}),
                          number(row.on_demand)});
    if (!none) table.boxes.push_back({project_text(row.project), rates});
  }
  table.remarks = {
      "rates are of the tests that both passed and failed, over all recorded runs without "
      "injected delays"};
  if (std::ranges::all_of(study.rates, [](const RateRow& row) { return row.on_demand == 0; }))
    table.remarks.push_back(
        "none of these was reproduced on demand yet: `unflake reproduce TARGET TEST` tries, and "
        "keeps what it finds in .unflake/repro");
  int64_t others = 0;
  for (const RateRow& row : study.rates) others += row.other_repros;
  if (others > 0)
    table.remarks.push_back(
        fmt::format(".unflake/repro has repros of {} that no recorded run has shown to be flaky, "
                    "which are not counted here",
                    counted(others, "test")));
  return table;
}

std::string tendency_text(const RunTimeRow& row) {
  const std::string counts = fmt::format(
      "{}: failing runs are longer in {} of {}, shorter in {} (median ratio {:.2f}, sign test p = "
      "{})",
      project_text(row.project), row.longer, counted(row.longer + row.shorter + row.same, "test"),
      row.shorter, row.ratio, p_text(row.p));
  switch (row.tendency) {
    case RunTimeRow::Tendency::longer:
      return counts + ": they wait for something that does not come, as tests do that time out";
    case RunTimeRow::Tendency::shorter:
      return counts + ": they stop early, so that a time-out is not what fails";
    case RunTimeRow::Tendency::unclear:
      break;
  }
  return counts + ": too even, or too few tests, to say more";
}

StudyTable run_time_table(const Study& study) {
  StudyTable table{"4",
                   "Run time of flaky tests, passing and failing",
                   {"project", "result", "runs", "mean", "median of the tests' medians"},
                   {},
                   {},
                   {}};
  for (const RunTimeRow& row : study.run_times) {
    for (const auto& [name, times] : {std::pair("pass", row.passing), {"fail", row.failing}})
      table.rows.push_back({project_text(row.project), name, number(times.runs),
                            times.runs == 0 ? "-" : format_duration(times.mean),
                            times.runs == 0 ? "-" : format_duration(times.median)});
    if (row.failing.runs > 0) table.remarks.push_back(tendency_text(row));
  }
  if (table.remarks.empty())
    table.remarks.push_back("no flaky test has a recorded pass and a recorded failure");
  return table;
}

struct TableEntry {
  const char* id;
  StudyTable (*make)(const Study& study);
};

constexpr TableEntry entries[] = {{"1", prevalence_table},     {"2", flaky_test_table},
                                  {"3", rate_table},           {"4", run_time_table},
                                  {"5", category_table},       {"6", repair_time_table},
                                  {"7", fix_kind_table},       {"reoccurrence", reoccurrence_table},
                                  {"fixes", claimed_fix_table}};

}  // namespace

std::string share_text(int64_t part, int64_t whole) {
  if (whole <= 0) return fmt::format("{} of 0", part);
  const double share = static_cast<double>(part) / static_cast<double>(whole);
  return fmt::format("{} ({}, {})", number(part), percent(share),
                     interval_text(exact_interval(part, whole)));
}

std::string project_text(const std::string& project) {
  return project.empty() ? "this project" : project;
}

std::string p_text(double p) {
  if (p < 0.001) return fmt::format("{:.1e}", p);
  return fmt::format("{:.3f}", p);
}

std::string heading_of(const StudyTable& table) {
  const bool has_number = table.id.size() == 1;
  return has_number ? fmt::format("Table {}. {}", table.id, table.title) : table.title;
}

std::vector<std::string> study_table_ids() {
  std::vector<std::string> ids;
  for (const TableEntry& entry : entries) ids.emplace_back(entry.id);
  return ids;
}

std::vector<StudyTable> study_tables(const Study& study, const std::vector<std::string>& ids) {
  std::vector<StudyTable> tables;
  for (const TableEntry& entry : entries)
    if (ids.empty() || std::ranges::find(ids, entry.id) != ids.end())
      tables.push_back(entry.make(study));
  return tables;
}

namespace {

constexpr size_t box_width = 61;
constexpr size_t longest_label = 24;

std::string boxes_text(const std::vector<StudyTable::Box>& boxes) {
  size_t widest = 0;
  for (const auto& box : boxes)
    widest = std::max(widest, columns(cut_to_columns(printable(box.label), longest_label)));
  std::string text;
  for (const auto& box : boxes) {
    const std::string label = cut_to_columns(printable(box.label), longest_label);
    text += fmt::format("\n  {}{}  {}", label, std::string(widest - columns(label), ' '),
                        box_text(box.rates, box_width));
  }
  const std::string indent(widest + 4, ' ');
  return fmt::format("{}\n{}0 %{:>{}}{:>{}}\n", text, indent, "50 %", box_width / 2, "100 %",
                     box_width / 2 - 1);
}

std::string one_table(const StudyTable& table, const Style& style) {
  std::string text = style.paint(Tone::plain, heading_of(table)) + "\n";
  if (!table.rows.empty()) {
    Table cells(table.header);
    for (const auto& row : table.rows) cells.add(row);
    text += cells.text();
  }
  if (!table.boxes.empty()) text += boxes_text(table.boxes);
  for (const std::string& remark : table.remarks) text += fmt::format("  * {}\n", one_line(remark));
  return text;
}

}  // namespace

std::string box_text(const Spread& rates, size_t width) {
  const auto place = [&](double rate) {
    return static_cast<size_t>(
        std::lround(std::clamp(rate, 0.0, 1.0) * static_cast<double>(width - 1)));
  };
  std::string line(width, ' ');
  const auto fill = [&](double from, double to, char c) {
    for (size_t i = place(from); i <= place(to); ++i) line[i] = c;
  };
  fill(rates.min, rates.max, '-');
  fill(rates.lower_quartile, rates.upper_quartile, '=');
  line[place(rates.min)] = '|';
  line[place(rates.max)] = '|';
  line[place(rates.lower_quartile)] = '[';
  line[place(rates.upper_quartile)] = ']';
  line[place(rates.median)] = '#';
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

std::string study_text(const std::vector<StudyTable>& tables, const std::vector<std::string>& notes,
                       const Style& style) {
  std::string text;
  for (const StudyTable& table : tables) {
    if (!text.empty()) text += "\n";
    text += one_table(table, style);
  }
  for (const std::string& note : notes) text += fmt::format("\nnote: {}\n", one_line(note));
  return text;
}

}  // namespace unflake
