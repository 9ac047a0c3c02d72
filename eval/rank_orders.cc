// Chooses an order of candidates by measurement: `record` tries every candidate of every program of
// the zoo once and for all, `rank` tells how soon each order would have come to one that wins.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "app/agent_command.h"
#include "cli/reproduce_parts.h"
#include "figures.h"
#include "recording.h"
#include "truth.h"
#include "util/text.h"

namespace unflake::eval {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr int tries = 5;  // a winner hits every time; chance does not
constexpr int random_seeds = 101;

struct RankCommand {
  std::string source = ".", build = "build", folder = "build/eval/recordings", out;
  std::vector<std::string> only;
  std::string budget = "2m";
};

// Nothing: the budget is over.
std::optional<Tried> try_out(Hunt& hunt, const Candidate& candidate) {
  Tried tried{key_of(candidate.delay)};
  Trial trial{hunt.base_plan(), {}, candidate.why};
  trial.plan.interventions.push_back(candidate.delay);
  while (tried.runs < tries && tried.hits == tried.runs) {
    const auto seen = hunt.observe(trial);
    if (!seen) return std::nullopt;
    ++tried.runs;
    tried.hits += seen->hit;
  }
  return tried;
}

Recording try_all(Hunt& hunt, const std::string& program) {
  Recording recording;
  recording.program = program;
  recording.trace = *hunt.profile().model()->trace;
  recording.failure = find_failure_point(recording.trace, hunt);
  recording.limits = hunt.options().delays;
  auto candidates = find_candidates(recording.trace, recording.failure, recording.limits);
  arrange(candidates, Order::random, 1);  // a budget that runs out must favour no order
  std::set<std::string> known;
  for (const Candidate& candidate : candidates) {
    if (!known.insert(key_of(candidate.delay)).second) continue;
    auto tried = try_out(hunt, candidate);
    if (!tried) break;
    recording.tried.push_back(std::move(*tried));
  }
  return recording;
}

Result<Recording> record(const Truth& truth, const RankCommand& command, Duration budget) {
  OneTestOptions options;
  const TestWords target = test_words(
      truth.framework, fs::absolute(command.build + "/zoo/" + truth.program), truth.test);
  options.target.words = target.words;
  const auto one = OneTest::find(options, {{}, target.command, !target.command.empty()});
  if (!one) return one.error();
  const auto wanted = wanted_by_word(truth.failure_word(), (*one)->test().id, {});
  if (!wanted) return wanted.error();
  if (auto done = (*one)->set_up(); !done) return done.error();
  HuntOptions how;
  how.wanted = *wanted;
  how.budget = budget;
  how.timeout = (*one)->timeout();
  EventStream nobody;
  Hunt hunt((*one)->executor(), (*one)->shared_test(), how, nobody);
  if (!hunt.prepare()) return internal_error("it cannot be profiled", truth.program);
  return try_all(hunt, truth.program);
}

Result<int> record_all(const RankCommand& command) {
  const auto budget = parse_duration(command.budget);
  if (!budget) return budget.error();
  const auto truths = read_truths(command.source + "/zoo", command.only);
  if (!truths) return truths.error();
  fs::create_directories(command.folder);
  for (const Truth& truth : *truths) {
    if (!truth.lateness_can_cause_it || !truth.family.empty()) continue;
    const auto recording = record(truth, command, *budget);
    if (!recording) return recording.error();
    std::ofstream(command.folder + "/" + truth.program + ".json") << recording_json(*recording);
    fmt::print("{}: {} of {} delays win\n", truth.program,
               std::ranges::count_if(recording->tried, &Tried::won), recording->tried.size());
    std::fflush(stdout);
  }
  return 0;
}

Result<std::vector<Recording>> load_all(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  if (error || files.empty())
    return usage_error("there are no recordings", folder, "make them with `rank_orders record`");
  std::ranges::sort(files);
  std::vector<Recording> recordings;
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    auto recording = parse_recording({std::istreambuf_iterator<char>(in), {}}, file);
    if (!recording) return recording.error();
    recordings.push_back(std::move(*recording));
  }
  return recordings;
}

// How many runs a search in this order makes up to the first winner; 0: there is none.
double rank_of(const Recording& recording, Order order, uint64_t seed) {
  auto candidates = find_candidates(recording.trace, recording.failure, recording.limits);
  arrange(candidates, order, seed);
  std::set<std::string> winners, seen;
  for (const Tried& tried : recording.tried)
    if (tried.won()) winners.insert(tried.delay);
  for (const Candidate& candidate : candidates) {
    const std::string key = key_of(candidate.delay);
    seen.insert(key);
    if (winners.contains(key)) return static_cast<double>(seen.size());
  }
  return 0;
}

size_t all_delays(const Recording& recording) {
  std::set<std::string> keys;
  for (const Candidate& one : find_candidates(recording.trace, recording.failure, recording.limits))
    keys.insert(key_of(one.delay));
  return keys.size();
}

double typical_rank(const Recording& recording, Order order) {
  if (order != Order::random) return rank_of(recording, order, 1);
  std::vector<double> ranks;
  for (uint64_t seed = 1; seed <= random_seeds; ++seed)
    ranks.push_back(rank_of(recording, order, seed));
  return median(ranks);
}

std::string headline_of_ranking(size_t programs, const std::string& without) {
  return fmt::format(
      "## Orders of candidates\n\n"
      "`make rank` recorded a passing run of every program and tried all delays that it suggests: "
      "up to {} runs each, and a winner hits in\n"
      "all of them. The rank of an order is the run in which a search that follows it meets the "
      "first winner; for `random` it is the median\n"
      "of {} seeds. What a budget left untried counts as no winner. {} programs; left out, because "
      "no delay hit in all of its runs: {}.\n\n"
      "| order | median | mean | 90th percentile | worst |\n|---|---|---|---|---|\n",
      tries, random_seeds, programs, without.empty() ? "none" : without);
}

std::string ranking(const std::vector<Recording>& recordings) {
  constexpr Order orders[] = {Order::turns, Order::nearest, Order::appearance, Order::random};
  std::vector<double> ranks[std::size(orders)];
  std::string rows, without;
  for (const Recording& recording : recordings) {
    const auto won = std::ranges::count_if(recording.tried, &Tried::won);
    if (won == 0) {
      without += (without.empty() ? "" : ", ") + recording.program;
      continue;
    }
    rows += fmt::format("| {} | {} | {} | {} |", recording.program, all_delays(recording),
                        recording.tried.size(), won);
    for (size_t i = 0; i < std::size(orders); ++i) {
      ranks[i].push_back(typical_rank(recording, orders[i]));
      rows += fmt::format(" {:.0f} |", ranks[i].back());
    }
    rows += "\n";
  }
  std::string text = headline_of_ranking(ranks[0].size(), without);
  for (size_t i = 0; i < std::size(orders); ++i)
    text += fmt::format("| {} | {:.1f} | {:.1f} | {:.0f} | {:.0f} |\n", to_string(orders[i]),
                        median(ranks[i]), mean(ranks[i]), quantile(ranks[i], 0.9),
                        quantile(ranks[i], 1));
  text += "\n| program | delays | tried | winners |";
  for (const Order order : orders) text += fmt::format(" {} |", to_string(order));
  return text + "\n|---|---|---|---|---|---|---|---|\n" + rows;
}

Result<int> rank_all(const RankCommand& command) {
  const auto recordings = load_all(command.folder);
  if (!recordings) return recordings.error();
  const std::string text = ranking(*recordings);
  fmt::print("{}", text);
  if (command.out.empty()) return 0;
  std::ofstream out(command.out);
  out << text;
  out.close();
  if (!out) return internal_error("cannot write the file", command.out);
  return 0;
}

int run(int argc, char** argv) {
  RankCommand command;
  CLI::App app("Ranks orders of candidates by recorded runs of the zoo.", "rank_orders");
  app.require_subcommand(1);
  CLI::App* record = app.add_subcommand("record", "try every delay that a passing run suggests");
  record->add_option("--source", command.source, "the repository [.]");
  record->add_option("--build", command.build, "its build folder [build]");
  record->add_option("--only", command.only, "these programs")->delimiter(',');
  record->add_option("--budget", command.budget, "for each program [2m]");
  CLI::App* rank = app.add_subcommand("rank", "print how soon each order finds a winner");
  rank->add_option("--out", command.out, "write it here, too");
  for (CLI::App* one : {record, rank})
    one->add_option("folder", command.folder, "of recordings [build/eval/recordings]");
  CLI11_PARSE(app, argc, argv);
  const auto code = record->parsed() ? record_all(command) : rank_all(command);
  if (code) return *code;
  fmt::print(stderr, "rank_orders: {}\n", to_string(code.error()));
  return code.error().kind == ErrorKind::usage ? 2 : 4;
}

}  // namespace
}  // namespace unflake::eval

int main(int argc, char** argv) {
  return unflake::eval::run(argc, argv);
}
