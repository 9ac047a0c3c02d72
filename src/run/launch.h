#pragma once

#include <sys/types.h>

#include <array>
#include <concepts>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/outcome.h"
#include "model/plan.h"
#include "model/test.h"
#include "symbols/project_code.h"
#include "util/result.h"
#include "util/time.h"

namespace unflake {

// One process to run, as far as it matters to whoever runs it.
struct Launch {
  Command command;
  Duration timeout{};  // zero: none
  Duration grace{};    // between SIGTERM and SIGKILL
  OutputLimits limits;
  bool core_dumps = false;
  bool keep_leftovers = false;
  ProjectCodeRules project_code;  // whose code is the user's own, in stacks
  std::string fork_server;  // the agent's library when it may come from a fork server; else empty
  // What the probes of its plan are, in a word: runs that have the same come from a fork server
  // that has them. Empty: each run puts its own in.
  std::string shared_probes{};
  std::string crash_library;  // what reports where it crashes; empty: nothing does
  std::string world_library;  // what gives it another clock, other random numbers, fewer cores
  Conditions conditions{};
  bool fixed_addresses = false;  // the same in every run
  // Under the agent, where nobody decides who goes on: the memory, and where it has
  // protocol::Quiescence. Empty: nobody looks whether the test can still go on.
  std::string agent_memory;
  uint64_t quiescence_offset = 0;
  bool holds = false;  // by the plan
  size_t slot = 0;     // which of those that run side by side this is
};

std::string encode(const Launch& launch);
Launch decode_launch(std::string_view bytes);

std::string encode(const ProcessResult& result);
ProcessResult decode_process_result(std::string_view bytes);

// Flat bytes between unflake and its own supervisors: two forks of one executable, so integers
// travel in native form.
class WireWriter {
 public:
  void add(std::integral auto value) { append(&value, sizeof value); }
  void add(double value) { append(&value, sizeof value); }
  void add(Duration value) { add(value.count()); }
  void add(std::string_view text) {
    add(text.size());
    append(text.data(), text.size());
  }
  void add(const std::vector<std::string>& texts) {
    add(texts.size());
    for (const std::string& text : texts) add(std::string_view(text));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void append(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }
  std::string bytes_;
};

// Reads what a WireWriter wrote. Past the end, everything is zero or empty, and ok() turns false.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T> T number() {
    T value{};
    if (const auto bytes = take(sizeof value)) std::memcpy(&value, bytes->data(), sizeof value);
    return value;
  }
  Duration duration() { return Duration(number<Duration::rep>()); }
  std::string text() { return std::string(take(number<size_t>()).value_or("")); }
  std::vector<std::string> texts() {
    std::vector<std::string> all;
    for (size_t left = number<size_t>(); left > 0 && ok_; --left) all.push_back(text());
    return all;
  }
  bool ok() const { return ok_; }

 private:
  std::optional<std::string_view> take(size_t size) {
    ok_ = ok_ && size <= rest_.size();
    if (!ok_) return std::nullopt;
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::string_view rest_;
  bool ok_ = true;
};

// One message on a stream socket: its length, then its bytes. false: the other side is gone.
bool send_message(int socket, const std::string& bytes);
std::optional<std::string> receive_message(int socket);

// A supervisor ignores these, and a process that it starts does not.
inline constexpr std::array signals_ignored_by_supervisor{SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
                                                          SIGPIPE, SIGUSR1, SIGUSR2};

// unflake's environment with some changes, in the form that exec wants.
class Environment {
 public:
  explicit Environment(const std::vector<EnvChange>& changes);
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  void apply(const EnvChange& change);
  std::optional<std::string> value(std::string_view name) const;
  char** get() { return pointers_.data(); }  // null-terminated

 private:
  std::deque<std::string> storage_;  // pointers_ point into it
  std::vector<char*> pointers_;
};

struct SpawnFiles {
  int output = -1;
  int errors = -1;
  int passed = -1;  // one more, which gets the number `passed_as`
  int passed_as = -1;
};

// What the child does before it becomes the program, while it shares this process's memory: system
// calls only. Returns 0 or an errno.
using ChildStep = std::function<int()>;

// The system does not move the program's code, stack and heap.
int fix_addresses();

// Starts a command in a session of its own, without input. Returns 0 or an errno.
int spawn(const Command& command, Environment& environment, const SpawnFiles& files,
          const ChildStep& step, pid_t& pid);

// In this process, for those that it will start.
void limit_core_dumps(bool allowed);

// The file that a command's process will execute, without links, as /proc/PID/exe shows it.
Result<std::string> program_of(const Command& command);

}  // namespace unflake
