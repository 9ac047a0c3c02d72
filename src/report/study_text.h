#pragma once

#include <string>
#include <vector>

#include "report/study_words.h"
#include "report/style.h"

namespace unflake {

std::string study_text(const std::vector<StudyTable>& tables, const std::vector<std::string>& notes,
                       const Style& style);

// "|---[==|===]------|" from 0 to 100 %, in `width` columns: range, quartiles and median.
std::string box_text(const Spread& rates, size_t width);

}  // namespace unflake
