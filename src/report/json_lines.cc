#include "report/consumers.h"

#include <algorithm>
#include <optional>

#include "report/terminal.h"
#include "report/trace_text.h"
#include "util/json.h"
#include "util/time.h"

namespace unflake {
namespace {

using Json = nlohmann::ordered_json;

constexpr int format_version = 1;  // goes up when a reader of the old format would misread the new
constexpr size_t longest_output = 64 * 1024;
constexpr size_t most_failures = 10;

std::string text_of(std::string_view text) {
  return bounded_text(text, longest_text);
}

std::string id_of(const Test& test) {
  return text_of(to_string(test.id));
}

// Empty texts are left out.
void add(Json& object, const char* key, std::string_view text) {
  if (!text.empty()) object[key] = text_of(text);
}

std::string_view name_of(ProcessResult::End end) {
  switch (end) {
    case ProcessResult::End::exited:
      return "exited";
    case ProcessResult::End::signalled:
      return "signalled";
    case ProcessResult::End::timed_out:
      return "timed_out";
    case ProcessResult::End::cancelled:
      return "cancelled";
    case ProcessResult::End::not_started:
      return "not_started";
  }
  return "?";
}

Json object_of(const Surroundings& surroundings) {
  Json object = Json::object();
  add(object, "commit", surroundings.commit);
  add(object, "branch", surroundings.branch);
  object["dirty"] = surroundings.dirty;
  add(object, "machine", surroundings.machine);
  add(object, "unflake_version", surroundings.unflake_version);
  return object;
}

Json object_of(const Failure& failure) {
  Json object{{"kind", to_string(failure.kind)}, {"headline", text_of(headline(failure))}};
  add(object, "file", failure.file);
  if (failure.line > 0) object["line"] = failure.line;
  add(object, "function", failure.function);
  add(object, "expression", failure.expression);
  add(object, "message", failure.message);
  return object;
}

Json object_of(const Tally& tally) {
  return {{"passes", tally.passes}, {"failures", tally.failures}, {"skips", tally.skips}};
}

void add_outcome(Json& object, const Outcome& outcome) {
  object["outcome"] = to_string(outcome.kind);
  object["duration_us"] = outcome.duration.count();
  add(object, "reason", outcome.reason);
  add(object, "signature", outcome.signature);
  const size_t shown = std::min(outcome.failures.size(), most_failures);
  for (size_t i = 0; i < shown; ++i) object["failures"].push_back(object_of(outcome.failures[i]));
}

void add_process(Json& object, const ProcessResult& process) {
  object["end"] = name_of(process.end);
  object["code"] = process.code;
  add(object, "error", process.error);
  object["user_cpu_us"] = process.user_cpu.count();
  object["system_cpu_us"] = process.system_cpu.count();
  object["max_rss_kib"] = process.max_rss_kib;
  if (process.dumped_core) object["dumped_core"] = true;
  if (process.leftovers > 0) object["leftovers"] = process.leftovers;
}

Json object_of(const SessionStarted& session) {
  Json object{{"event", "session_started"}, {"format", format_version}};
  object["at"] = timestamp(session.at);
  add(object, "command_line", session.command_line);
  add(object, "target", session.target);
  object["surroundings"] = object_of(session.surroundings);
  object["repeat"] = session.repeat;
  object["retries"] = session.retries;
  object["until_fail"] = session.until_fail;
  if (session.duration) object["duration_us"] = session.duration->count();
  if (session.seed) object["seed"] = std::to_string(*session.seed);
  object["jobs"] = session.jobs;
  object["tests"] = Json::array();
  for (const auto& test : session.tests) object["tests"].push_back(id_of(*test));
  return object;
}

Json object_of(const RunStarted& run) {
  return {{"event", "run_started"}, {"test", id_of(*run.test)}, {"attempt", run.attempt}};
}

Json object_of(const RunSlow& run) {
  return {{"event", "run_slow"},
          {"test", id_of(*run.test)},
          {"attempt", run.attempt},
          {"after_us", run.after.count()}};
}

void add_stacks(Json& object, const ProcessResult& process) {
  for (const ThreadAtEnd& thread : process.thread_stacks) {
    Json frames = Json::array();
    for (const ThreadAtEnd::Frame& frame : thread.frames) {
      Json one{{"function", text_of(frame.function)}};
      add(one, "file", frame.file);
      if (frame.line > 0) one["line"] = frame.line;
      frames.push_back(std::move(one));
    }
    object["threads"].push_back({{"pid", thread.pid},
                                 {"tid", thread.tid},
                                 {"name", text_of(thread.name)},
                                 {"stack", std::move(frames)}});
  }
}

Json object_of(const RunEnded& run) {
  Json object{{"event", "run_ended"}, {"test", id_of(*run.test)}, {"attempt", run.attempt}};
  add(object, "plan", run.plan.id);
  object["started"] = timestamp(run.result.started);
  if (was_cancelled(run))
    object["duration_us"] = run.result.outcome.duration.count();
  else
    add_outcome(object, run.result.outcome);
  add_process(object, run.result.process);
  add_stacks(object, run.result.process);
  object["will_retry"] = run.will_retry;
  object["output_bytes"] = run.result.process.output.total + run.result.process.errors.total;
  if (run.result.outcome.failed() && !was_cancelled(run))
    object["output"] = printable_output(run.result.process, longest_output);
  return object;
}

Json object_of(const GateDecision& gate) {
  Json object{{"decision", to_string(gate.kind)}, {"fails_build", fails_build(gate.kind)}};
  add(object, "text", gate.text);
  add(object, "past", gate.past);
  for (const std::string& command : gate.next) object["next"].push_back(text_of(command));
  for (const std::string& signature : gate.unknown) object["unknown"].push_back(signature);
  for (const std::string& signature : gate.known) object["known"].push_back(signature);
  add(object, "until", gate.until);
  add(object, "owner", gate.owner);
  add(object, "issue", gate.issue);
  return object;
}

Json object_of(const GateCounts& counts) {
  return {{"flaky_new", counts.flaky_new},     {"flaky_known", counts.flaky_known},
          {"quarantined", counts.quarantined}, {"failed", counts.failed},
          {"expired", counts.expired},         {"other_signature", counts.other_signature}};
}

Json object_of(const TestEnded& test) {
  Json object{{"event", "test_ended"},
              {"test", id_of(*test.test)},
              {"verdict", to_string(test.verdict)},
              {"runs", object_of(test.tally)}};
  add(object, "reason", test.reason);
  add(object, "file", test.test->file);
  if (test.test->line > 0) object["line"] = test.test->line;
  if (test.gate) object["gate"] = object_of(*test.gate);
  return object;
}

Json object_of(const Note& note) {
  Json object{{"event", "note"}, {"level", to_string(note.level)}, {"text", text_of(note.text)}};
  add(object, "next", note.next);
  return object;
}

Json object_of(const SessionEnded& session) {
  Json object{{"event", "session_ended"},           {"elapsed_us", session.elapsed.count()},
              {"interrupted", session.interrupted}, {"passed", session.passed},
              {"failed", session.failed},           {"flaky", session.flaky},
              {"skipped", session.skipped},         {"not_run", session.not_run},
              {"runs", object_of(session.runs)}};
  if (session.mass_failure) object["mass_failure"] = true;
  if (session.gate) object["gate"] = object_of(*session.gate);
  for (const SlowTest& slow : session.slowest)
    object["slowest"].push_back(
        {{"test", id_of(*slow.test)}, {"duration_us", slow.duration.count()}});
  return object;
}

Json object_of(const SearchStarted& search) {
  Json object{{"event", "search_started"},
              {"format", format_version},
              {"at", timestamp(search.at)},
              {"test", id_of(*search.test)},
              {"budget_us", search.budget.count()}};
  add(object, "wanted", search.wanted);
  add(object, "signature", search.signature);
  return object;
}

Json object_of(const SearchStep& step) {
  Json object{{"event", "search_step"}};
  add(object, "strategy", step.strategy);
  add(object, "text", step.text);
  return object;
}

Json interventions_of(const TrialEnded& trial) {
  Json list = Json::array();
  for (const Intervention& intervention : trial.plan.interventions)
    list.push_back(text_of(to_string(intervention, trial.plan.interventions)));
  return list;
}

Json object_of(const Conditions& conditions) {
  return json_of<Json>(conditions);
}

// A fixture's run is not a trial of the search.
std::optional<Json> object_of(const TrialEnded& trial) {
  if (trial.purpose == TrialEnded::Purpose::fixture) return std::nullopt;
  Json object{
      {"event", "trial_ended"}, {"purpose", to_string(trial.purpose)}, {"number", trial.number}};
  add(object, "strategy", trial.strategy);
  add(object, "why", trial.why);
  object["interventions"] = interventions_of(trial);
  if (trial.conditions != Conditions{}) object["conditions"] = object_of(trial.conditions);
  object["outcome"] = to_string(trial.result.outcome.kind);
  object["duration_us"] = trial.result.outcome.duration.count();
  add(object, "signature", trial.result.outcome.signature);
  object["hit"] = trial.hit;
  object["fired"] = trial.fired;
  return object;
}

Json object_of(const Count& count) {
  return {{"hits", count.hits}, {"runs", count.runs}};
}

Json object_of(const FailureReproduced& reproduced) {
  const Repro& repro = reproduced.repro;
  Json object{{"event", "failure_reproduced"}, {"signature", repro.signature}};
  add(object, "file", reproduced.file);
  object["failure"] = object_of(repro.failure);
  Json plan = Json::array();
  for (const Intervention& intervention : repro.plan.interventions)
    plan.push_back(text_of(to_string(intervention, repro.plan.interventions)));
  object["interventions"] = plan;
  if (repro.conditions != Conditions{}) object["conditions"] = object_of(repro.conditions);
  object["passes_under_plan"] = repro.passes_under_plan;
  object["with_plan"] = object_of(repro.with_plan);
  object["without_plan"] = object_of(repro.without_plan);
  if (repro.under_control) object["under_control"] = object_of(*repro.under_control);
  add(object, "strategy", repro.strategy);
  object["search_runs"] = repro.search_runs;
  if (repro.slack)
    object["slack_us"] = Json{repro.slack->passes.count(), repro.slack->fails.count()};
  if (repro.plausibility) object["plausibility"] = to_string(*repro.plausibility);
  object["was_seen"] = repro.was_seen;
  object["is_margin"] = repro.is_margin();
  return object;
}

Json object_of(const SearchEnded& search) {
  return {{"event", "search_ended"},           {"elapsed_us", search.elapsed.count()},
          {"interrupted", search.interrupted}, {"runs", search.runs},
          {"reproduced", search.reproduced},   {"margins", search.margins}};
}

// Only displays need these.
std::nullopt_t object_of(const StatusRequested&) {
  return std::nullopt;
}

std::nullopt_t object_of(const Ticked&) {
  return std::nullopt;
}

}  // namespace

void JsonLines::on(const Event& event) {
  const auto object = std::visit(
      [](const auto& happened) -> std::optional<Json> { return object_of(happened); }, event);
  if (object) sink_.write(object->dump() + "\n");
}

}  // namespace unflake
