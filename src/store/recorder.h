#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/events.h"
#include "store/spill.h"
#include "store/store.h"

namespace unflake {

// Writes every run of a session into the history. When the history cannot be written, the runs wait
// in memory, are tried again from time to time, and at last go to a spill file: none is dropped.
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

  // Of the session that is being recorded, by which the history knows it.
  const std::string& session_uuid() const { return record_.uuid; }

  // Whether every run that ended is in the database.
  bool all_recorded() const { return waiting_.empty() && spilled_ == 0 && lost_ == 0; }

 private:
  void begin(const SessionStarted& started);
  void take(const RunEnded& ended);
  void take(const TestEnded& ended);
  void end(const SessionEnded& ended);
  void try_to_write(TimePoint now);
  Result<void> write_waiting();
  Result<void> write_suppressed();
  void spill_waiting();
  void report_problem(const Error& error);

  OpenStore open_;
  Store* store_ = nullptr;
  Tell tell_;
  SpillFile spill_;
  SessionRecord record_;
  std::optional<SessionId> session_;
  std::deque<RunRecord> waiting_;
  size_t waiting_bytes_ = 0;
  std::deque<std::pair<TestId, std::string>> suppressed_;  // failures that failed no build
  TimePoint retry_at_;                                     // by the clock of the events
  bool told_ = false;
  int64_t spilled_ = 0;
  int64_t lost_ = 0;
};

}  // namespace unflake
