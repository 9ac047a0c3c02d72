// Makes histories of 64 commits, one of which makes a test of zoo/histories flaky, and asks
// `unflake detect --bisect` which one it was.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "document.h"
#include "markdown.h"
#include "subprocess.h"
#include "support/temp_folder.h"
#include "surroundings.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake::eval {
namespace {

namespace fs = std::filesystem;

constexpr size_t commits = 64;
constexpr int reruns_per_commit = 100;
constexpr Duration longest_search = std::chrono::minutes(10);

struct EvaluateBisect {
  std::string source = ".";
  std::string build = "build";
  std::string out = "docs/EVALUATION.md";
  std::vector<std::string> only;
};

struct Bisected {
  std::string program, answer, how;
  size_t truth = 0;
  bool is_right = false;
  int runs = 0, builds = 0, looked_at = 0;
  double seconds = 0;

  int by_rerunning() const { return looked_at * reruns_per_commit; }
};

// Lines that end in //- are there before the commit, those that end in //+ from it on.
std::string version(const std::string& text, bool after) {
  std::string lines;
  for (std::string_view line : split_lines(text)) {
    const bool only_before = line.ends_with("//-"), only_after = line.ends_with("//+");
    if ((only_before && after) || (only_after && !after)) continue;
    if (only_before || only_after) line.remove_suffix(3);
    lines += std::string(line) + "\n";
  }
  return lines;
}

// Every other commit adds lines above and a function below, so that lines move.
std::string program_at(const std::string& text, size_t commit, size_t first) {
  std::string program;
  for (size_t i = 0; i < commit / 2; ++i) program += fmt::format("// Note {}.\n", i);
  program += version(text, commit >= first);
  for (size_t i = 0; i < commit / 2; ++i)
    program += fmt::format("int helper_{0}(void) {{ return {0}; }}\n", i);
  return program;
}

std::string blob(const std::string& name, const std::string& text) {
  return fmt::format("M 100644 inline {}\ndata {}\n{}\n", name, text.size(), text);
}

std::string subject_of(size_t commit) {
  return fmt::format("change {}", commit);
}

// For git fast-import.
std::string history_of(const std::string& text, size_t first) {
  std::string stream;
  for (size_t i = 0; i < commits; ++i) {
    stream += fmt::format("commit refs/heads/main\ncommitter T <t@example.org> {} +0000\n",
                          1'700'000'000 + i);
    stream += fmt::format("data {}\n{}\n", subject_of(i).size(), subject_of(i));
    stream += blob("test.c", program_at(text, i, first)) +
              blob("Makefile", "test: test.c\n\tcc -g $< -o $@ -lpthread\n") +
              blob(".gitignore", "test\n.unflake\nhistory\n");
  }
  return stream;
}

class BisectEvaluation {
 public:
  explicit BisectEvaluation(const EvaluateBisect& command) : command_(command) {}

  Result<int> operator()() {
    Watch watch(command_.source);
    std::vector<std::string> programs;
    for (const auto& entry : fs::directory_iterator(command_.source + "/zoo/histories"))
      if (entry.path().extension() == ".c") programs.push_back(entry.path().stem());
    std::ranges::sort(programs);
    for (size_t i = 0; i < programs.size(); ++i)
      if (command_.only.empty() ||
          std::ranges::find(command_.only, programs[i]) != command_.only.end())
        if (auto done = measure(programs[i], 1 + (i * 23 + 5) % (commits - 1)); !done)
          return done.error();
    if (command_.only.empty())
      if (auto done = write_file(command_.out, with_section(contents(command_.out), bisect_heading,
                                                            section(watch.end())));
          !done)
        return done.error();
    const auto all = scores();
    for (const Score& score : all)
      fmt::print("{}: {}{}\n", score.figure, score.measured, score.met ? "" : "  MISSED");
    return std::ranges::all_of(all, &Score::met) ? 0 : 1;
  }

 private:
  Result<void> measure(const std::string& program, size_t first) {
    const TempFolder place;
    const std::string text = contents(command_.source + "/zoo/histories/" + program + ".c");
    std::ofstream(place.file("history")) << history_of(text, first);
    const auto made = run_tool({"/bin/sh", "-ec",
                                "git init -q .; git fast-import --quiet <history; git checkout -q "
                                "main; mkdir .unflake; make -s"},
                               place.path(), longest_search);
    if (!made) return made.error();
    if (made->status != 0) return internal_error("no history: " + made->errors, program);
    const auto result = run_tool(
        {fs::absolute(command_.build + "/bin/unflake").string(), "detect", "--bisect",
         fmt::format("main~{}..main", commits - 1), "--json", "--no-history", "--", "./test"},
        place.path(), longest_search);
    if (!result) return result.error();
    if (result->status > 1)
      return internal_error(fmt::format("exit status {}: {}", result->status, result->errors),
                            program);
    add(program, first, parse_json(result->output));
    return {};
  }

  void add(const std::string& program, size_t first, const nlohmann::json& report) {
    Bisected one{program, report.at("answer"), report.at("fails_when"), first};
    one.is_right = report.contains("commit") && report["commit"]["subject"] == subject_of(first);
    one.runs = report.at("runs");
    one.builds = report.at("builds");
    one.seconds = report.at("elapsed_seconds");
    std::set<std::string> seen;
    for (const auto& step : report.at("steps")) seen.insert(step.at("commit").get<std::string>());
    one.looked_at = static_cast<int>(seen.size());
    fmt::print("{:<16} {} {:>4} runs, {} builds, {:.1f} s: {}\n", program,
               one.is_right ? "right" : "MISSED", one.runs, one.builds, one.seconds, one.how);
    std::fflush(stdout);
    all_.push_back(std::move(one));
  }

  std::vector<Score> scores() const {
    long right = 0;
    double runs = 0, reruns = 0;
    for (const Bisected& one : all_) {
      right += one.is_right;
      runs += one.runs;
      reruns += one.by_rerunning();
    }
    const double ratio = runs > 0 ? reruns / runs : 0;
    return {{"commits found", fmt::format("{} of {}", right, all_.size()), "all",
             right == static_cast<long>(all_.size())},
            {"times fewer runs than 100 reruns of each commit that was looked at",
             fmt::format("{:.1f}", ratio), "at least 10", ratio >= 10}};
  }

  std::string section(const Surroundings& where) const {
    std::string text = fmt::format(
        "{}\n\n`unflake detect --bisect` on histories of {} commits, one of which makes the test "
        "of "
        "zoo/histories flaky.\nAll runs count, those of the search at the bad end included; they "
        "are compared with {} plain runs of each commit that was looked at.\n\n",
        bisect_heading, commits, reruns_per_commit);
    text += to_string(where) + "\n\n" + targets_text(scores()) + "\n";
    text += table_head({"program", "answer", "runs", "builds", "s", "what makes it fail"});
    for (const Bisected& one : all_)
      text += row({one.program, one.is_right ? "right" : one.answer, std::to_string(one.runs),
                   std::to_string(one.builds), fmt::format("{:.1f}", one.seconds), cell(one.how)});
    return text;
  }

  const EvaluateBisect& command_;
  std::vector<Bisected> all_;
};

int evaluate_bisect(int argc, char** argv) {
  EvaluateBisect command;
  CLI::App app(
      "Counts the commits that unflake detect --bisect names. Exit code 0: all targets are met; 1: "
      "not all.",
      "evaluate_bisect");
  app.add_option("--source", command.source, "the repository [.]");
  app.add_option("--build", command.build, "its build folder [build]");
  app.add_option("--out", command.out, "the document [docs/EVALUATION.md]");
  app.add_option("--only", command.only, "these programs [all]; nothing is written");
  CLI11_PARSE(app, argc, argv);
  const auto code = BisectEvaluation(command)();
  if (code) return *code;
  fmt::print(stderr, "{}\n", to_string(code.error()));
  return 4;
}

}  // namespace
}  // namespace unflake::eval

int main(int argc, char** argv) {
  return unflake::eval::evaluate_bisect(argc, argv);
}
