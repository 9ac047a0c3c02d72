#pragma once

#include <string>
#include <string_view>

#include "model/repair.h"
#include "report/layout.h"
#include "util/json.h"

namespace unflake {

// A patch with its proof in front of it, where `git apply` reads over it. Whoever gets the file
// sees what it rests on.
std::string patch_file_text(const RepairPatch& patch, const ProofReport& proof);

// What such a file says; a patch of others has no proof.
ProposedPatch read_patch_file(const std::string& file, std::string_view text);

// For a terminal: what it does, its proof, the lines that it changes.
std::string proposed_patch_text(const ProposedPatch& patch, const Style& style);
std::string proposed_patch_markdown(const ProposedPatch& patch);
std::string proposed_patch_html(const ProposedPatch& patch);
nlohmann::ordered_json proposed_patch_json(const ProposedPatch& patch);

}  // namespace unflake
