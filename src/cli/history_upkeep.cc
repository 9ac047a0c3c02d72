#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "app/options.h"
#include "cli/commands.h"
#include "report/layout.h"
#include "store/recorder.h"
#include "store/values.h"
#include "util/files.h"
#include "util/text.h"
#include "util/time.h"

namespace unflake {
namespace {

constexpr std::chrono::milliseconds pause{200};

// "1234567 runs, 41 %" on the last line of a terminal, a few times a second; nothing elsewhere.
class TransferProgress {
 public:
  explicit TransferProgress(const char* verb);
  ~TransferProgress();
  TransferProgress(const TransferProgress&) = delete;
  TransferProgress& operator=(const TransferProgress&) = delete;

  // `all`: how much there is, when that is known.
  void show(int64_t runs, int64_t done = 0, int64_t all = 0);

 private:
  const char* verb_;
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

TransferProgress::TransferProgress(const char* verb)
    : verb_(verb),
      enabled_(::isatty(STDERR_FILENO) == 1),
      next_(std::chrono::steady_clock::now() + pause) {}

TransferProgress::~TransferProgress() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

void TransferProgress::show(int64_t runs, int64_t done, int64_t all) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + pause;
  shown_ = true;
  fmt::print(stderr, "\r\x1b[K{} {} runs", verb_, runs);
  if (all > 0) fmt::print(stderr, ", {} %", std::min<int64_t>(100, done * 100 / all));
  std::fflush(stderr);
}

constexpr const char* history_prune_help =
    R"(Forgets single runs that are older than is worth keeping: first trials, the runs that `reproduce`,
`balance`, `inject` and other searches made, and which functions tests executed, except for the newest trace
of each; then plain runs and outputs. The sums over all plain runs stay: rates, durations, signatures, and
which builds were hit by flaky failures.

  unflake history prune              trials, and what [history] of the configuration says
  unflake history prune --keep-passing-runs 90d --keep-failing-runs 365d --keep-outputs 30d
  unflake history prune --dry-run    only count

No other command forgets anything: run this one at night.)";

constexpr Duration default_trials = std::chrono::days(30);
constexpr int default_most_trials = 20'000;

struct PruneCommand {
  Retention retention;
  bool dry_run = false;
};

void inherit(Retention& retention, const Retention& configured) {
  if (!retention.trials) retention.trials = configured.trials.value_or(default_trials);
  if (!retention.most_trials)
    retention.most_trials = configured.most_trials.value_or(default_most_trials);
  if (!retention.passing_runs) retention.passing_runs = configured.passing_runs;
  if (!retention.failing_runs) retention.failing_runs = configured.failing_runs;
  if (!retention.outputs) retention.outputs = configured.outputs;
}

struct PruneCount {
  RetentionCount going, staying;
};

// How many of a test's trials go is known when all of them are.
class TrialCounts {
 public:
  TrialCounts(const Retention& retention, TimePoint now) : bounds_(trial_bounds(retention, now)) {}

  void add(const RunRecord& trial) {
    starts_[trial.test].push_back(to_microseconds(trial.started));
  }

  void count(PruneCount& sums) {
    for (auto& [test, starts] : starts_) {
      std::ranges::sort(starts, std::greater());
      const bool too_many = static_cast<int64_t>(starts.size()) > bounds_.newer;
      const int64_t before = std::max(
          bounds_.before_us, too_many ? starts[static_cast<size_t>(bounds_.newer)] : INT64_MIN);
      for (const int64_t start : starts) ++(start < before ? sums.going : sums.staying).trials;
    }
  }

 private:
  TrialBounds bounds_;
  std::map<TestId, std::vector<int64_t>> starts_;
};

// Reads every run: a store knows what it has forgotten only when it has.
Result<PruneCount> look(Store& store, const Retention& retention, TimePoint now) {
  PruneCount count;
  TrialCounts trials(retention, now);
  TransferProgress progress("looked at");
  int64_t runs = 0;
  const auto is_old = [&](const RunRecord& run, const std::optional<Duration>& kept) {
    return kept && run.started < now - *kept;
  };
  const Store::Visitor visitor{
      .session = [](const SessionRecord&) { return Result<void>(); },
      .run =
          [&](const RunRecord& run) {
            progress.show(++runs);
            if (!is_plain(run)) {
              trials.add(run);
              return Result<void>();
            }
            const auto& kept =
                is_failing(run.outcome) ? retention.failing_runs : retention.passing_runs;
            ++(is_old(run, kept) ? count.going : count.staying).runs;
            if (!run.output.empty())
              ++(is_old(run, retention.outputs) ? count.going : count.staying).outputs;
            return Result<void>();
          },
      .suppression = {}};
  const auto visited = store.visit(visitor);
  if (!visited) return visited.error();
  trials.count(count);
  return count;
}

std::string kept_text(const char* what, const std::optional<Duration>& kept) {
  return kept ? fmt::format("{} of the last {:.4g} days", what,
                            static_cast<double>(kept->count()) / 86400e6)
              : fmt::format("all {}", what);
}

std::string policy_text(const Retention& retention) {
  return fmt::format(
      "kept: {} and no more than {} of a test, {}, {}, {}", kept_text("trials", retention.trials),
      *retention.most_trials, kept_text("passing runs", retention.passing_runs),
      kept_text("failing runs", retention.failing_runs), kept_text("outputs", retention.outputs));
}

std::string text_of(const RetentionCount& count) {
  std::string text = counted(count.trials, "trial");
  if (count.traces > 0) text += ", " + counted(count.traces, "trace") + " of functions";
  return fmt::format("{}, {} and {}", text, counted(count.runs, "run"),
                     counted(count.outputs, "output"));
}

Result<void> prune(Page& page, const PruneCommand& command, const StoreAddress& address) {
  const Retention& retention = command.retention;
  const auto now = std::chrono::system_clock::now();
  auto store = command.dry_run ? open_store_to_read(address) : open_store(address);
  if (!store) return store.error();
  if (command.dry_run) {
    const auto count = look(**store, retention, now);
    if (!count) return count.error();
    page.print("{} would go, {} would stay\n", text_of(count->going), text_of(count->staying));
  } else {
    const auto gone = (*store)->forget(retention, now);
    if (!gone) return gone.error();
    page.print("{} went\n", text_of(*gone));
  }
  page.print("{}; the sums over all plain runs stay\n", policy_text(retention));
  return {};
}

}  // namespace

int history_prune_command(const Words& words) {
  PruneCommand command;
  CommandLine line("history prune", history_prune_help);
  line.option("--keep-trials", command.retention.trials, "forget trials that are older [30d]");
  line.option("--most-trials", command.retention.most_trials,
              "and all but this many of the newest of each test [20000]")
      .between(0, 1'000'000);
  line.option("--keep-passing-runs", command.retention.passing_runs,
              "forget passing and skipped runs that are older");
  line.option("--keep-failing-runs", command.retention.failing_runs,
              "forget failing runs that are older");
  line.option("--keep-outputs", command.retention.outputs,
              "forget the output of failing runs that are older");
  line.flag("--dry-run", command.dry_run, "only count what would go");
  return act_on_history(line, words, [&](const auto& known, const auto& address) -> Result<int> {
    inherit(command.retention, known.config.history.retention);
    Page page;
    const auto pruned = prune(page, command, address);
    const int written = page.write_out();
    if (!pruned) return pruned.error();
    return written;
  });
}

namespace {

constexpr const char* export_help =
    R"(Writes every session, run and trial that is still kept, and what people did about flaky tests, as JSON lines.

  unflake history export runs.jsonl
  unflake history export - | zstd > runs.jsonl.zst
  unflake history export - | unflake history import - --store postgres://ci@db/flaky

Others may go on recording meanwhile. docs/formats.md describes the lines.)";

constexpr const char* import_help =
    R"(Takes in what `unflake history export` wrote, or runs that could not be recorded at the time.

  unflake history import runs.jsonl
  unflake history import - --store postgres://ci@db/flaky < runs.jsonl

Importing a file again changes nothing. Lines that cannot be read are named and left out.)";

struct TransferCommand {
  std::string file = "-";
  std::string since;
};

// Gathers lines into large writes. A file takes its name only when it is whole.
class LineFile {
 public:
  Result<void> open(const std::string& path) {
    if (path == "-") return {};
    path_ = path;
    if (auto ready = prepare_output_file(path); !ready) return ready;
    partial_ = fmt::format("{}.{}.partial", path, ::getpid());
    file_.reset(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file_) return failed(partial_);
    return {};
  }

  ~LineFile() {
    if (!partial_.empty()) ::unlink(partial_.c_str());
  }

  Result<void> add(std::string_view line) {
    buffer_ += line;
    return buffer_.size() < largest_buffer ? Result<void>() : flush();
  }

  Result<void> finish() {
    if (auto written = flush(); !written || partial_.empty()) return written;
    if (::rename(partial_.c_str(), path_.c_str()) != 0) return failed(path_);
    partial_.clear();
    return {};
  }

  bool reader_is_gone() const { return reader_is_gone_; }

 private:
  static constexpr size_t largest_buffer = 1024 * 1024;

  Result<void> flush() {
    const int fd = file_ ? file_.get() : STDOUT_FILENO;
    for (std::string_view rest = buffer_; !rest.empty();) {
      const ssize_t written = ::write(fd, rest.data(), rest.size());
      if (written >= 0)
        rest.remove_prefix(static_cast<size_t>(written));
      else if (errno != EINTR)
        return failed(path_.empty() ? "standard output" : path_);
    }
    buffer_.clear();
    return {};
  }

  Error failed(const std::string& where) {
    reader_is_gone_ = errno == EPIPE;
    return internal_error(fmt::format("cannot write the export: {}", std::strerror(errno)), where,
                          "make room, or choose another file");
  }

  std::string path_, partial_, buffer_;
  UniqueFd file_;
  bool reader_is_gone_ = false;
};

int64_t size_of(const std::string& path) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  return failed ? 0 : static_cast<int64_t>(size);
}

void tell_export(const ExportCount& count, const TransferCommand& command,
                 const std::optional<TimePoint>& forgotten_before) {
  fmt::print(stderr, "{} of {}, {} and {} are in {}\n", counted(count.runs, "run"),
             counted(count.sessions, "session"), counted(count.steps, "lifecycle step"),
             counted(count.causes, "cause"),
             command.file == "-" ? "the export" : printable(command.file));
  if (forgotten_before)
    fmt::print(
        stderr,
        "runs from before {} UTC may have been pruned; their sums stay in this history only\n",
        timestamp_in_minutes(*forgotten_before));
}

Result<int> export_to_file(const TransferCommand& command, const StoreAddress& address) {
  TimePoint since = TimePoint::min();
  if (!command.since.empty()) {
    const auto time = parse_time(command.since);
    if (!time) return time.error();
    since = *time;
  }
  auto store = open_store_to_read(address);
  if (!store) return store.error();
  LineFile file;
  if (auto opened = file.open(command.file); !opened) return opened.error();
  TransferProgress progress("exported");
  int64_t lines = 0;
  const auto exported = export_history(**store, address.project, since, [&](std::string_view line) {
    progress.show(++lines);
    return file.add(line);
  });
  const auto finished = exported ? file.finish() : exported.error();
  if (file.reader_is_gone()) return static_cast<int>(ExitCode::success);
  if (!finished) return finished.error();
  const auto forgotten = (*store)->forgotten_before();
  if (!forgotten) return forgotten.error();
  tell_export(*exported, command, *forgotten);
  return static_cast<int>(ExitCode::success);
}

Result<int> import_from_file(const TransferCommand& command, const StoreAddress& address) {
  auto store = open_store(address);
  if (!store) return store.error();
  const std::string path = command.file == "-" ? "/dev/stdin" : command.file;
  const int64_t size = command.file == "-" ? 0 : size_of(path);
  Result<ImportCount> imported = ImportCount{};
  {
    TransferProgress progress("imported");
    imported = import_history(**store, path, [&](const ImportCount& count, int64_t bytes) {
      progress.show(count.runs, bytes, size);
    });
  }
  if (!imported) return imported.error();
  Page page;
  page.print("{} runs of {} are in the history\n", imported->runs, printable(command.file));
  if (imported->steps + imported->causes > 0)
    page.print("so are {} and {}\n", counted(imported->steps, "lifecycle step"),
               counted(imported->causes, "cause"));
  for (const BadLine& bad : imported->first_bad)
    fmt::print(stderr, "unflake: line {} was left out: {}\n", bad.line, printable(bad.why));
  if (const int written = page.write_out(); written != 0) return written;
  if (imported->bad_lines > 0)
    return internal_error(fmt::format("{} lines could not be read", imported->bad_lines),
                          command.file);
  if (imported->cut_short)
    return internal_error("the export ends before its end line", command.file,
                          "export again, or import what is missing later: nothing counts twice");
  return static_cast<int>(ExitCode::success);
}

int transfer(const Words& words, const char* name, const char* help,
             Result<int> (*run)(const TransferCommand&, const StoreAddress&)) {
  TransferCommand command;
  CommandLine line(std::string("history ") + name, help);
  const bool exports = run == export_to_file;
  const Option file =
      line.option("file", command.file, "a file, or - for the standard stream").takes("FILE");
  if (!exports) file.required();
  if (exports)
    line.option("--since", command.since, "only what began since then, as 2026-03-01 (UTC)")
        .takes("TIME");
  return act_on_history(line, words, [&](const ConfiguredProject&, const StoreAddress& address) {
    return run(command, address);
  });
}

}  // namespace

int history_export_command(const Words& words) {
  return transfer(words, "export", export_help, export_to_file);
}

int history_import_command(const Words& words) {
  return transfer(words, "import", import_help, import_from_file);
}

}  // namespace unflake
