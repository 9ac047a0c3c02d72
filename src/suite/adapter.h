#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/outcome.h"
#include "model/plan.h"
#include "model/test.h"
#include "util/result.h"

namespace unflake {

struct Target {
  std::string name;  // the `target` of every TestId in it
  Framework framework = Framework::command;
  std::string path;               // the executable or the CTest build folder; absolute
  std::vector<std::string> argv;  // of a plain command; else arguments for the test executable
};

struct ListOptions {
  bool open_cases = false;   // open a CTest entry that is a test executable into its cases
  std::string ctest_config;  // as for `ctest -C`
  bool labels = false;       // wanted even where the suite has to be started again for them
  Duration timeout{std::chrono::seconds(60)};  // for the target to list its tests
};

// Starts a program and waits for its end; how adapters ask a suite for its tests. Standard error
// is kept apart from standard output.
class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual ProcessResult launch(const Command& command, Duration timeout) = 0;
};

// How one kind of suite lists its tests and runs one of them alone.
class Adapter {
 public:
  virtual ~Adapter() = default;
  virtual Result<std::vector<Test>> list(const Target& target, const ListOptions& options,
                                         Launcher& launcher) const = 0;
  // How one process runs several tests of a target, one after the other in this order; `listed` are
  // all that it has, as list() gave them. An error where the framework cannot select just these, or
  // does not keep the order.
  virtual Result<Command> in_order(const std::vector<const Test*>& order,
                                   const std::vector<const Test*>& listed) const;
  // The same in an order that the framework makes of the arrangement. Sorts the tests into that
  // order where it can be known before the run; else they stay in that of the listing.
  struct Arranged {
    Command command;
    std::vector<const Test*> tests;
    bool is_open = false;
    bool is_expected = false;  // although open, it most likely is the order of `tests`
  };
  virtual Result<Arranged> arrange(const std::vector<const Test*>& tests,
                                   const std::vector<const Test*>& listed,
                                   const Arrangement& how) const;
};

const Adapter& adapter_for(Framework framework);

// The same for tests as sessions and searches have them. A single test needs nothing.
using Tests = std::vector<std::shared_ptr<const Test>>;
Result<TestOrder> in_one_process(const Tests& order, const Tests& listed);

// Some of the listed tests in an arrangement, in one process.
Result<TestOrder> arranged_in_one_process(const Tests& tests, const Tests& listed,
                                          const Arrangement& how);

// Each in its own process, one after the other: entries of CTest, and any other tests whose state
// is in files. The run shows for each how it ended.
Result<TestOrder> in_sequence(const Tests& order);
// How the lines begin that say so, after whatever a test has left on the line.
inline constexpr std::string_view sequence_mark = "\\n::unflake ";

// Reads the file only; a program that is not a test suite is never started to find out.
Result<Framework> recognise(const std::string& path);

const Adapter& gtest_adapter();
const Adapter& catch2_adapter();
const Adapter& doctest_adapter();
const Adapter& boost_test_adapter();
const Adapter& ctest_adapter();
const Adapter& command_adapter();

}  // namespace unflake
