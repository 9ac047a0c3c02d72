#include "model/repair.h"

#include <algorithm>

namespace unflake {

std::string_view to_string(ProofRuns::Kind kind) {
  switch (kind) {
    case ProofRuns::Kind::under_plan:
      return "under the plan";
    case ProofRuns::Kind::later:
      return "other lateness";
    case ProofRuns::Kind::plain:
      return "plain runs";
    case ProofRuns::Kind::schedules:
      return "schedules";
    case ProofRuns::Kind::busy:
      return "busy machine";
    case ProofRuns::Kind::one_core:
      return "one core";
    case ProofRuns::Kind::search:
      return "new search";
    case ProofRuns::Kind::whole_binary:
      return "whole program";
  }
  return "?";
}

std::string_view to_string(Proof::Verdict verdict) {
  switch (verdict) {
    case Proof::Verdict::repaired:
      return "repaired";
    case Proof::Verdict::not_repaired:
      return "not repaired";
    case Proof::Verdict::worse:
      return "worse";
    case Proof::Verdict::not_shown:
      return "not shown";
    case Proof::Verdict::not_built:
      return "not built";
  }
  return "?";
}

const ProofRuns* Proof::find(ProofRuns::Kind kind) const {
  const auto found = std::ranges::find(runs, kind, &ProofRuns::kind);
  return found == runs.end() ? nullptr : &*found;
}

std::string_view to_string(RepairIdiom idiom) {
  switch (idiom) {
    case RepairIdiom::definition:
      return "definition";
    case RepairIdiom::join:
      return "join";
    case RepairIdiom::notify:
      return "notify";
    case RepairIdiom::poll:
      return "poll";
    case RepairIdiom::hand_over:
      return "hand-over";
    case RepairIdiom::bound:
      return "bound";
    case RepairIdiom::reset:
      return "reset";
    case RepairIdiom::delay:
      return "delay";
  }
  return "?";
}

}  // namespace unflake
