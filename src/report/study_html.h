#pragma once

#include <string>
#include <vector>

#include "report/study_words.h"

namespace unflake {

// One page without anything to load.
std::string study_html(const std::vector<StudyTable>& tables,
                       const std::vector<std::string>& notes);

}  // namespace unflake
