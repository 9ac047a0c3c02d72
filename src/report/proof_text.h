#pragma once

#include <string>

#include "model/proof.h"
#include "report/layout.h"

namespace unflake {

// What a proof shows, for a maintainer who has to decide about a patch.
std::string proof_text(const ProofReport& report, const Style& style);

// The same as JSON: see docs/formats.md.
std::string proof_json(const ProofReport& report);

}  // namespace unflake
