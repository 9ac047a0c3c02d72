#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <set>

#include "app/agent_command.h"
#include "app/options.h"
#include "app/repro_file.h"
#include "cli/commands.h"
#include "report/detect_text.h"
#include "report/search_text.h"
#include "search/detect/order_search.h"
#include "search/detect/suite_orders.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* orders_help =
    R"(Looks for tests whose outcome depends on what ran before them: victims, which fail after a polluter and
pass alone, and brittle tests, which fail alone and pass after a state-setter.

  unflake orders ./server_test                      the tests of a program, in one process
  unflake orders build                              entries of CTest, which share files
  unflake orders ./server_test --json               for programs

Tests of a program share a process, entries of CTest the files that they leave. Without --cases, a
folder is asked for the latter. DEPENDS and fixtures keep their order.

All tests run alone, as listed and in shuffled orders, until each pair ran both ways round. Orders that
change an outcome are made small by delta debugging and confirmed by fresh runs against runs of the test
alone; tests that undo the effect are named as cleaners. Each finding gets a repro file for `unflake
replay`. Every run starts with the files as they are now, where the system permits it.

Exit code 0: there are such tests; 1: none was found; 2: bad usage; 4: unflake itself failed; 128 + N:
stopped by signal N.)";

struct OrdersCommand {
  OneTestOptions one;
  std::optional<Duration> budget;
  int suite_runs = 60;
  int seed = 1;
  bool json = false, no_repro = false;
};

class OrdersOfSuite {
 public:
  explicit OrdersOfSuite(OrdersCommand& command) : command_(command) {}

  Result<int> operator()(const Words& words) {
    auto one = OneTest::find_each(command_.one, words);
    if (!one) return one.error();
    one_ = std::move(*one);
    int found = 0;
    for (const auto& [program, tests] : groups()) {
      auto report = search(tests);
      if (!report) return report.error();
      found += static_cast<int>(report->relations.size());
      if (auto told = tell(*report); !told) return told.error();
      if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
    }
    return static_cast<int>(found > 0 ? ExitCode::success : ExitCode::test_failed);
  }

 private:
  // Those of a program run in one process, all entries of CTest one process after the other.
  std::map<std::string, Tests> groups() {
    std::map<std::string, Tests> all;
    for (const auto& test : one_->selected())
      all[shares_process(*test) ? test->command.argv.front() : ""].push_back(test);
    return all;
  }

  Result<OrderReport> search(const Tests& tests) {
    SuiteOrderLimits limits;
    limits.budget = command_.budget.value_or(limits.budget);
    limits.timeout = command_.one.timeout.value_or(limits.timeout);
    limits.conditions.private_files = true;
    SuiteOrders suite(one_->executor(), tests, one_->all(), limits);
    OrderOptions options;
    options.seed = static_cast<uint32_t>(command_.seed);
    options.most_suite_runs = command_.suite_runs;
    if (!command_.json) options.say = [](const std::string& text) { say(text + "\n"); };
    OrderReport report = look_for_order_dependence(suite, suite.tests(), options);
    if (suite.error()) return *suite.error();
    report.notes.insert(report.notes.end(), suite.notes().begin(), suite.notes().end());
    conditions_ = suite.conditions();
    return report;
  }

  static void say(const std::string& text) {
    Page page;
    page.print("{}", text);
    (void)page.write_out();
  }

  Result<void> tell(const OrderReport& report) {
    std::string text = command_.json ? orders_json(report)
                                     : "\n" + orders_text(report, style_for(command_.one.colour));
    std::set<std::pair<TestId, std::string>> saved;
    for (const OrderRelation& relation : report.relations) {
      if (command_.no_repro || !saved.insert({relation.test->id, relation.signature}).second)
        continue;
      const auto file = save_repro(one_->project(), repro_of(relation, conditions_, *one_));
      if (!file) return file.error();
      if (!command_.json) text += fmt::format("repro: {}\n", printable(file->path));
    }
    say(text);
    return {};
  }

  OrdersCommand& command_;
  std::unique_ptr<OneTest> one_;
  Conditions conditions_;
};

}  // namespace

int orders_command(const Words& words) {
  OrdersCommand command;
  CommandLine line("orders", orders_help);
  command.one.target.add_to(line);
  line.option("--budget", command.budget, "for everything [10m]");
  line.option("--suite-runs", command.suite_runs, "runs of as many tests as the suite has [60]")
      .between(1, 100000);
  line.option("--seed", command.seed, "of the first shuffled order [1]").between(1, 90000);
  line.option("--timeout", command.one.timeout, "for each test [1m]");
  line.flag("--no-repro", command.no_repro, "write no repro files");
  line.flag("--json", command.json, "JSON instead of text");
  line.option("--color", command.one.colour, "auto, always or never")
      .one_of({"auto", "always", "never"});
  command.one.history.add_recording_to(line);
  command.one.configuration.add_to(line);
  if (const auto done = line.parse(words)) return *done;
  const auto code = OrdersOfSuite(command)(words);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
