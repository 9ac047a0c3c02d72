#pragma once

#include <string>

#include "search/balance/balance.h"
#include "support/simulated_test.h"

// Searches for time values in simulated tests.
namespace unflake::simulated {

// A worker is ready after `needs`; main sleeps and then looks.
inline Program sleeper(Duration asked, Duration needs) {
  Program program;
  Script& worker = program.thread();
  worker.work(needs).set("ready").lock("worker.cc:5", "done").unlock("worker.cc:6", "done");
  program.main()
      .create("main.cc:10", worker)
      .sleep("main.cc:11", asked)
      .check("main.cc:12", is_set("ready"))
      .join("main.cc:13", worker);
  return program;
}

inline BalanceOptions at_idle() {
  BalanceOptions options;
  options.loads = {LoadLevel::idle};
  options.plan.agent = options.plan.calls = true;
  options.limits.budget = std::chrono::hours(24);
  return options;
}

inline Result<BalanceReport> balanced(const Program& program,
                                      const BalanceOptions& options = at_idle()) {
  MockExecutor executor = executor_of(program);
  EventStream events;
  return balance(executor, test_of(program), options, events);
}

inline const BalancedValue* value_at(const BalanceReport& report, const std::string& place) {
  for (const BalancedValue& value : report.values)
    if (to_string(value.value.site).starts_with(place)) return &value;
  return nullptr;
}

}  // namespace unflake::simulated
