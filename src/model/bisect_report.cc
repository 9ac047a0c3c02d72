#include "model/bisect_report.h"

#include "util/text.h"

namespace unflake {

std::string_view to_string(CommitLook::Answer answer) {
  switch (answer) {
    case CommitLook::Answer::fails:
      return "fails";
    case CommitLook::Answer::holds:
      return "holds";
    case CommitLook::Answer::untold:
      return "cannot be told";
  }
  return "?";
}

int CommitBisection::runs() const {
  int all = 0;
  for (const Step& step : steps) all += step.look.runs;
  return all;
}

const BisectReport::Commit* BisectReport::first() const {
  const bool is_known = bisection.answer == CommitBisection::Answer::found;
  return is_known ? &commits.at(bisection.first_failing) : nullptr;
}

std::string short_id(const BisectReport::Commit& commit) {
  return printable(commit.id.substr(0, 10));
}

}  // namespace unflake
