#include "contradictions.h"

namespace unflake::eval {
namespace {

using nlohmann::json;

struct Answer {
  int hits = 0, runs = 0;

  bool always() const { return runs > 0 && hits == runs; }
  bool not_always() const { return hits < runs; }
  bool never() const { return runs > 0 && hits == 0; }
};

Answer answer(const json& proof, const char* question) {
  if (!proof.contains(question)) return {};
  return {proof[question].at(0).get<int>(), proof[question].at(1).get<int>()};
}

}  // namespace

std::vector<std::string> contradictions_in(const json& explanation) {
  std::vector<std::string> found;
  const auto add = [&](bool is_so, const char* text) {
    if (is_so) found.emplace_back(text);
  };
  const json& causes = explanation.at("causes");
  const std::string cause = causes.empty() ? "unknown" : causes[0].value("cause", "unknown");
  if (!explanation.contains("proof")) return found;
  const json& proof = explanation["proof"];
  const bool has_pair = explanation.at("critical").is_object();
  add(has_pair && answer(proof, "kept").never(), "the order is kept and the test fails");
  add(has_pair && answer(proof, "reversed").never(), "the order is reversed and the test passes");
  const bool waits = cause == "async wait" && explanation.at("wait").is_object();
  add(cause == "async wait" && answer(proof, "late_as_a_whole").always(),
      "an async wait, and what it relies on may be late as a whole");
  add(waits && explanation["wait"].value("times", 0) == 1 && answer(proof, "longer_wait").never(),
      "an async wait, and a longer wait does not help");
  add(cause == "lost wake-up" && answer(proof, "waiting_first").not_always(),
      "a lost wake-up, and waiting before it comes does not help");
  add(cause == "exact timing" && proof.value("is_shown", false),
      "exact timing, and an order of threads decides");
  add(cause == "unknown" && explanation.at("experiments").empty(),
      "unknown, and no experiment is named");
  return found;
}

}  // namespace unflake::eval
