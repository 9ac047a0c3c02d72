#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "app/agent_command.h"
#include "app/listeners.h"
#include "app/options.h"
#include "app/repro_file.h"
#include "cli/commands.h"
#include "cli/debugger.h"
#include "report/layout.h"
#include "report/search_text.h"
#include "report/trace_json.h"
#include "repro/relocation.h"
#include "stats/rates.h"
#include "trace/program_code.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* replay_help =
    R"(Makes a failure that `unflake reproduce` has recorded happen again. The sites and threads of
its plan are first looked for in the program as it is now; what has moved is told.

  unflake replay .unflake/repro/server_test_Server.Accepts-8c7b35ab.json
  unflake replay server_test_Server.Accepts-8c7b35ab -n 100
  unflake replay FILE --target build-asan/server_test   another build of the same test
  unflake replay FILE --as-test                         a regression test: passes while it is repaired
  unflake replay FILE --free                            on free cores, though chance has its say there
  unflake replay FILE --gdb                             a run in gdb, which stops where the test fails

Exit code 0: the failure came back; 1: it did not; 2: bad usage, or a site of the plan is gone; 4:
unflake itself failed; 128 + N: stopped by signal N. With --as-test 0: the failure did not come; 1:
it did; 2: nothing can be said, because a site is gone or no delay has fired.)";

std::vector<std::string> texts_of(const Plan& plan) {
  std::vector<std::string> texts;
  for (const Intervention& what : plan.interventions)
    texts.push_back(to_string(what, plan.interventions));
  return texts;
}

std::string share(const Count& count) {
  if (count.runs == 0) return "not measured";
  return fmt::format("{} of {} ({}, 95 % interval {})", count.hits, counted(count.runs, "run"),
                     percent(static_cast<double>(count.hits) / count.runs),
                     interval_text(count.interval()));
}

// What came of the runs of a repro.
class ReplayResult {
 public:
  explicit ReplayResult(const Repro& repro) : repro_(repro) {}

  void add(const ExperimentResult& result, const CodeView& code);

  int as_recorded() const { return as_recorded_; }
  // Whether any run shows something: it was made late, and it ended by itself.
  bool says_something(const Plan& plan) const;

  std::string text(const Plan& plan, const Style& style) const;
  std::string json(const std::string& path, const Relocation& relocation,
                   const std::vector<CodeNote>& code_notes) const;

 private:
  std::string decisions_text() const;

  struct Other {
    std::string headline;
    int runs = 0;
  };

  const Repro& repro_;
  InterventionTotals totals_;
  int as_recorded_ = 0;
  int passed_ = 0;
  int skipped_ = 0;
  int same_decisions_ = 0;               // as when it was recorded; of runs under control
  std::map<std::string, Other> others_;  // by signature
};

void ReplayResult::add(const ExperimentResult& result, const CodeView& code) {
  totals_.add(result);
  if (result.trace && result.trace->controlled)
    same_decisions_ += result.trace->controlled->digest == repro_.digest;
  const Outcome& outcome = result.outcome;
  if (outcome.kind == OutcomeKind::skipped) {
    ++skipped_;
  } else if (!outcome.failed()) {
    ++passed_;
  } else if (is_same_failure(repro_, outcome, code)) {
    ++as_recorded_;
  } else {
    Other& other = others_[outcome.signature];
    other.headline = failure_headline(outcome);
    ++other.runs;
  }
}

bool ReplayResult::says_something(const Plan& plan) const {
  const bool has_interventions = !plan.interventions.empty();
  return skipped_ < totals_.failed().runs &&
         (!has_interventions || totals_.any_fired(plan.interventions));
}

std::string ReplayResult::text(const Plan& plan, const Style& style) const {
  const std::vector<std::string> texts = texts_of(plan);
  const Count now{as_recorded_, totals_.failed().runs};
  std::string text = totals_.table(plan.interventions, texts);
  if (!text.empty()) text.insert(0, "\n");
  text += fmt::format("\n{} failed as recorded: {} [{}]\n", share(now),
                      one_line(headline(repro_.failure)), repro_.signature);
  for (const auto& [signature, other] : others_)
    text += fmt::format("{} failed otherwise: {} [{}]\n", counted(other.runs, "run"),
                        one_line(other.headline), signature);
  if (skipped_ > 0) text += fmt::format("{} skipped the test\n", counted(skipped_, "run"));
  if (repro_.is_under_control()) text += decisions_text();
  text += fmt::format("when it was recorded: {} under the plan, {} without\n",
                      share(repro_.with_plan), share(repro_.without_plan));
  if (repro_.under_control)
    text += fmt::format("the same under control, where nothing is left to chance: {}{}\n",
                        share(*repro_.under_control),
                        plan.schedule ? ", as in these runs" : "; these runs were on free cores");
  if (const std::string verdict = plausibility_words(repro_); !verdict.empty())
    text += (repro_.plausibility ? "" : "verdict: ") + verdict + "\n";
  if (repro_.passes_under_plan)
    text += "under this plan the test passes: the plan shows the order that the test relies on\n";
  return text + totals_.doubts(plan.interventions, texts, style);
}

std::string ReplayResult::decisions_text() const {
  std::string text = fmt::format("{} of {} took the decisions that were recorded\n",
                                 same_decisions_, counted(totals_.failed().runs, "run"));
  if (same_decisions_ == 0)
    text +=
        "the program is not the one that was recorded, or does something that no schedule "
        "decides: `unflake reproduce` looks for the failure again\n";
  return text;
}

std::string ReplayResult::json(const std::string& path, const Relocation& relocation,
                               const std::vector<CodeNote>& code_notes) const {
  using Json = nlohmann::ordered_json;
  const Interval interval = Count{as_recorded_, totals_.failed().runs}.interval();
  Json json = {
      {"format", 1},
      {"repro", printable(path)},
      {"test", printable(to_string(repro_.test))},
      {"signature", repro_.signature},
      {"passes_under_plan", repro_.passes_under_plan},
      {"plausibility", repro_.plausibility ? Json(to_string(*repro_.plausibility)) : Json(nullptr)},
      {"is_margin", repro_.is_margin()},
      {"runs", totals_.failed().runs},
      {"failed_as_recorded", as_recorded_},
      {"interval_95", {interval.low, interval.high}},
      {"passed", passed_},
      {"skipped", skipped_},
      {"other_failures", Json::array()},
      {"notes", Json::array()},
      {"code_notes", code_notes_json(code_notes)},
      {"interventions", Json::array()}};
  if (repro_.is_under_control()) json["took_recorded_decisions"] = same_decisions_;
  for (const auto& [signature, other] : others_)
    json["other_failures"].push_back(
        {{"signature", signature}, {"headline", printable(other.headline)}, {"runs", other.runs}});
  for (const Relocated& note : relocation.notes)
    json["notes"].push_back({{"kind", to_string(note.kind)},
                             {"from", printable(note.from)},
                             {"to", printable(note.to)},
                             {"text", printable(note.text)}});
  const std::vector<std::string> texts = texts_of(relocation.plan);
  for (size_t i = 0; i < texts.size() && i < totals_.states().size(); ++i) {
    const TracedIntervention& state = totals_.states()[i];
    json["interventions"].push_back({{"intervention", printable(texts[i])},
                                     {"visits", state.visits},
                                     {"fired", state.fired},
                                     {"added_us", state.added.count()},
                                     {"let_go", state.let_go},
                                     {"impossible", state.impossible}});
  }
  return json_text(json, 1) + "\n";
}

using Purpose = TrialEnded::Purpose;

struct ReplayCommand {
  std::string file;
  std::string target;
  int runs = 10;
  bool as_test = false, free = false, gdb = false, rr = false;
  bool verbose = false, json = false, full = false;
  std::vector<std::string> gdb_arguments;
  OneTestOptions one;
};

// A line for every run, and details for new failures. Of the runs that look for the plan's sites
// the first is shown.
class RunLines : public Consumer {
 public:
  explicit RunLines(const ReplayCommand& command)
      : is_silent_(command.json),
        style_(style_for(command.one.colour)),
        texts_(style_, command.full ? StackDetail::full : StackDetail::project,
               command.full || command.verbose) {}

  void on(const Event& event) override {
    const auto* trial = std::get_if<TrialEnded>(&event);
    if (trial == nullptr || trial->result.process.end == ProcessResult::End::not_started) return;
    if (trial->purpose == Purpose::profile && trial->number == 1)
      tell("without interventions:\n" + outcome_line(*trial->test, trial->result, style_));
    if (trial->purpose != Purpose::replay) return;
    if (trial->number == 1) tell("with interventions:\n");
    tell(texts_.text_of(*trial->test, trial->result));
  }

  void tell(const std::string& text) const {
    if (is_silent_) return;
    Page page;
    page.print("{}", text);
    (void)page.write_out();
  }

 private:
  const bool is_silent_;
  const Style style_;
  RunTexts texts_;
};

class Replay {
 public:
  explicit Replay(ReplayCommand& command)
      : command_(command), style_(style_for(command.one.colour)), lines_(command) {}

  Result<int> operator()(const Words& words) {
    if (auto loaded = load(); !loaded) return loaded.error();
    if (repro_.is_plain()) return without_agent(words);
    auto one = find_recorded_test(project_, repro_, command_.target, command_.one);
    if (!one) return one.error();
    one_ = std::move(*one);
    history_.open(command_.one, *one_, command_line_of("replay", words));
    one_->events().add(lines_);
    if (auto found = find_sites(); !found) return found.error();
    if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
    for (const Relocated& note : relocation_.notes) tell(fmt::format("{}\n", printable(note.text)));
    if (auto gone = why_plan_is_gone(relocation_, path_)) return *gone;
    return command_.gdb || command_.rr ? debug() : run_all();
  }

 private:
  Result<void> load() {
    auto found = find_named_repro(command_.file);
    if (!found) return found.error();
    project_ = std::move(found->project);
    path_ = std::move(found->path);
    repro_ = std::move(found->repro);
    if (repro_.passes_under_plan && command_.as_test)
      return usage_error("under this plan the test passes, so that it cannot show a regression",
                         path_, "use --as-test with a repro under which the test fails");
    if (repro_.is_under_control() && command_.free)
      return usage_error("no run on free cores has shown this failure", path_,
                         "replay it without --free, or look for orders or delays that do the same "
                         "with `unflake reproduce`");
    return {};
  }

  // An order or a factor takes no agent, and has no sites that could be gone.
  Result<int> without_agent(const Words& words) const {
    if (command_.gdb || command_.rr)
      return usage_error("an order or a factor cannot be replayed under a debugger yet", path_,
                         "start the program by hand: see `order` and `conditions` in the file");
    const PlainReplayOptions options{command_.target, command_.runs, command_.as_test,
                                     command_.json, command_.one};
    return replay_plain(project_, path_, repro_, options, command_line_of("replay", words));
  }

  Result<void> find_sites() {
    auto found = locate_plan(*one_, repro_, [this](const Trace& first) {
      code_notes_.add(first);
      if (!command_.json) warn(code_notes_.take(), command_.one.colour);
    });
    if (!found) return found.error();
    code_ = std::move(found->code);
    relocation_ = std::move(found->relocation);
    if (repro_.under_control && !command_.free) relocation_.plan.schedule.emplace();
    return {};
  }

  Result<int> run_all() {
    ReplayResult results(repro_);
    for (int i = 0; i < command_.runs; ++i) {
      const auto result =
          one_->run({relocation_.plan, repro_.conditions, repro_.reason}, Purpose::replay);
      if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
      if (!result) return result.error();
      results.add(*result, code_);
    }
    tell(results.text(relocation_.plan, style_));
    Page page;
    if (command_.json) page.print("{}", results.json(path_, relocation_, code_notes_.all()));
    if (const int failed = page.write_out(); failed != 0) return failed;
    return command_.as_test ? test_verdict(results) : verdict(results);
  }

  int verdict(const ReplayResult& results) const {
    const bool came = results.as_recorded() > 0;
    return static_cast<int>(came != repro_.passes_under_plan ? ExitCode::success
                                                             : ExitCode::test_failed);
  }

  Result<int> test_verdict(const ReplayResult& results) const {
    if (results.as_recorded() > 0) {
      tell("as a test: FAILED, the failure came back\n");
      return static_cast<int>(ExitCode::test_failed);
    }
    if (!results.says_something(relocation_.plan))
      return usage_error("no run was made late, so that nothing can be said", path_,
                         "look for the failure again with `unflake reproduce`, or remove the test");
    tell("as a test: passed, the failure did not come\n");
    return static_cast<int>(ExitCode::success);
  }

  Result<int> debug() {
    Plan plan = relocation_.plan;
    plan.failures = false;  // they are captured by traps, which are the debugger's
    const auto run = one_->prepare(plan);
    if (!run) return run.error();
    if (command_.rr) return record_with_rr(one_->test(), **run, one_->launcher());
    return debug_with_gdb(one_->test(), **run, repro_.failure.kind, command_.gdb_arguments);
  }

  void tell(const std::string& text) const { lines_.tell(text); }

  ReplayCommand& command_;
  const Style style_;
  RunLines lines_;
  Project project_;
  std::string path_;
  Repro repro_;
  TrialHistory history_;
  std::unique_ptr<OneTest> one_;
  CodeView code_;
  Relocation relocation_;
  CodeNotes code_notes_;
};

}  // namespace

int replay_command(const Words& words) {
  ReplayCommand command;
  CommandLine line("replay", replay_help);
  line.option("file", command.file, "the repro's file, or its name in .unflake/repro")
      .required()
      .takes("FILE");
  line.option("-n,--repeat", command.runs, "runs under the plan [10]").between(1, 1'000'000);
  line.option("--target", command.target, "another executable or build folder with the test")
      .takes("PATH");
  line.flag("--as-test", command.as_test, "exit code 0 when the failure does not come");
  line.flag("--free", command.free,
            "on free cores, also what comes back every time only under control");
  line.flag("--gdb", command.gdb, "start a run in gdb; `run` begins it");
  line.option("--gdb-arg", command.gdb_arguments, "an argument for gdb; may be repeated")
      .one_at_a_time();
  line.flag("--rr", command.rr, "record a run with rr").excludes("--gdb");
  line.flag("--verbose", command.verbose, "the output of every failing run");
  line.flag("--full", command.full, "the same, and stacks with the frames of libraries");
  line.flag("--json", command.json, "JSON instead of text");
  command.one.add_recording_to(line);
  if (const auto done = line.parse(words)) return *done;
  const auto code = Replay(command)(words);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
