#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/options.h"
#include "app/project.h"
#include "causes/cause_links.h"
#include "lifecycle/owners.h"
#include "lifecycle/quarantine.h"
#include "model/repro.h"
#include "report/cause_pages.h"
#include "store/store.h"
#include "web/issue_plan.h"

namespace unflake {

struct ReportRequest {
  int days = 30;
  size_t most = 50;
  bool trend = false;
  TimePoint now;
  std::string quarantine;  // its file
};

// What a history and a project's files say about its flaky tests.
struct GatheredReport {
  CauseReport report;
  std::vector<FlakyFailure> failures;   // of a year: a cause is older than a report's window
  std::vector<LinkedCause> causes;      // all; `failures` by number
  std::vector<ReportedCause> reported;  // of each of these, even when the report has no room for it
  std::vector<bool> fails_now;          // in the window
  std::vector<bool> shown;              // in the report
  std::vector<LifecycleStep> steps;     // of that year
};

// A commit contains another one; yes when that is unknown.
using Contains = std::function<bool(const std::string& commit, const std::string& earlier)>;

Result<GatheredReport> gather_report(Store& store, const Project& project,
                                     const std::string& project_name, const ReportRequest& request,
                                     const Contains& contains);

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
