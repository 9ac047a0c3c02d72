#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/detect_report.h"
#include "search/detect/order_runs.h"

namespace unflake {

struct OrderOptions {
  uint32_t seed = 1;      // of the first shuffled order
  int least_orders = 16;  // of all tests, shuffled
  int most_orders = 40;   // even when some pairs still ran in one order only
  double most_suite_runs = 60;
  // Told what is found, as it is found.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

// Looks for tests whose outcome depends on what ran before them, makes the orders small, and
// confirms each by fresh runs: what iDFlakies and iFixFlakies do. `tests` are those of the suite.
OrderReport look_for_order_dependence(OrderedSuite& suite,
                                      const std::vector<std::shared_ptr<const Test>>& tests,
                                      const OrderOptions& options);

}  // namespace unflake
