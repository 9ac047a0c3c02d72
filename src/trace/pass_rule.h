#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace/outcome.h"
#include "trace/process_text.h"

namespace unflake {

// What CTest makes of a test that exited.
struct Judgement {
  OutcomeKind kind = OutcomeKind::pass;  // pass, fail or skipped
  std::optional<Failure> failure;        // of a fail that the exit status does not explain
  std::string reason;                    // of a skip
};

// As CTest does: skips come first; then the patterns decide, where there are any; else the exit
// status; and WILL_FAIL turns the result round.
Judgement judge(const PassRule& rule, int exit_status, const std::vector<TextPiece>& output);

}  // namespace unflake
