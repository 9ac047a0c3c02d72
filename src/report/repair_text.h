#pragma once

#include <string>

#include "model/repair.h"
#include "report/layout.h"

namespace unflake {

// "main must wait before server_test.cc:45 until pool.cc:31#1 has passed pool.cc:24".
std::string hand_over_words(const HandOver& hand_over);

// What a search for a repair found, with the evidence and what was dropped.
std::string repair_text(const RepairReport& report, const Style& style);

// docs/formats.md describes the members.
std::string repair_json(const RepairReport& report);

}  // namespace unflake
