#include "app/gatekeeper.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/project.h"
#include "lifecycle/quarantine.h"
#include "report/layout.h"
#include "report/terminal.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_notes = 20;  // of a kind
constexpr size_t longest_headline = 200;

Note gone_note(const QuarantineEntry& entry) {
  return {Note::Level::warning,
          fmt::format("{} is in quarantine, and its target has no such test",
                      printable(to_string(entry.test))),
          "unflake quarantine lift " + shell_quote(to_string(entry.test))};
}

Note lift_note(const QuarantineEntry& entry, const CleanRuns& runs) {
  return {Note::Level::info,
          fmt::format("{} may leave the quarantine for {}: {}", printable(to_string(entry.test)),
                      entry.signature, clean_runs_text(runs)),
          fmt::format("unflake quarantine lift {} --signature {}",
                      shell_quote(to_string(entry.test)), entry.signature)};
}

Note without_place_note(const TestId& test, const GateAttempt& attempt) {
  return {Note::Level::warning,
          fmt::format("{} was not put into quarantine: \"{}\" does not say where, so that it would "
                      "cover whatever else happens to this test",
                      printable(to_string(test)), printable(attempt.headline)),
          fmt::format("unflake quarantine add {} --signature {} --force",
                      shell_quote(to_string(test)), attempt.signature)};
}

std::string new_reason(const std::vector<GateAttempt>& attempts, const std::string& signature) {
  int failed = 0, runs = 0;
  for (const GateAttempt& attempt : attempts) {
    runs += attempt.runs;
    if (attempt.signature == signature) failed += attempt.runs;
  }
  return fmt::format("new: {} of {} runs of a build failed so", failed, runs);
}

bool is_alike(const GateAttempt& a, const GateAttempt& b) {
  return a.outcome == b.outcome && a.signature == b.signature && a.sanitizer == b.sanitizer;
}

}  // namespace

GatekeeperOptions gatekeeper_options(const CiSettings& ci, std::string quarantine_file,
                                     TimePoint now) {
  GatekeeperOptions options;
  options.quarantine_file = std::move(quarantine_file);
  options.quarantine_days = ci.quarantine_days.value_or(options.quarantine_days);
  options.warn_days = ci.warn_days.value_or(options.warn_days);
  options.lift.least_runs = ci.lift_runs.value_or(static_cast<int>(options.lift.least_runs));
  options.now = now;
  return options;
}

FlakyResult ci_flaky_result(const std::optional<std::string>& asked, const Config& config) {
  if (asked) return *flaky_result_from(*asked);
  return config.ci.flaky.value_or(config.settings.flaky.value_or(FlakyResult::tell));
}

Gatekeeper::Gatekeeper(Gate gate, GatekeeperOptions options, Store* store, EventStream& listeners)
    : gate_(std::move(gate)),
      options_(std::move(options)),
      store_(store),
      listeners_(listeners),
      owners_(options_.quarantine_new ? load_owners(options_.project_root) : Owners()) {}

void Gatekeeper::on(const Event& event) {
  if (const auto* run = std::get_if<RunEnded>(&event)) take(*run);
  if (const auto* test = std::get_if<TestEnded>(&event)) return end(*test);
  if (const auto* session = std::get_if<SessionEnded>(&event)) return end(*session);
  listeners_.emit(event);
  if (const auto* session = std::get_if<SessionStarted>(&event)) begin(*session);
}

void Gatekeeper::begin(const SessionStarted& session) {
  commit_ = session.surroundings.commit;
  target_ = session.target;
  auto notes = expiry_warnings(gate_.quarantine(), gate_.today(), target_, options_.warn_days);
  if (notes.size() > most_notes) notes.resize(most_notes);
  for (const Note& note : notes) listeners_.emit(note);
  if (!options_.listed) return;
  auto gone = gone_entries(gate_.quarantine(), target_, *options_.listed);
  if (gone.size() > most_notes) gone.resize(most_notes);
  for (const QuarantineEntry& entry : gone) listeners_.emit(gone_note(entry));
}

void Gatekeeper::take(const RunEnded& run) {
  if (was_cancelled(run)) return;
  auto& attempts = attempts_[run.test->id];
  GateAttempt attempt = gate_attempt_of(run.result.outcome);
  if (!attempts.empty() && is_alike(attempts.back(), attempt))
    ++attempts.back().runs;
  else
    attempts.push_back(std::move(attempt));
}

void Gatekeeper::end(TestEnded test) {
  const auto attempts = attempts_.extract(test.test->id);
  const auto& made = attempts ? attempts.mapped() : std::vector<GateAttempt>();
  GateDecision decision = gate_.decide(test.test->id, made);
  decision.past = past_of(test.test->id, decision);
  counts_.add(decision.kind);
  if (decision.kind == GateKind::passed && !gate_.quarantine().of(test.test->id).empty())
    passed_.push_back(test.test->id);
  if (decision.kind == GateKind::flaky_new) collect_new(*test.test, decision, made);
  test.gate = std::move(decision);
  listeners_.emit(test);
}

void Gatekeeper::end(SessionEnded session) {
  quarantine_new(session);
  propose_lifts();
  session.gate = counts_;
  listeners_.emit(session);
}

// The recorder reports a history that cannot answer.
std::string Gatekeeper::past_of(const TestId& test, const GateDecision& decision) {
  if (!store_ || decision.unknown.empty()) return "";
  if (!lifecycle_) {
    auto steps = store_->lifecycle().steps({});
    lifecycle_ = steps ? std::move(*steps) : std::vector<LifecycleStep>();
  }
  for (const std::string& signature : decision.unknown)
    if (std::string past = past_quarantine(*lifecycle_, test, signature); !past.empty())
      return past;
  return "";
}

void Gatekeeper::collect_new(const Test& test, const GateDecision& decision,
                             const std::vector<GateAttempt>& attempts) {
  if (!options_.quarantine_new) return;
  for (const std::string& signature : decision.unknown) {
    if (!is_signature(signature)) continue;
    const auto attempt = std::ranges::find(attempts, signature, &GateAttempt::signature);
    if (attempt->without_place) {
      listeners_.emit(without_place_note(test.id, *attempt));
      continue;
    }
    QuarantineEntry entry;
    entry.test = test.id;
    entry.signature = signature;
    entry.failure = printable(shorten(attempt->headline, longest_headline));
    entry.reason = new_reason(attempts, signature);
    entry.owner = join(owners_.of(repository_path(test.file, options_.project_root)), " ");
    entry.since = gate_.today();
    entry.expires = gate_.today() + std::chrono::days(options_.quarantine_days);
    entry.commit = commit_;
    new_entries_.push_back(std::move(entry));
  }
}

// When much fails at once, what looks flaky may be the same breakage.
void Gatekeeper::quarantine_new(const SessionEnded& session) {
  if (new_entries_.empty()) return;
  if (session.mass_failure || session.interrupted)
    return listeners_.emit(Note{Note::Level::warning,
                                "nothing was put into quarantine: the session proves nothing, "
                                "because it was interrupted or too much failed",
                                ""});
  const auto edited = edit_quarantine(
      options_.quarantine_file, [&](const std::string& text) -> Result<std::string> {
        Result<std::string> edited(text);
        for (const QuarantineEntry& entry : new_entries_)
          if (edited) edited = with_entry(*edited, options_.quarantine_file, entry);
        return edited;
      });
  if (!edited)
    return listeners_.emit(Note{Note::Level::error, to_string(edited.error()), "add them by hand"});
  note_in_history();
  listeners_.emit(
      Note{Note::Level::warning,
           fmt::format("{} put into {} until {}",
                       counted(static_cast<long long>(new_entries_.size()), "new flaky failure"),
                       printable(path_from_here(options_.quarantine_file)),
                       format_day(new_entries_.front().expires)),
           "review the file and commit it"});
}

void Gatekeeper::note_in_history() {
  Result<void> noted;
  for (const QuarantineEntry& entry : new_entries_)
    if (store_ && noted)
      noted = store_->lifecycle().note(
          lifecycle_step(LifecycleStep::Kind::quarantined, entry, options_.now));
  if (!noted)
    listeners_.emit(Note{
        Note::Level::warning,
        "the history does not know what was put into quarantine: " + to_string(noted.error()), ""});
}

void Gatekeeper::propose_lifts() {
  size_t told = 0;
  for (const TestId& test : passed_) {
    for (const QuarantineEntry& entry : gate_.quarantine().of(test)) {
      if (!store_ || told >= most_notes) return;
      const auto past = unflake::past_of(*store_, entry);
      if (!past || !may_be_lifted(past->runs, options_.lift)) continue;
      listeners_.emit(lift_note(entry, past->runs));
      ++told;
    }
  }
}

ExitCode gate_exit_code(const GateCounts& counts, FlakyResult flaky) {
  if (counts.failing() > 0) return ExitCode::test_failed;
  if (counts.flaky_new == 0 || flaky == FlakyResult::pass) return ExitCode::success;
  return flaky == FlakyResult::fail ? ExitCode::test_failed : ExitCode::flaky_only;
}

}  // namespace unflake
