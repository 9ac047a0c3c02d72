#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "store/store.h"

namespace unflake {

inline TimePoint at_second(int64_t second) {
  return TimePoint(std::chrono::seconds(1'700'000'000 + second));
}

inline SessionRecord session_of_commit(const std::string& commit) {
  SessionRecord session;
  session.started = at_second(0);
  session.surroundings = {commit, "main", false, "machine", "0.1.0"};
  session.command_line = "unflake run suite";
  return session;
}

inline RunRecord passing_run(const std::string& name, int64_t second,
                             Duration duration = std::chrono::milliseconds(5)) {
  RunRecord run;
  run.test = {"suite", name};
  run.started = at_second(second);
  run.duration = duration;
  return run;
}

inline RunRecord failing_run(const std::string& name, int64_t second,
                             const std::string& signature = "00000000000000aa") {
  RunRecord run = passing_run(name, second);
  run.outcome = OutcomeKind::fail;
  run.signature = signature;
  run.failure = Failure{FailureKind::assertion, "a_test.cc", 42, "body", "a == b", "1 vs 2"};
  run.output = "output at " + std::to_string(second);
  return run;
}

// The file that a recorder spilled runs into; empty when there is none.
inline std::string spill_file_in(const std::string& folder) {
  std::error_code missing;
  for (const auto& file : std::filesystem::directory_iterator(folder, missing)) return file.path();
  return "";
}

}  // namespace unflake
