#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/events.h"
#include "store/store.h"
#include "util/files.h"

namespace unflake {

// The lines of spill files and exports. Reading throws nlohmann::json::exception for a line that is
// not what it should be.
nlohmann::json to_json(const SessionRecord& session);
nlohmann::json to_json(const RunRecord& run);
SessionRecord session_from(const nlohmann::json& line);
RunRecord run_from(const nlohmann::json& line);

struct SuppressedFailure {
  TestId test;
  std::string signature;
};

nlohmann::json to_json(const SuppressedFailure& failure);
nlohmann::json to_json(const LifecycleStep& step);
nlohmann::json to_json(const CauseRecord& cause);  // without its id, which is of one store only
SuppressedFailure suppressed_from(const nlohmann::json& line);
LifecycleStep step_from(const nlohmann::json& line);
CauseRecord cause_from(const nlohmann::json& line);

// An export has these two around it, so that one that is not whole can be told from one that is.
nlohmann::json export_header(const std::string& project);
nlohmann::json export_end(int64_t sessions, int64_t runs);

enum class SpillLine { session, run, suppressed, step, cause, header, end, newer };
SpillLine kind_of(const nlohmann::json& line);

// Where runs go that the database does not take: JSON lines, the session first.
class SpillFile {
 public:
  explicit SpillFile(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  // Makes the file at the first call, in the first of the folders that lets it.
  Result<void> append(const SessionRecord& session, const RunRecord& run);
  const std::string& path() const { return path_; }

 private:
  Result<void> create(const SessionRecord& session);
  Result<void> write_line(std::string line);

  std::vector<std::string> folders_;
  std::string path_;
  std::string session_;  // whose runs the last line began or continued
  UniqueFd file_;
};

// $XDG_STATE_HOME/unflake, ~/.local/state/unflake and the folder for temporary files.
std::vector<std::string> default_spill_folders();

// Writes every run of a session into the history, and every trial of a search. When the history
// cannot be written, the runs wait in memory, are tried again from time to time, and at last go to
// a spill file: none is dropped.
class HistoryRecorder : public Consumer {
 public:
  // May emit the note into the stream that this recorder listens to.
  using Tell = std::function<void(const Note&)>;

  // Gives the store, when it can be opened; asked again as long as it cannot.
  using OpenStore = std::function<Result<Store*>()>;

  HistoryRecorder(OpenStore open, Tell tell,
                  std::vector<std::string> spill_folders = default_spill_folders());
  HistoryRecorder(Store& store, Tell tell,
                  std::vector<std::string> spill_folders = default_spill_folders())
      : HistoryRecorder([&store] { return Result<Store*>(&store); }, std::move(tell),
                        std::move(spill_folders)) {}
  ~HistoryRecorder() override;

  void on(const Event& event) override;

  // A search tells no session of its own: its first trial begins this one.
  void record_trials_in(SessionStarted session) { search_ = std::move(session); }

  // Of the session that is being recorded, by which the history knows it.
  const std::string& session_uuid() const { return record_.uuid; }

  // Whether every run that ended is in the database.
  bool all_recorded() const {
    return waiting_.empty() && trials_.empty() && spilled_ == 0 && lost_ == 0;
  }

 private:
  void begin(const SessionStarted& started);
  void take(const RunEnded& ended);
  void take(const TrialEnded& ended);
  void take(const TestEnded& ended);
  void end(const SessionEnded& ended);
  void try_to_write(TimePoint now);
  void spill_when_much_waits();
  Result<void> write_waiting();
  Result<void> write_trials();
  Result<void> write_functions();
  Result<void> write_suppressed();
  void spill_waiting();
  void report_problem(const Error& error);

  OpenStore open_;
  Store* store_ = nullptr;
  Tell tell_;
  SpillFile spill_;
  SessionRecord record_;
  std::optional<SessionId> session_;
  std::optional<SessionStarted> search_;
  std::deque<RunRecord> waiting_;
  std::vector<RunRecord> trials_;        // that wait to be written together
  std::vector<FunctionsRecord> traces_;  // what trials executed, the same way
  int trial_ = 0;
  size_t waiting_bytes_ = 0;
  std::deque<std::pair<TestId, std::string>> suppressed_;  // failures that failed no build
  TimePoint retry_at_, write_trials_at_;                   // by the clock of the events
  bool told_ = false;
  int64_t spilled_ = 0;
  int64_t lost_ = 0;
};

struct ExportCount {
  int64_t sessions = 0, runs = 0, steps = 0, causes = 0;
};

// Takes one line after the other, each with its line feed; an error ends the export.
using TakeLine = std::function<Result<void>(std::string_view line)>;

// Everything that is still kept of the sessions since then, and what people did since then, as
// import_history() reads it.
Result<ExportCount> export_history(Store& store, const std::string& project, TimePoint since,
                                   const TakeLine& take);

struct BadLine {
  int64_t line = 0;
  std::string why;
};

struct ImportCount {
  int64_t sessions = 0;
  int64_t runs = 0;                // read and in the database now
  int64_t steps = 0, causes = 0;   // the same of what people did about them
  int64_t bad_lines = 0;           // left out
  std::vector<BadLine> first_bad;  // the first hundred of them
  bool cut_short = false;          // an export that lacks its end
};

// Told now and then, with the bytes that were read so far.
using ImportProgress = std::function<void(const ImportCount&, int64_t bytes)>;

// Brings the runs of a spill file or an export into the store, in batches. Importing it again
// changes nothing. What came before an error stays.
Result<ImportCount> import_history(Store& store, const std::string& path,
                                   const ImportProgress& progress = {});

}  // namespace unflake
