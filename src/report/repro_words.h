#pragma once

#include <string>

#include "model/repro.h"

namespace unflake {

// How late is too late, by all runs that were made with other delays: "96.0 ms (88.0 ms is not
// enough)". Empty: not measured.
std::string slack_words(const Repro& repro);

// "holds until 3.70 s late, fails when 4.05 s late".
std::string margin_words(const Repro& repro);

// What it takes to fail, in a sentence: "a flaw: ...". Empty: it was not judged.
std::string plausibility_words(const Repro& repro);

}  // namespace unflake
