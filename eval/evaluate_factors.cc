// Asks `unflake factors` for the cause of each program of zoo/factors, and counts how many it
// names; writes a section of docs/EVALUATION.md.
#include <fmt/format.h>

#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <filesystem>

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

constexpr double wanted_share = 0.95;
constexpr size_t wanted_causes = 20;
constexpr Duration longest_search = std::chrono::minutes(10);

struct EvaluateFactors {
  std::string source = ".";
  std::string build = "build";
  std::string out = "docs/EVALUATION.md";
  std::vector<std::string> only;
};

struct Asked {
  std::string program, truth, named;
  int runs = 0;

  bool is_right() const { return named == truth; }
};

std::string or_nothing(const std::string& factor) {
  return factor.empty() ? "nothing" : factor;
}

class FactorEvaluation {
 public:
  explicit FactorEvaluation(const EvaluateFactors& command) : command_(command) {}

  Result<int> operator()() {
    Watch watch(command_.source);
    const auto truths = toml::parse_file(command_.source + "/zoo/factors/truths.toml");
    for (const auto& [name, factor] : *truths["truths"].as_table()) {
      const std::string program(name.str());
      const bool is_wanted =
          command_.only.empty() || std::ranges::find(command_.only, program) != command_.only.end();
      if (!is_wanted) continue;
      if (auto done = measure(program, factor.value_or(std::string())); !done) return done.error();
    }
    if (command_.only.empty())
      if (auto done = write_file(command_.out, with_section(contents(command_.out), factors_heading,
                                                            section(watch.end())));
          !done)
        return done.error();
    const auto all = scores();
    for (const Score& score : all)
      fmt::print("{}: {}{}\n", score.figure, score.measured, score.met ? "" : "  MISSED");
    return std::ranges::all_of(all, &Score::met) ? 0 : 1;
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
    all_.push_back({program, truth, named, report.at("runs").get<int>()});
    fmt::print("{:<24} {:<22} {}{}\n", program, or_nothing(truth),
               named == truth ? "named" : "MISSED: ", named == truth ? "" : findings.dump());
    std::fflush(stdout);
    return {};
  }

  std::vector<Score> scores() const {
    const auto right = std::ranges::count_if(all_, &Asked::is_right);
    const auto causes =
        std::ranges::count_if(all_, [](const Asked& one) { return !one.truth.empty(); });
    std::vector<Score> all{
        {"causes named right, sound tests included", fmt::format("{} of {}", right, all_.size()),
         "at least 95 %",
         static_cast<double>(right) >= wanted_share * static_cast<double>(all_.size())}};
    if (command_.only.empty())
      all.push_back({"planted causes", std::to_string(causes), "at least 20",
                     static_cast<size_t>(causes) >= wanted_causes});
    return all;
  }

  std::string section(const Surroundings& where) const {
    int runs = 0;
    for (const Asked& one : all_) runs += one.runs;
    std::string text = fmt::format(
        "{}\n\n`unflake factors` on the programs of zoo/factors, each of which fails for one cause "
        "in its surroundings, or for none: {} runs.\n\n",
        factors_heading, runs);
    text += to_string(where) + "\n\n" + targets_text(scores()) + "\n";
    text += table_head({"program", "cause", "named first", "runs"});
    for (const Asked& one : all_)
      text += row(
          {one.program, or_nothing(one.truth), or_nothing(one.named), std::to_string(one.runs)});
    return text;
  }

  const EvaluateFactors& command_;
  std::vector<Asked> all_;
};

int evaluate_factors(int argc, char** argv) {
  EvaluateFactors command;
  CLI::App app(
      "Counts the causes that unflake factors names. Exit code 0: all targets are met; 1: not all.",
      "evaluate_factors");
  app.add_option("--source", command.source, "the repository [.]");
  app.add_option("--build", command.build, "its build folder [build]");
  app.add_option("--only", command.only, "these programs [all]; nothing is written");
  app.add_option("--out", command.out, "the document [docs/EVALUATION.md]");
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
