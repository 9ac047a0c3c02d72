#pragma once

#include <set>

#include "search/reproduce/hunt.h"
#include "support/simulated_test.h"

namespace unflake::simulated {

// A hunt for the failures of a program, and all that it says.
struct SimulatedHunt : Consumer {
  explicit SimulatedHunt(const Program& program, const HuntOptions& options = {})
      : executor(executor_of(program)), hunt(executor, test_of(program), options, events) {
    events.add(*this);
  }

  void search(void (*strategy)(Hunt&)) {
    if (!hunt.prepare()) return;
    hunt.runner().teller().begin("tested");
    strategy(hunt);
  }

  void on(const Event& event) override {
    if (const auto* step = std::get_if<SearchStep>(&event)) said.push_back(step->text);
  }

  // Where the n-th plan that was found makes threads late.
  std::set<std::string> places(size_t n = 0) {
    std::set<std::string> places;
    if (n < hunt.found().size())
      for (const Intervention& late : hunt.found()[n].trial.plan.interventions)
        places.insert(to_string(late.site) + "@" + late.thread.text);
    return places;
  }

  MockExecutor executor;
  EventStream events;
  std::vector<std::string> said;
  Hunt hunt;
};

}  // namespace unflake::simulated
