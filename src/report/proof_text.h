#pragma once

#include <string>

#include "model/repair.h"
#include "report/layout.h"

namespace unflake {

// What a proof shows, for a maintainer who has to decide about a patch.
std::string proof_text(const ProofReport& report, const Style& style);

// Why it was decided like that, with the counts.
std::string proof_sentence(const Proof& proof);

// The same as JSON: see docs/formats.md.
std::string proof_json(const ProofReport& report);

}  // namespace unflake
