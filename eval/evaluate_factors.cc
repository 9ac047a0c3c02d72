// Asks `unflake factors` for the cause of each program of zoo/factors, and counts how many it
// names.
#include <fmt/format.h>

#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <filesystem>

#include "subprocess.h"
#include "support/temp_folder.h"
#include "util/json.h"

namespace unflake::eval {
namespace {

namespace fs = std::filesystem;

constexpr double wanted_share = 0.95;
constexpr Duration longest_search = std::chrono::minutes(10);

struct EvaluateFactors {
  std::string source = ".";
  std::string build = "build";
  std::vector<std::string> only;
};

class FactorEvaluation {
 public:
  explicit FactorEvaluation(const EvaluateFactors& command) : command_(command) {}

  Result<int> operator()() {
    const auto truths = toml::parse_file(command_.source + "/zoo/factors/truths.toml");
    for (const auto& [name, factor] : *truths["truths"].as_table()) {
      const std::string program(name.str());
      const bool is_wanted =
          command_.only.empty() || std::ranges::find(command_.only, program) != command_.only.end();
      if (!is_wanted) continue;
      if (auto done = measure(program, factor.value_or(std::string())); !done) return done.error();
    }
    const double share = all_ == 0 ? 0 : static_cast<double>(right_) / all_;
    fmt::print("{} of {} named right ({:.0f} %), {} runs\n", right_, all_, 100 * share, runs_);
    return share >= wanted_share ? 0 : 1;
  }

 private:
  Result<void> measure(const std::string& program, const std::string& truth) {
    const TempFolder place;
    fs::create_directory(place.file(".unflake"));  // a project of its own
    const auto result =
        run_tool({fs::absolute(command_.build + "/bin/unflake").string(), "factors", "--json",
                  "--no-repro", "--no-history", "--",
                  fs::absolute(command_.build + "/zoo/factors/factors").string(), program},
                 place.path(), longest_search);
    if (!result) return result.error();
    if (result->status > 1)
      return internal_error(fmt::format("exit status {}: {}", result->status, result->errors),
                            program);
    const nlohmann::json report = parse_json(result->output);
    const auto& findings = report.at("findings");
    const std::string named = findings.empty() ? "" : findings[0].at("factor").get<std::string>();
    ++all_;
    right_ += named == truth;
    runs_ += report.at("runs").get<int>();
    fmt::print("{:<24} {:<22} {}{}\n", program, truth.empty() ? "nothing" : truth,
               named == truth ? "named" : "MISSED: ", named == truth ? "" : findings.dump());
    std::fflush(stdout);
    return {};
  }

  const EvaluateFactors& command_;
  int right_ = 0, all_ = 0, runs_ = 0;
};

int evaluate_factors(int argc, char** argv) {
  EvaluateFactors command;
  CLI::App app(
      "Counts the causes that unflake factors names. Exit code 0: 95 % of them, or more; 1: fewer.",
      "evaluate_factors");
  app.add_option("--source", command.source, "the repository [.]");
  app.add_option("--build", command.build, "its build folder [build]");
  app.add_option("--only", command.only, "these programs [all]");
  CLI11_PARSE(app, argc, argv);
  const auto code = FactorEvaluation(command)();
  if (code) return *code;
  fmt::print(stderr, "{}\n", to_string(code.error()));
  return 4;
}

}  // namespace
}  // namespace unflake::eval

int main(int argc, char** argv) {
  return unflake::eval::evaluate_factors(argc, argv);
}
