#pragma once

#include <vector>

#include "ingest/case_identity.h"
#include "store/store.h"

namespace unflake {

// The runs that a case tells of, in their order, without test and start: one, or one for each time
// that it was tried.
void runs_of_case(const ReportedCase& reported, CaseDialect dialect, std::vector<RunRecord>& runs);

}  // namespace unflake
