#pragma once

#include <string>
#include <string_view>

#include "model/repair.h"
#include "report/layout.h"
#include "util/json.h"

namespace unflake {

// "main must wait before server_test.cc:45 until pool.cc:31#1 has passed pool.cc:24".
std::string hand_over_words(const HandOver& hand_over);

// What a search for a repair found, with the evidence and what was dropped.
std::string repair_text(const RepairReport& report, const Style& style);

// docs/formats.md describes the members.
std::string repair_json(const RepairReport& report);

// What a proof shows, for a maintainer who has to decide about a patch.
std::string proof_text(const ProofReport& report, const Style& style);

// Why it was decided like that, with the counts.
std::string proof_sentence(const Proof& proof);

// The same as JSON: see docs/formats.md.
std::string proof_json(const ProofReport& report);

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
