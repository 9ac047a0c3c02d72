#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "contradictions.h"
#include "measure.h"
#include "search/reproduce/strategy.h"
#include "subprocess.h"
#include "support/temp_folder.h"
#include "util/json.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake::eval {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using Words = std::vector<std::string>;

// A budget is kept; a machine that is busy with something else is not a failure of the search.
constexpr Duration beyond_budget = 90s;
constexpr int only_margin = 5;
constexpr Duration longest_replay = 20min;
constexpr Duration longest_explanation = 5min;
constexpr Duration longest_rerun = 60s;

std::vector<json> events_in(const std::string& output) {
  std::vector<json> events;
  for (const std::string_view line : split_lines(output)) {
    json event = parse_json(line);
    if (event.is_object()) events.push_back(std::move(event));
  }
  return events;
}

bool is_truth(const Truth& truth, const json& failure) {
  const std::string kind = failure.value("kind", "");
  const std::string place =
      fmt::format("{}:{}", base_name(failure.value("file", "")), failure.value("line", 0));
  return truth.failure_word() == kind || truth.failure == place;
}

std::string place_of(const json& moment, const char* key) {
  if (!moment.is_object() || !moment.contains(key)) return "";
  const json& place = moment[key];
  return fmt::format("{}:{}", base_name(place.value("file", "")), place.value("line", 0));
}

void read_reproduction(const json& event, const Truth& truth, Search& search) {
  search.found = true;
  search.is_truth = is_truth(truth, event.at("failure"));
  search.is_inverted = event.value("passes_under_plan", false);
  search.found_by = event.value("strategy", "");
  search.failure = event.at("failure").value("headline", "");
  search.plan = join(event.at("interventions").get<Words>(), "; ");
  search.runs = event.value("search_runs", 0);
  if (!event.contains("slack_us")) return;
  search.slack_passes_us = event["slack_us"].at(0);
  search.slack_fails_us = event["slack_us"].at(1);
}

Search read_search(const ToolResult& result, const Truth& truth) {
  Search search;
  search.elapsed_us = result.elapsed.count();
  for (const json& event : events_in(result.output)) {
    const std::string kind = event.value("event", "");
    if (kind == "failure_reproduced" && !search.is_truth) read_reproduction(event, truth, search);
    if (kind == "search_ended") search.all_runs = event.value("runs", 0);
    if (kind != "note") continue;
    search.notes.push_back(event.value("text", ""));
    search.says_broken = search.says_broken || search.notes.back().starts_with("broken:");
  }
  if (search.found && result.status != 0) search.is_truth = false;
  if (result.timed_out) search.notes.push_back("it did not end in time");
  if (!result.timed_out && result.status != 0 && result.status != 1 && result.status != only_margin)
    throw std::runtime_error(fmt::format("exit status {}: {}", result.status, result.errors));
  return search;
}

class Measuring {
 public:
  Measuring(const Truth& truth, const Tools& tools, const EvalSettings& settings)
      : truth_(truth), tools_(tools), settings_(settings) {
    std::filesystem::create_directory(folder_.file(".unflake"));  // a project of its own
  }

  Measurement search() const {
    Measurement found;
    found.program = truth_.path();
    found.search = search("", settings_.budget_us, truth_.lateness_can_cause_it, repro_);
    return found;
  }

  void rest(Measurement& found) const {
    if (!truth_.lateness_can_cause_it) return;
    if (found.search.found && truth_.is_explained()) found.explained = explained();
    if (!settings_.with_strategies || !truth_.family.empty()) return;
    for (const std::string& strategy : compared_strategies())
      found.compared.push_back(
          search(strategy, settings_.strategy_budget_us, true, folder_.file("other.json")));
    found.reruns = reruns();
  }

  Replays replay() const {
    const auto runs = std::to_string(settings_.replays);
    const ToolResult result = run({"replay", repro_, "--json", "-n", runs}, longest_replay);
    const json answer = parse_json(result.output);
    Replays replays;
    if (!answer.is_object()) {
      replays.otherwise = fmt::format("exit status {}: {}", result.status, result.errors);
      return replays;
    }
    replays.runs = answer.value("runs", 0);
    replays.as_recorded =
        answer.value(answer.value("passes_under_plan", false) ? "passed" : "failed_as_recorded", 0);
    Words others;
    for (const json& other : answer.at("other_failures"))
      others.push_back(fmt::format("{} x {}", other.value("runs", 0), other.value("headline", "")));
    replays.otherwise = join(others, "; ");
    return replays;
  }

 private:
  ToolResult run(const Words& arguments, Duration at_most) const {
    Words words{tools_.unflake};
    words.insert(words.end(), arguments.begin(), arguments.end());
    auto result = run_tool(words, folder_.path(), at_most);
    if (!result) throw std::runtime_error(to_string(result.error()));
    return std::move(*result);
  }

  Words with_target(const char* command, const Words& options) const {
    const TestWords target =
        test_words(truth_.framework, tools_.zoo + "/" + truth_.path(), truth_.test);
    Words words{command};
    words.insert(words.end(), target.words.begin(), target.words.end());
    words.insert(words.end(), options.begin(), options.end());
    if (!target.command.empty()) words.push_back("--");
    words.insert(words.end(), target.command.begin(), target.command.end());
    return words;
  }

  Search search(const std::string& strategy, int64_t budget_us, bool with_failure,
                const std::string& out) const {
    const Duration budget(budget_us);
    Words words{"--json", "--budget", duration_word(budget), "--out", out};
    if (with_failure) words.insert(words.end(), {"--failure", truth_.failure_word()});
    if (!strategy.empty()) words.insert(words.end(), {"--strategy", strategy});
    Search search =
        read_search(run(with_target("reproduce", words), budget * 3 / 2 + beyond_budget), truth_);
    search.strategies = strategy;
    return search;
  }

  Explained explained() const {
    const ToolResult result = run(
        {"explain", repro_, "--json", "--html", folder_.file("page.html")}, longest_explanation);
    Explained explained;
    explained.elapsed_us = result.elapsed.count();
    const json answer = parse_json(result.output);
    if (!answer.is_object()) return explained;
    if (!answer.at("causes").empty()) explained.cause = answer["causes"][0].value("cause", "");
    explained.critical = place_of(answer.at("critical"), "place");
    explained.critical_caller = place_of(answer.at("critical"), "caller");
    explained.barrier = place_of(answer.at("barrier"), "place");
    explained.barrier_caller = place_of(answer.at("barrier"), "caller");
    explained.contradictions = contradictions_in(answer);
    return explained;
  }

  Reruns reruns() const {
    const Words words{"--json",    "--no-history",
                      "--timeout", "5s",
                      "-n",        std::to_string(settings_.reruns),
                      "-j",        std::to_string(settings_.rerun_jobs)};
    const ToolResult result = run(with_target("run", words), longest_rerun);
    Reruns reruns;
    reruns.elapsed_us = result.elapsed.count();
    for (const json& event : events_in(result.output)) {
      if (event.value("event", "") != "run_ended" || !event.contains("outcome")) continue;
      ++reruns.runs;
      for (const json& failure : event.value("failures", json::array()))
        if (is_truth(truth_, failure)) {
          ++reruns.hits;
          break;
        }
    }
    return reruns;
  }

  const Truth& truth_;
  const Tools& tools_;
  const EvalSettings& settings_;
  const TempFolder folder_;
  const std::string repro_ = tools_.repros + "/" + truth_.program + ".json";
};

}  // namespace

const std::vector<std::string>& compared_strategies() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const Strategy& strategy : strategies())
      if (strategy.name != "rerun" && strategy.name != "more-schedules")
        names.emplace_back(strategy.name);
    return names;
  }();
  return all;
}

Replays replay_found(const Truth& truth, const Tools& tools, const EvalSettings& settings) {
  return Measuring(truth, tools, settings).replay();
}

BusyProcesses::BusyProcesses(int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0)
      for (;;) std::atomic_signal_fence(std::memory_order_seq_cst);
    if (child > 0) children_.push_back(child);
  }
}

BusyProcesses::~BusyProcesses() {
  for (const pid_t child : children_) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

Result<Measurement> measure_search(const Truth& truth, const Tools& tools,
                                   const EvalSettings& settings) {
  try {
    return Measuring(truth, tools, settings).search();
  } catch (const std::exception& error) {
    return internal_error(error.what(), truth.program);
  }
}

Result<void> measure_rest(const Truth& truth, const Tools& tools, const EvalSettings& settings,
                          Measurement& found) {
  try {
    Measuring(truth, tools, settings).rest(found);
    return {};
  } catch (const std::exception& error) {
    return internal_error(error.what(), truth.program);
  }
}

}  // namespace unflake::eval
