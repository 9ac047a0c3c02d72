#pragma once

#include <string>

#include "model/detect_report.h"
#include "model/repro.h"
#include "report/layout.h"

namespace unflake {

// What the orders of a suite showed: for people, and as docs/formats.md describes it.
std::string orders_text(const OrderReport& report, const Style& style);
std::string orders_json(const OrderReport& report);

// The same of the factors of a test's surroundings.
std::string factors_text(const Test& test, const FactorReport& report, const Style& style);
std::string factors_json(const Test& test, const FactorReport& report);

// "A.Victim fails after B.Polluter and passes alone"
std::string order_sentence(const OrderRelation& relation);
// "it fails when the time zone is UTC0"
std::string factor_sentence(const FactorFinding& finding);

// Why a test with a recorded order or factor fails, in a sentence, and what to do about it.
std::string plain_cause(const Repro& repro);
std::string plain_advice(const Repro& repro);

}  // namespace unflake
