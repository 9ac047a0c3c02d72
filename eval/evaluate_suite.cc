// Makes a suite of the zoo's flaky programs among ten times as many sound tests, asks `unflake
// detect` which are flaky, and compares its answers with the truths, and its time with what
// rerunning everything would take; writes a section of docs/EVALUATION.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "document.h"
#include "figures.h"
#include "markdown.h"
#include "stats/rates.h"
#include "subprocess.h"
#include "support/temp_folder.h"
#include "surroundings.h"
#include "truth.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake::eval {
namespace {

namespace fs = std::filesystem;

constexpr double least_recall = 0.95;
constexpr double least_saving = 10;
constexpr size_t sound_for_each = 10;
constexpr uint64_t most_reruns = 10'000'000;
constexpr Duration longest_wait = std::chrono::minutes(5);  // beyond the budget

struct EvaluateSuite {
  std::string source = ".";
  std::string build = "build";
  std::string out = "docs/EVALUATION.md";
  std::string keep, from;
  int minutes = 7;
};

// What `unflake detect` says of a test, and what is true.
struct Judged {
  std::string name, answer, when;
  const Truth* truth = nullptr;  // none: the test is sound
  double seconds = 0;            // of a plain run
  int64_t plain_runs = 0;
  double found_after = 0;

  bool is_flaky() const { return truth != nullptr && truth->expect == "reproduced"; }
  bool is_found() const { return answer == "seen_flaky" || answer == "fails_perturbed"; }
  bool fails_by_itself() const { return is_flaky() && truth->plain_failure_rate > 0; }
};

// Rerunning everything. A test that never failed by itself in so many runs is taken to fail as
// often as those leave open at 95 %, which is more often than it does.
struct ByRerunning {
  double wanted = 0;  // detections, on average
  RerunOutlook outlook;
};

RunChances chances_of(const Judged& test) {
  if (!test.is_flaky()) return {1, 0};
  const double rate = test.fails_by_itself() ? test.truth->plain_failure_rate
                                             : upper_bound_zero_failures(test.truth->plain_runs);
  return {1 - rate, rate};
}

// The fewest reruns of everything that are expected to find so many.
ByRerunning reruns_until(const std::vector<RerunCost>& tests, double wanted) {
  uint64_t low = 1, high = most_reruns;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (outlook_of(tests, middle).detections >= wanted)
      high = middle;
    else
      low = middle + 1;
  }
  return {wanted, outlook_of(tests, low)};
}

class SuiteEvaluation {
 public:
  explicit SuiteEvaluation(const EvaluateSuite& command) : command_(command) {}

  Result<int> operator()() {
    Watch watch(command_.source);
    auto truths = read_truths(command_.source + "/zoo", {});
    if (!truths) return truths.error();
    truths_ = std::move(*truths);
    std::erase_if(truths_, [](const Truth& truth) {
      return !truth.family.empty() && truth.family != "unsteady";
    });
    if (auto done = command_.from.empty() ? detect() : take(contents(command_.from)); !done)
      return done.error();
    if (auto done = write_file(command_.out, with_section(contents(command_.out), suite_heading,
                                                          section(watch.end())));
        !done)
      return done.error();
    const auto all = scores();
    for (const Score& score : all)
      fmt::print("{}: {}{}\n", score.figure, score.measured, score.met ? "" : "  MISSED");
    return std::ranges::all_of(all, &Score::met) ? 0 : 1;
  }

 private:
  // A folder of CTest, whose entries are opened into cases.
  std::string entries() const {
    std::string text;
    const auto add = [&](const std::string& name, const std::string& path) {
      text +=
          fmt::format("add_test({} \"{}\")\n", name,
                      fs::absolute(command_.build + "/zoo/" + path).lexically_normal().string());
    };
    for (const Truth& truth : truths_) add(truth.program, truth.path());
    add("sound_suite", "sound/sound_suite");
    return text;
  }

  Result<void> detect() {
    const TempFolder place;
    fs::create_directory(place.file(".unflake"));  // a project of its own
    std::ofstream(place.file("CTestTestfile.cmake")) << entries();
    const auto result =
        run_tool({fs::absolute(command_.build + "/bin/unflake").string(), "detect", ".", "--cases",
                  "--budget", fmt::format("{}m", command_.minutes), "--json", "--no-history"},
                 place.path(), std::chrono::minutes(command_.minutes) + longest_wait);
    if (!result) return result.error();
    if (!command_.keep.empty())
      if (auto kept = write_file(command_.keep, result->output); !kept) return kept.error();
    if (result->timed_out || (result->status > 1 && result->status != 3))
      return internal_error(fmt::format("exit status {}: {}", result->status, result->errors),
                            "unflake detect");
    return take(result->output);
  }

  Result<void> take(const std::string& report) {
    report_ = parse_json(report);
    if (!report_.is_object()) return internal_error("there is no report of unflake detect");
    for (const auto& test : report_.at("tests")) add(test);
    return {};
  }

  void add(const nlohmann::json& test) {
    Judged one{test.at("name"),           test.at("answer"),       "",
               truth_of(test.at("name")), test.at("mean_seconds"), test.at("plain").at("passes")};
    one.plain_runs += test.at("plain").at("failures").get<int64_t>();
    one.found_after = test.value("found_after_seconds", 0.0);
    if (test.contains("perturbed")) one.when = test["perturbed"].at("fails_when");
    all_.push_back(std::move(one));
  }

  const Truth* truth_of(const std::string& name) const {
    const auto found = std::ranges::find_if(truths_, [&](const Truth& truth) {
      return name == truth.program || name == truth.program + "/" + truth.test;
    });
    return found == truths_.end() || found->expect == "nothing" ? nullptr : &*found;
  }

  size_t count(auto&& matches) const {
    return static_cast<size_t>(std::ranges::count_if(all_, matches));
  }
  size_t flaky() const { return count(&Judged::is_flaky); }
  size_t found() const {
    return count([](const Judged& one) { return one.is_flaky() && one.is_found(); });
  }
  // Said of tests that are not.
  size_t wrongly(const std::string& answer) const {
    return count([&](const Judged& one) { return !one.is_flaky() && one.answer == answer; });
  }
  size_t answered(const std::string& answer) const {
    return count([&](const Judged& one) { return one.answer == answer; });
  }

  // Until the last of them was found, and everything around the runs included. So much does
  // rerunning count, too.
  double seconds_spent() const {
    double last = 0;
    for (const Judged& one : all_)
      if (one.is_flaky() && one.is_found()) last = std::max(last, one.found_after);
    return last;
  }

  // As many as were found, but no more than the share that is wanted: the last few take for ever.
  ByRerunning by_rerunning(bool only_known_to_fail) const {
    std::vector<RerunCost> tests;
    size_t flaky = 0, found = 0;
    for (const Judged& one : all_) {
      const bool takes_part = !only_known_to_fail || one.fails_by_itself();
      flaky += takes_part && one.is_flaky();
      found += takes_part && one.is_flaky() && one.is_found();
      tests.push_back({takes_part ? chances_of(one) : RunChances{1, 0}, one.seconds});
    }
    return reruns_until(
        tests, std::min(static_cast<double>(found), least_recall * static_cast<double>(flaky)));
  }

  static std::string of(size_t some, size_t all) { return fmt::format("{} of {}", some, all); }

  std::vector<Score> scores() const {
    const ByRerunning reruns = by_rerunning(false);
    const double saving = reruns.outlook.seconds / seconds_spent();
    const size_t seen = answered("seen_flaky"), perturbed = answered("fails_perturbed");
    return {{"flaky tests found, whatever the answer", of(found(), flaky()), ">= 95 %",
             reaches(found(), flaky(), least_recall)},
            {"called seen flaky, and flaky", of(seen - wrongly("seen_flaky"), seen), "all",
             wrongly("seen_flaky") == 0},
            {"called failing when perturbed, and flaky",
             of(perturbed - wrongly("fails_perturbed"), perturbed), "all",
             wrongly("fails_perturbed") == 0},
            {"times fewer test-seconds than rerunning everything to the same recall, 95 % at most",
             fmt::format("{:.1f}: {:.0f} s instead of at least {:.0f} s", saving, seconds_spent(),
                         reruns.outlook.seconds),
             ">= 10", saving >= least_saving},
            {"sound tests for each flaky one",
             fmt::format("{:.1f}", static_cast<double>(all_.size() - flaky()) /
                                       static_cast<double>(std::max<size_t>(1, flaky()))),
             ">= 10", all_.size() - flaky() >= sound_for_each * flaky()}};
  }

  std::string answers_table() const {
    std::string text =
        table_head({"answer", "fail by themselves", "only when late", "sound", "always fail"});
    for (const char* answer :
         {"seen_flaky", "fails_perturbed", "no_sign", "always_fails", "skipped", "not_run"}) {
      const auto cell_of = [&](auto&& matches) {
        return std::to_string(count(
            [&](const Judged& one) { return one.answer == answer && std::invoke(matches, one); }));
      };
      text +=
          row({answer, cell_of(&Judged::fails_by_itself),
               cell_of([](const Judged& one) { return one.is_flaky() && !one.fails_by_itself(); }),
               cell_of([](const Judged& one) { return one.truth == nullptr; }),
               cell_of([](const Judged& one) { return one.truth && !one.is_flaky(); })});
    }
    return text;
  }

  // Of what fails by itself the rates are known; the saving on these alone has no target, as the
  // time went into the others, too.
  std::string rerunning_text() const {
    const ByRerunning all = by_rerunning(false), known = by_rerunning(true);
    return fmt::format(
        "`detect` found the last of them after {:.0f} s; it made {} plain runs and {} trials in "
        "{:.0f} s. Rerunning "
        "everything, and no test again that was seen both ways, is expected to find {:.1f} after "
        "{} rounds and {:.0f} test-seconds, if what never failed by itself does so as often as its "
        "plain runs leave open (95 %); if it never does, no number of rounds is enough. Of those "
        "that "
        "are known to fail by themselves {:.1f} would be found after {} rounds and {:.0f} "
        "test-seconds.\n",
        seconds_spent(), report_.at("plain_runs").get<int>(), report_.at("trials").get<int>(),
        report_.at("elapsed_seconds").get<double>(), all.wanted, all.outlook.most_runs,
        all.outlook.seconds, known.wanted, known.outlook.most_runs, known.outlook.seconds);
  }

  std::string section(const Surroundings& where) const {
    std::string text = fmt::format(
        "{}\n\n`unflake detect` with {} minutes on one suite: the programs of zoo/ and "
        "zoo/unsteady, and the sound tests of zoo/sound. {} tests, {} of them flaky.\n\n",
        suite_heading, command_.minutes, all_.size(), flaky());
    text += to_string(where) + "\n\n" + targets_text(scores()) + "\n" + answers_table() + "\n" +
            rerunning_text() + "\n";
    text += table_head({"missed, or called what it is not", "answer", "plain runs", "why"});
    for (const Judged& one : all_)
      if (one.is_flaky() != one.is_found())
        text += row({one.name, one.answer, std::to_string(one.plain_runs), one.when});
    return text;
  }

  const EvaluateSuite& command_;
  std::vector<Truth> truths_;
  std::vector<Judged> all_;
  nlohmann::json report_;
};

int evaluate_suite(int argc, char** argv) {
  EvaluateSuite command;
  CLI::App app(
      "Asks unflake detect for the flaky tests of the zoo among sound ones. Exit code 0: all "
      "targets "
      "are met; 1: not all.",
      "evaluate_suite");
  app.add_option("--source", command.source, "the repository [.]");
  app.add_option("--build", command.build, "its build folder [build]");
  app.add_option("--minutes", command.minutes, "the budget [7]")->check(CLI::Range(1, 600));
  app.add_option("--keep", command.keep, "write what unflake detect says to this file");
  app.add_option("--from", command.from, "judge what was kept, and detect nothing");
  app.add_option("--out", command.out, "the document [docs/EVALUATION.md]");
  CLI11_PARSE(app, argc, argv);
  const auto code = SuiteEvaluation(command)();
  if (code) return *code;
  fmt::print(stderr, "{}\n", to_string(code.error()));
  return 4;
}

}  // namespace
}  // namespace unflake::eval

int main(int argc, char** argv) {
  return unflake::eval::evaluate_suite(argc, argv);
}
