#pragma once

#include <string>
#include <vector>

#include "model/study_report.h"
#include "report/study_text.h"

namespace unflake {

// One page without anything to load.
std::string study_html(const std::vector<StudyTable>& tables,
                       const std::vector<std::string>& notes);

// Every table's numbers, for programs; docs/formats.md describes it.
std::string study_json(const Study& study);

}  // namespace unflake
