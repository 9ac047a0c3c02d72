// Asks `unflake orders` for the relations of 200 tests that share state, in the programs of several
// frameworks and with several seeds; writes a section of docs/EVALUATION.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <set>

#include "document.h"
#include "markdown.h"
#include "scores.h"
#include "subprocess.h"
#include "support/temp_folder.h"
#include "surroundings.h"
#include "util/json.h"

namespace unflake::eval {
namespace {

namespace fs = std::filesystem;

constexpr double most_suite_runs = 60;
constexpr Duration longest_search = std::chrono::minutes(20);

struct EvaluateOrders {
  std::string source = ".";
  std::string build = "build";
  std::string out = "docs/EVALUATION.md";
  std::vector<std::string> only;
  int seeds = 3;
};

struct OrdersFound {
  std::string program;
  int seed = 0;
  size_t found = 0;
  std::vector<std::string> missed, wrong;
  double suite_runs = 0;

  bool is_all() const { return missed.empty() && wrong.empty(); }
};

// Frameworks have different signs between a suite and a test.
std::string plain_name(std::string name) {
  std::ranges::replace(name, '.', '_');
  return name;
}

std::string plain_names(const nlohmann::json& tests) {
  std::set<std::string> names;
  for (const auto& test : tests) names.insert(plain_name(test.get<std::string>()));
  return fmt::format("{}", fmt::join(names, " + "));
}

std::string relation_text(const nlohmann::json& relation) {
  const auto kind = relation.at("kind").get<std::string>();
  const auto& makers = relation.at(kind == "victim" ? "polluters" : "state_setters");
  const std::string cleaners = plain_names(relation.value("cleaners", nlohmann::json::array()));
  return fmt::format("{} {} < {}{}", kind, plain_name(relation.at("test").get<std::string>()),
                     plain_names(makers), cleaners.empty() ? "" : " / " + cleaners);
}

class OrderEvaluation {
 public:
  explicit OrderEvaluation(const EvaluateOrders& command) : command_(command) {}

  Result<int> operator()() {
    Watch watch(command_.source);
    const auto truths = toml::parse_file(command_.source + "/tests/fixtures/order_cases.toml");
    for (const auto& relation : *truths["relations"].as_array())
      truth_.insert(plain_name(relation.value_or(std::string())));
    for (const std::string program :
         {"order_gtest", "order_catch2", "order_doctest", "order_boost"})
      for (int seed = 1; seed <= command_.seeds && is_wanted(program); ++seed)
        if (auto done = measure(program, seed); !done) return done.error();
    if (command_.only.empty())
      if (auto done = write_file(command_.out, with_section(contents(command_.out), orders_heading,
                                                            section(watch.end())));
          !done)
        return done.error();
    const auto all = scores();
    for (const Score& score : all)
      fmt::print("{}: {}{}\n", score.figure, score.measured, score.met ? "" : "  MISSED");
    return std::ranges::all_of(all, &Score::met) ? 0 : 1;
  }

 private:
  bool is_wanted(const std::string& program) const {
    return command_.only.empty() || std::ranges::count(command_.only, program) > 0;
  }

  Result<void> measure(const std::string& program, int seed) {
    const TempFolder place;
    fs::create_directory(place.file(".unflake"));  // a project of its own
    const auto result =
        run_tool({fs::absolute(command_.build + "/bin/unflake").string(), "orders", "--json",
                  "--no-repro", "--no-history", "--seed", std::to_string(seed),
                  fs::absolute(command_.build + "/fixtures/" + program).string()},
                 place.path(), longest_search);
    if (!result) return result.error();
    if (result->status > 1)
      return internal_error(fmt::format("exit status {}: {}", result->status, result->errors),
                            program);
    keep(program, seed, parse_json(result->output));
    return {};
  }

  void keep(const std::string& program, int seed, const nlohmann::json& report) {
    OrdersFound one{program, seed, 0, {}, {}, report.at("suite_runs").get<double>()};
    std::set<std::string> found;
    for (const auto& relation : report.at("relations")) found.insert(relation_text(relation));
    std::ranges::set_difference(truth_, found, std::back_inserter(one.missed));
    std::ranges::set_difference(found, truth_, std::back_inserter(one.wrong));
    one.found = truth_.size() - one.missed.size();
    fmt::print("{:<14} seed {}: {} of {} in {:.1f} suite runs{}{}\n", program, seed, one.found,
               truth_.size(), one.suite_runs,
               one.missed.empty() ? "" : fmt::format("; missed: {}", fmt::join(one.missed, ", ")),
               one.wrong.empty() ? "" : fmt::format("; wrong: {}", fmt::join(one.wrong, ", ")));
    std::fflush(stdout);
    all_.push_back(std::move(one));
  }

  std::vector<Score> scores() const {
    size_t found = 0, wrong = 0;
    double most = 0;
    for (const OrdersFound& one : all_) {
      found += one.found;
      wrong += one.wrong.size();
      most = std::max(most, one.suite_runs);
    }
    const size_t planted = all_.size() * truth_.size();
    return {{"planted relations found, made small, with their cleaners",
             fmt::format("{} of {}", found, planted), "all", found == planted},
            {"relations that nobody planted", std::to_string(wrong), "0", wrong == 0},
            {"suite runs, at most", fmt::format("{:.1f}", most), "at most 60",
             most <= most_suite_runs}};
  }

  std::string section(const Surroundings& where) const {
    std::string text = fmt::format(
        "{}\n\n`unflake orders` on programs of 200 tests that share state (tests/fixtures/"
        "order_cases.h): victims, brittle tests, one with three polluters, one that takes two of "
        "them. A suite run is as many runs of tests as the suite has.\n\n",
        orders_heading);
    text += to_string(where) + "\n\n" + targets_text(scores()) + "\n";
    text += table_head({"program", "seed", "found", "suite runs", "missed", "not planted"});
    for (const OrdersFound& one : all_)
      text += row(
          {one.program, std::to_string(one.seed), fmt::format("{} of {}", one.found, truth_.size()),
           fmt::format("{:.1f}", one.suite_runs), fmt::format("{}", fmt::join(one.missed, ", ")),
           fmt::format("{}", fmt::join(one.wrong, ", "))});
    return text;
  }

  const EvaluateOrders& command_;
  std::set<std::string> truth_;
  std::vector<OrdersFound> all_;
};

int evaluate_orders(int argc, char** argv) {
  EvaluateOrders command;
  CLI::App app(
      "Counts the relations between tests that unflake orders finds. Exit code 0: all targets are "
      "met; 1: not all.",
      "evaluate_orders");
  app.add_option("--source", command.source, "the repository [.]");
  app.add_option("--build", command.build, "its build folder [build]");
  app.add_option("--only", command.only, "these programs [all]; nothing is written");
  app.add_option("--seeds", command.seeds, "how many [3]")->check(CLI::Range(1, 1000));
  app.add_option("--out", command.out, "the document [docs/EVALUATION.md]");
  CLI11_PARSE(app, argc, argv);
  const auto code = OrderEvaluation(command)();
  if (code) return *code;
  fmt::print(stderr, "{}\n", to_string(code.error()));
  return 4;
}

}  // namespace
}  // namespace unflake::eval

int main(int argc, char** argv) {
  return unflake::eval::evaluate_orders(argc, argv);
}
