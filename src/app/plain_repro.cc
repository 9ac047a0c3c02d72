#include "app/repro_file.h"

#include <fmt/format.h>
#include <locale.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "app/listeners.h"
#include "report/detect_text.h"
#include "report/search_text.h"
#include "repro/relocation.h"
#include "repro/repro_json.h"
#include "search/detect/suite_orders.h"
#include "util/files.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr int most_body_lines = 60;

// Braces that are not in literals or comments; raw strings are read as others are.
class BraceCounter {
 public:
  // Whether the outermost one was closed in this line.
  bool read(std::string_view line) {
    for (size_t i = 0; i < line.size(); ++i) {
      if (is_comment_) {
        if (line.substr(i).starts_with("*/")) is_comment_ = false;
      } else if (line[i] == '"' || line[i] == '\'') {
        const char quote = line[i];
        while (++i < line.size() && line[i] != quote) i += line[i] == '\\';
      } else if (line.substr(i).starts_with("//")) {
        break;
      } else if (line.substr(i).starts_with("/*")) {
        is_comment_ = true;
      } else if (line[i] == '{') {
        ++depth_;
      } else if (line[i] == '}' && --depth_ == 0) {
        return true;
      }
    }
    return false;
  }

 private:
  int depth_ = 0;
  bool is_comment_ = false;
};

}  // namespace

FactorFacts facts_of_machine() {
  FactorFacts facts;
  facts.now = std::chrono::system_clock::now();
  facts.cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  for (const std::string& name : wanted_locales())
    if (const locale_t found = ::newlocale(LC_ALL_MASK, name.c_str(), nullptr)) {
      facts.locales.push_back(name);
      ::freelocale(found);
    }
  return facts;
}

RecordedCleaner cleaner_of(const Test& test, const std::string& root) {
  RecordedCleaner cleaner{test.id.name, test.file, test.line, test.line, {}};
  if (const std::string below = path_below(test.file, root); !below.empty()) cleaner.file = below;
  std::ifstream file(find_source(test.file, root));
  std::string line;
  for (int number = 1; number < test.line && std::getline(file, line); ++number) {
  }
  BraceCounter braces;
  while (test.line > 0 && std::getline(file, line) &&
         static_cast<int>(cleaner.body.size()) < most_body_lines) {
    cleaner.body.push_back(shorten(line, 1000));
    if (braces.read(line)) break;
  }
  cleaner.last_line = test.line + std::max(0, static_cast<int>(cleaner.body.size()) - 1);
  return cleaner;
}

namespace {

Repro begun_repro(const Test& test, const Failure& failure, const std::string& signature,
                  OneTest& one) {
  Repro repro;
  repro.test = test.id;
  const TargetRecord target = record_of(one.target(), test, one.project());
  repro.framework = target.framework;
  repro.target_path = target.path;
  repro.target_argv = target.argv;
  repro.failure = failure;
  repro.signature = signature;
  repro.plan.agent = false;
  repro.was_seen = true;
  repro.candidates = 1;
  const Surroundings surroundings = survey(one.project(), one.launcher());
  repro.commit = surroundings.commit;
  repro.machine = surroundings.machine;
  repro.unflake_version = surroundings.unflake_version;
  repro.found = std::chrono::system_clock::now();
  repro.timeout = test.timeout.value_or(std::chrono::minutes(1));
  if (failure.kind == FailureKind::timeout) repro.outcome = OutcomeKind::timeout;
  if (failure.kind == FailureKind::signal) repro.outcome = OutcomeKind::crash;
  return repro;
}

std::vector<std::string> all_names(const std::vector<std::shared_ptr<const Test>>& tests) {
  std::vector<std::string> names;
  for (const auto& test : tests) names.push_back(test->id.name);
  return names;
}

}  // namespace

Repro repro_of(const OrderRelation& relation, const Conditions& conditions, OneTest& one) {
  Repro repro = begun_repro(*relation.test, relation.failure, relation.signature, one);
  repro.conditions = conditions;
  repro.order.emplace();
  repro.order->arrangement = relation.arrangement;
  if (relation.kind == OrderRelation::Kind::victim) {
    repro.order->before = all_names(relation.makers);
    for (const auto& undoer : relation.undoers)
      repro.order->cleaners.push_back(cleaner_of(*undoer, one.project().root));
  } else {
    repro.order->arrangement = {};
    repro.order->state_setters = all_names(relation.makers);
  }
  repro.with_plan = relation.failing();
  repro.without_plan = relation.passing();
  repro.strategy = "orders";
  repro.reason = order_sentence(relation);
  return repro;
}

Repro repro_of(const FactorFinding& finding, OneTest& one) {
  Repro repro = begun_repro(*finding.test, finding.failure, finding.signature, one);
  repro.conditions = finding.conditions;
  repro.factor = finding.factor;
  repro.passes_under_plan = !finding.fails_under_it();
  repro.with_plan = finding.with;
  repro.without_plan = finding.without;
  repro.strategy = "factors";
  repro.reason = factor_sentence(finding);
  return repro;
}

namespace {

// The runs of a repro and what came of them.
class PlainReplay {
 public:
  PlainReplay(const std::string& path, const Repro& repro, const PlainReplayOptions& options)
      : path_(path), repro_(repro), options_(options) {}

  Result<int> operator()(OneTest& one) {
    auto order = order_of(one);
    if (!order) return order.error();
    Trial trial{repro_.plan, repro_.conditions, repro_.reason, *order};
    for (int i = 0; i < options_.runs; ++i) {
      const auto result = one.run(trial, TrialEnded::Purpose::replay);
      if (one.stop_signal() != 0) return exit_code_of_signal(one.stop_signal());
      if (!result) return result.error();
      if (!has_started(*result)) return usage_error(result->process.error, path_);
      add(result->outcome);
      if (!options_.json) tell(outcome_line(one.test(), *result, style_for(options_.one.colour)));
    }
    if (options_.json)
      tell(json());
    else
      tell(text());
    return options_.as_test ? test_verdict() : verdict();
  }

 private:
  Result<TestOrder> order_of(const OneTest& one) const {
    if (!repro_.order || repro_.order->before.empty()) return TestOrder(one.shared_test());
    Tests tests;
    for (const std::string& name : repro_.order->before) {
      const auto found =
          std::ranges::find_if(one.all(), [&](const auto& test) { return test->id.name == name; });
      if (found == one.all().end())
        return usage_error(
            fmt::format("the test {} is gone, which has to run before", printable(name)), path_,
            "look for the order again with `unflake orders`");
      tests.push_back(*found);
    }
    tests.push_back(one.shared_test());
    if (auto exact = in_one_process(tests, one.all())) return exact;
    return SuiteOrders::order_of(tests, one.all(), repro_.order->arrangement);
  }

  void add(const Outcome& outcome) {
    ++runs_;
    if (outcome.kind == OutcomeKind::skipped)
      ++skipped_;
    else if (!outcome.failed())
      ++passed_;
    else if (is_same_failure(repro_, outcome, {}))
      ++as_recorded_;
    else
      ++others_[outcome.signature];
  }

  std::string text() const {
    std::string all = fmt::format("\n{}\n", plain_cause(repro_));
    all += fmt::format("{} of {} failed as recorded: {} [{}]\n", as_recorded_,
                       counted(runs_, "run"), one_line(headline(repro_.failure)), repro_.signature);
    for (const auto& [signature, count] : others_)
      all += fmt::format("{} failed otherwise [{}]\n", counted(count, "run"), signature);
    if (skipped_ > 0) all += fmt::format("{} skipped the test\n", counted(skipped_, "run"));
    all += fmt::format("when it was recorded: {} of {} failed so, {} of {} otherwise\n",
                       repro_.with_plan.hits, counted(repro_.with_plan.runs, "run"),
                       repro_.without_plan.hits, counted(repro_.without_plan.runs, "run"));
    return all;
  }

  std::string json() const {
    nlohmann::ordered_json json = {{"format", 1},
                                   {"repro", printable(path_)},
                                   {"test", printable(to_string(repro_.test))},
                                   {"cause", plain_cause(repro_)},
                                   {"signature", repro_.signature},
                                   {"passes_under_plan", repro_.passes_under_plan},
                                   {"runs", runs_},
                                   {"failed_as_recorded", as_recorded_},
                                   {"passed", passed_},
                                   {"skipped", skipped_}};
    return json_text(json, 1) + "\n";
  }

  int verdict() const {
    const bool came = repro_.passes_under_plan ? passed_ > 0 : as_recorded_ > 0;
    return static_cast<int>(came ? ExitCode::success : ExitCode::test_failed);
  }

  Result<int> test_verdict() const {
    if (skipped_ == runs_)
      return usage_error("no run came to the test, so that nothing can be said", path_,
                         "look for the failure again");
    const bool failed = as_recorded_ > 0;
    if (!options_.json)
      tell(failed ? "as a test: FAILED, the failure came back\n"
                  : "as a test: passed, the failure did not come\n");
    return static_cast<int>(failed ? ExitCode::test_failed : ExitCode::success);
  }

  static void tell(const std::string& text) {
    Page page;
    page.print("{}", text);
    (void)page.write_out();
  }

  const std::string& path_;
  const Repro& repro_;
  const PlainReplayOptions& options_;
  int runs_ = 0, as_recorded_ = 0, passed_ = 0, skipped_ = 0;
  std::map<std::string, int> others_;  // by signature
};

}  // namespace

Result<int> replay_plain(const Project& project, const std::string& path, const Repro& repro,
                         const PlainReplayOptions& options, const std::string& command_line) {
  if (repro.passes_under_plan && options.as_test)
    return usage_error("under these conditions the test passes, so that it shows no regression",
                       path, "use --as-test with a repro under which the test fails");
  auto one = find_recorded_test(project, repro, options.target, options.one);
  if (!one) return one.error();
  TrialHistory history;
  history.open(options.one, **one, command_line);
  return PlainReplay(path, repro, options)(**one);
}

}  // namespace unflake
