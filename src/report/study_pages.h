#pragma once

#include <string>
#include <vector>

#include "model/study_report.h"
#include "report/layout.h"

namespace unflake {

// A table of a study as it is shown, whatever shows it. Its cells may hold any text.
struct StudyTable {
  std::string id;  // "1" to "7", "reoccurrence", "fixes"
  std::string title;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  struct Box {
    std::string label;
    Spread rates;  // 0 to 1
  };
  std::vector<Box> boxes;
  std::vector<std::string> remarks;  // what the numbers say, by which rule, and what is missing
};

// "Table 3. How often flaky tests fail"; a table without a number has only its title.
std::string heading_of(const StudyTable& table);

std::vector<std::string> study_table_ids();

// The ones with these ids, or all of them.
std::vector<StudyTable> study_tables(const Study& study, const std::vector<std::string>& ids);

// The tables about fixes.
StudyTable category_table(const Study& study);
StudyTable repair_time_table(const Study& study);
StudyTable fix_kind_table(const Study& study);
StudyTable reoccurrence_table(const Study& study);
StudyTable claimed_fix_table(const Study& study);

// "68 (3.2 %, 2.5..4.0 %)": with an exact 95 % interval.
std::string share_text(int64_t part, int64_t whole);
std::string project_text(const std::string& project);
std::string p_text(double p);

std::string study_text(const std::vector<StudyTable>& tables, const std::vector<std::string>& notes,
                       const Style& style);

// "|---[==|===]------|" from 0 to 100 %, in `width` columns: range, quartiles and median.
std::string box_text(const Spread& rates, size_t width);

// The command that asks a recorded failure whether a claimed fix keeps it away; empty when the
// claim names no commit.
std::string proof_command(const ClaimedFix& fix);

// One page without anything to load.
std::string study_html(const std::vector<StudyTable>& tables,
                       const std::vector<std::string>& notes);

// Every table's numbers, for programs; docs/formats.md describes it.
std::string study_json(const Study& study);

}  // namespace unflake
