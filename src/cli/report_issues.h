#pragma once

#include <string>

#include "app/command_line.h"
#include "cli/report_gather.h"
#include "web/issue_plan.h"

namespace unflake {

struct IssueOptions {
  std::string github, gitlab;  // the repository; one of them
  std::string api;
  bool send = false;

  bool any() const { return !github.empty() || !gitlab.empty(); }
};

// Brings a forge's issues up to date with the causes, or says what that would take. `store` is
// written to only when something is sent.
Result<void> care_for_issues(Page& page, Store& store, GatheredReport& gathered,
                             const std::string& project_name, const IssueOptions& options,
                             const ReportRequest& request, const Contains& contains);

// Gives every cause that is new or has changed to the history.
Result<void> save_causes(Store& store, GatheredReport& gathered, TimePoint now);

}  // namespace unflake
