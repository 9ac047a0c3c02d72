#include "store/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "store/values.h"
#include "util/json.h"
#include "util/result.h"
#include "util/text.h"

namespace unflake {
namespace {

using nlohmann::json;

constexpr const char* format_key = "unflake_spill";
constexpr const char* export_key = "unflake_export";
constexpr const char* end_key = "unflake_export_end";
constexpr int format_version = 1;

// JSON holds UTF-8 only and tests print anything, so other bytes go as {"hex": ...}.
json text_to_json(const std::string& text) {
  if (is_utf8(text)) return text;
  return {{"hex", hexadecimal(text)}};
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  throw json::other_error::create(501, "not a hexadecimal digit", nullptr);
}

std::string text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  const auto& digits = value.at("hex").get_ref<const std::string&>();
  std::string text;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    text += static_cast<char>(digit_of(digits[i]) * 16 + digit_of(digits[i + 1]));
  return text;
}

std::string text_from(const json& line, const char* key) {
  return text_of(line.at(key));
}

json failure_to_json(const Failure& failure) {
  return {{"kind", code_of(failure.kind)},
          {"file", text_to_json(failure.file)},
          {"line", failure.line},
          {"function", text_to_json(failure.function)},
          {"expression", text_to_json(failure.expression)},
          {"message", text_to_json(failure.message)}};
}

Failure failure_from(const json& value) {
  return {.kind = failure_from_code(value.at("kind").get<int64_t>()),
          .file = text_from(value, "file"),
          .line = value.at("line").get<int>(),
          .function = text_from(value, "function"),
          .expression = text_from(value, "expression"),
          .message = text_from(value, "message")};
}

}  // namespace

json to_json(const SessionRecord& session) {
  json line = {{format_key, format_version},
               {"uuid", session.uuid},
               {"started_us", to_microseconds(session.started)},
               {"commit", text_to_json(session.surroundings.commit)},
               {"branch", text_to_json(session.surroundings.branch)},
               {"dirty", session.surroundings.dirty},
               {"machine", text_to_json(session.surroundings.machine)},
               {"unflake_version", text_to_json(session.surroundings.unflake_version)},
               {"command_line", text_to_json(session.command_line)}};
  if (session.seed) line["seed"] = *session.seed;
  if (!session.surroundings.build.empty()) line["build"] = text_to_json(session.surroundings.build);
  return line;
}

json to_json(const RunRecord& run) {
  json line = {{"target", text_to_json(run.test.target)},
               {"name", text_to_json(run.test.name)},
               {"attempt", run.attempt},
               {"started_us", to_microseconds(run.started)},
               {"duration_us", run.duration.count()},
               {"outcome", code_of(run.outcome)},
               {"signature", text_to_json(run.signature)},
               {"plan", text_to_json(run.plan)},
               {"output", text_to_json(cut_middle(run.output, longest_kept_output))}};
  if (!run.purpose.empty()) line["purpose"] = text_to_json(run.purpose);
  if (run.failure) line["failure"] = failure_to_json(*run.failure);
  return line;
}

json to_json(const SuppressedFailure& failure) {
  return {{"suppressed",
           {{"target", text_to_json(failure.test.target)},
            {"name", text_to_json(failure.test.name)},
            {"signature", text_to_json(failure.signature)}}}};
}

json to_json(const LifecycleStep& step) {
  return {{"lifecycle",
           {{"kind", code_of(step.kind)},
            {"target", text_to_json(step.test.target)},
            {"name", text_to_json(step.test.name)},
            {"signature", text_to_json(step.signature)},
            {"at_us", to_microseconds(step.at)},
            {"commit", text_to_json(step.commit)},
            {"reason", text_to_json(step.reason)},
            {"owner", text_to_json(step.owner)},
            {"url", text_to_json(step.url)}}}};
}

json to_json(const CauseRecord& cause) {
  json signatures = json::array();
  for (const std::string& signature : cause.signatures)
    signatures.push_back(text_to_json(signature));
  json value = {{"title", text_to_json(cause.title)}, {"signatures", std::move(signatures)},
                {"state", code_of(cause.state)},      {"opened_us", to_microseconds(cause.opened)},
                {"reopened", cause.reopened},         {"category", text_to_json(cause.category)},
                {"url", text_to_json(cause.url)}};
  if (cause.closed) value["closed_us"] = to_microseconds(*cause.closed);
  return {{"cause", std::move(value)}};
}

json export_header(const std::string& project) {
  return {{export_key, format_version}, {"project", text_to_json(project)}};
}

json export_end(int64_t sessions, int64_t runs) {
  return {{end_key, {{"sessions", sessions}, {"runs", runs}}}};
}

SpillLine kind_of(const json& line) {
  if (!line.is_object()) return SpillLine::run;
  for (const auto& [key, kind] :
       {std::pair(format_key, SpillLine::session), {export_key, SpillLine::header}})
    if (const auto found = line.find(key); found != line.end() && found->is_number_integer())
      return found->get<int64_t>() == format_version ? kind : SpillLine::newer;
  if (line.contains("lifecycle")) return SpillLine::step;
  if (line.contains("cause")) return SpillLine::cause;
  if (line.contains("suppressed")) return SpillLine::suppressed;
  return line.contains(end_key) ? SpillLine::end : SpillLine::run;
}

SuppressedFailure suppressed_from(const json& line) {
  const json& value = line.at("suppressed");
  return {{text_from(value, "target"), text_from(value, "name")}, text_from(value, "signature")};
}

LifecycleStep step_from(const json& line) {
  const json& value = line.at("lifecycle");
  LifecycleStep step;
  step.kind = lifecycle_from_code(value.at("kind").get<int64_t>());
  step.test = {text_from(value, "target"), text_from(value, "name")};
  step.signature = text_from(value, "signature");
  step.at = to_time(value.at("at_us").get<int64_t>());
  step.commit = text_from(value, "commit");
  step.reason = text_from(value, "reason");
  step.owner = text_from(value, "owner");
  step.url = text_from(value, "url");
  return step;
}

CauseRecord cause_from(const json& line) {
  const json& value = line.at("cause");
  CauseRecord cause;
  cause.title = text_from(value, "title");
  for (const json& signature : value.at("signatures"))
    cause.signatures.push_back(text_of(signature));
  cause.state = cause_state_from_code(value.at("state").get<int64_t>());
  cause.opened = to_time(value.at("opened_us").get<int64_t>());
  if (value.contains("closed_us")) cause.closed = to_time(value.at("closed_us").get<int64_t>());
  cause.reopened = value.at("reopened").get<int>();
  cause.category = text_from(value, "category");
  cause.url = text_from(value, "url");
  return cause;
}

SessionRecord session_from(const json& line) {
  SessionRecord session;
  session.uuid = line.at("uuid").get<std::string>();
  session.started = to_time(line.at("started_us").get<int64_t>());
  session.surroundings = {.commit = text_from(line, "commit"),
                          .branch = text_from(line, "branch"),
                          .dirty = line.at("dirty").get<bool>(),
                          .machine = text_from(line, "machine"),
                          .unflake_version = text_from(line, "unflake_version"),
                          .build = line.contains("build") ? text_from(line, "build") : ""};
  session.command_line = text_from(line, "command_line");
  if (line.contains("seed")) session.seed = line.at("seed").get<uint64_t>();
  return session;
}

RunRecord run_from(const json& line) {
  RunRecord run;
  run.test = {text_from(line, "target"), text_from(line, "name")};
  run.attempt = line.at("attempt").get<int>();
  run.started = to_time(line.at("started_us").get<int64_t>());
  run.duration = Duration(line.at("duration_us").get<int64_t>());
  run.outcome = outcome_from_code(line.at("outcome").get<int64_t>());
  run.signature = text_from(line, "signature");
  run.plan = text_from(line, "plan");
  if (line.contains("purpose")) run.purpose = text_from(line, "purpose");
  run.output = text_from(line, "output");
  if (line.contains("failure")) run.failure = failure_from(line.at("failure"));
  return run;
}

Result<void> SpillFile::append(const SessionRecord& session, const RunRecord& run) {
  if (session_ != session.uuid) {
    const Result<void> begun = file_ ? write_line(json_text(to_json(session))) : create(session);
    if (!begun) return begun;
    session_ = session.uuid;
  }
  return write_line(json_text(to_json(run)));
}

Result<void> SpillFile::create(const SessionRecord& session) {
  Error last = internal_error("there is no folder to keep runs in");
  for (const std::string& folder : folders_) {
    std::error_code ignored;  // opening the file tells what is wrong
    std::filesystem::create_directories(folder, ignored);
    path_ = fmt::format("{}/spill-{}.jsonl", folder, session.uuid);
    file_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    const Result<void> written = file_ ? write_line(json_text(to_json(session)))
                                       : internal_error(std::strerror(errno), path_);
    if (written) return {};
    last = written.error();
    if (file_) ::unlink(path_.c_str());
    file_.reset();
  }
  path_.clear();
  return last;
}

// All of the line or nothing: a torn line would spoil the one after it.
Result<void> SpillFile::write_line(std::string line) {
  line += '\n';
  const off_t start = ::lseek(file_.get(), 0, SEEK_END);
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      const Error error = internal_error(std::strerror(errno), path_);
      (void)!::ftruncate(file_.get(), start);
      return error;
    }
  }
  return {};
}

std::vector<std::string> default_spill_folders() {
  std::vector<std::string> folders;
  const std::string state = environment_variable("XDG_STATE_HOME"),
                    home = environment_variable("HOME"), temporary = environment_variable("TMPDIR");
  if (state.starts_with('/')) folders.push_back(state + "/unflake");
  if (home.starts_with('/')) folders.push_back(home + "/.local/state/unflake");
  folders.push_back(temporary.starts_with('/') ? temporary : "/tmp");
  return folders;
}

namespace {

// A history that cannot be written may make each try wait for a lock, so tries are rare.
constexpr std::chrono::seconds retry_interval{30};

// What may wait in memory before it goes to the spill file.
constexpr size_t most_waiting_runs = 10'000;
constexpr size_t most_waiting_bytes = 64 * 1024 * 1024;

// A search makes hundreds of runs in a second, and a server may be far away.
constexpr size_t trials_at_once = 500;
constexpr std::chrono::seconds trials_interval{1};

// Somebody may have put a whole program's sites into one plan.
constexpr size_t longest_plan = 4096;

RunRecord record_of(const TestId& test, const ExperimentResult& result) {
  const Outcome& outcome = result.outcome;
  RunRecord run;
  run.test = test;
  run.started = result.started;
  run.outcome = outcome.kind;
  run.duration = outcome.duration;
  if (!outcome.failed()) return run;
  if (!outcome.failures.empty()) run.failure = outcome.failures.front();
  run.signature = outcome.signature;
  return run;
}

RunRecord record_of(const RunEnded& ended) {
  RunRecord run = record_of(ended.test->id, ended.result);
  run.attempt = ended.attempt;
  run.plan = shorten(to_string(ended.plan, {}), longest_plan);
  if (is_failing(run.outcome))
    run.output = cut_middle(whole_output(ended.result.process), longest_kept_output);
  return run;
}

// Without its output: thousands of trials show the same failure.
RunRecord record_of(const TrialEnded& ended) {
  RunRecord run = record_of(ended.test->id, ended.result);
  run.purpose = to_string(ended.purpose);
  run.plan = shorten(to_string(ended.plan, ended.conditions), longest_plan);
  return run;
}

// Only a whole trace: a search may look at some of the functions. Nor does a run that was cut
// short, by a crash or its time, show all that the test executes.
bool tells_functions(const TrialEnded& ended) {
  return ended.plan.functions && ended.plan.callees && ended.result.trace &&
         ended.result.process.end == ProcessResult::End::exited &&
         !ended.result.trace->processes.empty();
}

TimePoint end_of(const ExperimentResult& result) {
  return result.started + result.outcome.duration;
}

std::string counted_runs(int64_t runs) {
  return fmt::format("{} {}", runs, runs == 1 ? "run" : "runs");
}

SessionRecord record_of(const SessionStarted& started) {
  return {.started = started.at,
          .surroundings = started.surroundings,
          .command_line = started.command_line,
          .seed = started.seed,
          .uuid = make_session_uuid()};
}

}  // namespace

HistoryRecorder::HistoryRecorder(OpenStore open, Tell tell, std::vector<std::string> spill_folders)
    : open_(std::move(open)), tell_(std::move(tell)), spill_(std::move(spill_folders)) {}

HistoryRecorder::~HistoryRecorder() {
  if (trial_ > 0)
    end({});
  else if (!waiting_.empty())
    spill_waiting();
}

void HistoryRecorder::on(const Event& event) {
  if (const auto* started = std::get_if<SessionStarted>(&event)) begin(*started);
  if (const auto* ended = std::get_if<RunEnded>(&event)) take(*ended);
  if (const auto* ended = std::get_if<TrialEnded>(&event)) take(*ended);
  if (const auto* ended = std::get_if<TestEnded>(&event)) take(*ended);
  if (const auto* ended = std::get_if<SessionEnded>(&event)) end(*ended);
}

void HistoryRecorder::begin(const SessionStarted& started) {
  search_.reset();  // trials belong to the session that somebody tells
  record_ = record_of(started);
  session_.reset();
  try_to_write(started.at);
}

void HistoryRecorder::take(const RunEnded& ended) {
  if (ended.result.process.end == ProcessResult::End::cancelled) return;  // says nothing
  waiting_.push_back(record_of(ended));
  waiting_bytes_ += waiting_.back().output.size();
  const TimePoint now = end_of(ended.result);
  if (now >= retry_at_) try_to_write(now);
  spill_when_much_waits();
}

void HistoryRecorder::take(const TrialEnded& ended) {
  if (ended.result.process.end == ProcessResult::End::cancelled) return;
  if (search_) begin(SessionStarted(*search_));
  trials_.push_back(record_of(ended));
  trials_.back().attempt = ++trial_;
  if (tells_functions(ended))
    traces_.push_back(
        {ended.test->id, ended.result.started, executed_functions(*ended.result.trace)});
  const TimePoint now = end_of(ended.result);
  const bool is_time = now >= write_trials_at_ || trials_.size() >= trials_at_once;
  if (is_time && now >= retry_at_) {
    write_trials_at_ = now + trials_interval;
    try_to_write(now);
  }
  spill_when_much_waits();
}

void HistoryRecorder::spill_when_much_waits() {
  if (waiting_.size() + trials_.size() >= most_waiting_runs || waiting_bytes_ >= most_waiting_bytes)
    spill_waiting();
}

// Noted at the session's end, when the runs that they belong to are written.
void HistoryRecorder::take(const TestEnded& ended) {
  if (!ended.gate || fails_build(ended.gate->kind)) return;
  for (const std::string& signature : ended.gate->known)
    suppressed_.emplace_back(ended.test->id, signature);
}

void HistoryRecorder::end(const SessionEnded& ended) {
  try_to_write(retry_at_);
  if (!waiting_.empty() || !trials_.empty()) spill_waiting();
  trial_ = 0;
  if (const Result<void> noted = write_suppressed(); !noted) report_problem(noted.error());
  // Housekeeping: should it fail, the runs are safe and the end of the next session does it.
  if (session_)
    (void)(ended.not_run > 0 ? store_->stop_session(*session_) : store_->end_session(*session_));
  if (spilled_ > 0)
    tell_({Note::Level::warning,
           fmt::format("{} could not be written to the history, and {} kept in {}",
                       counted_runs(spilled_), spilled_ == 1 ? "is" : "are", spill_.path()),
           fmt::format("bring {} in with `unflake history import {}` when the history can be "
                       "written again",
                       spilled_ == 1 ? "it" : "them", shell_quote(spill_.path()))});
  if (lost_ > 0)
    tell_({Note::Level::error, fmt::format("{} could not be written anywhere", counted_runs(lost_)),
           "free some disk space and run the tests again"});
}

void HistoryRecorder::try_to_write(TimePoint now) {
  const Result<void> written = write_waiting();
  if (written) return;
  retry_at_ = now + retry_interval;
  report_problem(written.error());
}

Result<void> HistoryRecorder::write_waiting() {
  if (!store_) {
    const Result<Store*> opened = open_();
    if (!opened) return opened.error();
    store_ = *opened;
  }
  if (!session_) {
    const Result<SessionId> begun = store_->begin_session(record_);
    if (!begun) return begun.error();
    session_ = *begun;
  }
  while (!waiting_.empty()) {
    const Result<void> recorded = store_->record(*session_, waiting_.front());
    if (!recorded) return recorded;
    waiting_bytes_ -= waiting_.front().output.size();
    waiting_.pop_front();
  }
  const Result<void> written = write_trials();
  return written ? write_functions() : written;
}

Result<void> HistoryRecorder::write_trials() {
  if (trials_.empty()) return {};
  const Result<void> recorded = store_->record_all(*session_, trials_);
  if (recorded) trials_.clear();
  return recorded;
}

Result<void> HistoryRecorder::write_functions() {
  if (traces_.empty()) return {};
  const Result<void> recorded = store_->record_functions(*session_, traces_);
  if (recorded) traces_.clear();
  return recorded;
}

Result<void> HistoryRecorder::write_suppressed() {
  for (; session_ && !suppressed_.empty(); suppressed_.pop_front()) {
    const auto& [test, signature] = suppressed_.front();
    const Result<void> noted = store_->suppress(*session_, test, signature);
    if (!noted) return noted;
  }
  return {};
}

void HistoryRecorder::spill_waiting() {
  for (const RunRecord& run : waiting_) ++(spill_.append(record_, run) ? spilled_ : lost_);
  for (const RunRecord& run : trials_) ++(spill_.append(record_, run) ? spilled_ : lost_);
  waiting_.clear();
  trials_.clear();
  traces_.clear();  // not worth a file: one run of the test tells it again
  waiting_bytes_ = 0;
}

void HistoryRecorder::report_problem(const Error& error) {
  if (std::exchange(told_, true)) return;
  Error cause = error;
  cause.next.clear();
  tell_({Note::Level::warning,
         "the history cannot be written, its runs wait in memory: " + to_string(cause),
         error.next});
}

}  // namespace unflake
