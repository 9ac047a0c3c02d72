#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/control.h"
#include "run/crash_watch.h"
#include "run/launch.h"
#include "run/spawn.h"
#include "util/file_stamp.h"
#include "util/result.h"
#include "util/unique_fd.h"

namespace unflake {

// The loader's own.
inline constexpr const char* bind_now_variable = "LD_BIND_NOW";

struct ServerStart {
  const Command& command;
  Environment& environment;  // with the agent
  Duration at_most{};        // zero: no matter
  Control& control;
  const CrashWatch& crashes;
  bool stopped = false;      // by a word from `control`; there is nothing wrong with the program
  bool ended_early = false;  // without having come to its main
};

// A process of a test's program that stands before its main, with its libraries loaded and its
// static constructors done, and forks a child for each run. The children are children of this
// process, like those that it spawns.
class ForkServer {
 public:
  // An error says why this program cannot be served so.
  static Result<std::unique_ptr<ForkServer>> start(ServerStart& start);
  ~ForkServer();
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  // The server and the child that it has in stock. Waits for it to have one.
  std::vector<pid_t> pids();

  // Whether the program, a library of it or the folder is another one now.
  bool is_stale();

  // Runs the program in the child that is in stock; the variables are as protocol::ServerRequest
  // has them. none: the server is of no use any more.
  std::optional<pid_t> run(const std::vector<std::string>& arguments,
                           const std::vector<std::string>& variables, int output, int errors);

 private:
  using Clock = std::chrono::steady_clock;

  ForkServer() = default;
  static Result<std::unique_ptr<ForkServer>> start_once(ServerStart& start);
  Result<void> wait_for_hello(ServerStart& start);
  Result<void> read_hello(ServerStart& start);
  Result<void> check_streams(int output) const;
  void remember_files(const std::string& program, const std::string& cwd);
  bool send(const std::string& request, int output, int errors);
  std::optional<pid_t> receive(bool begun, Duration at_most);
  bool has_stock();

  pid_t pid_ = 0;
  pid_t stock_ = 0;  // a child that waits for a request; 0: not told yet
  bool opens_libraries_ = false;
  UniqueFd socket_;
  UniqueFd output_;  // what the server itself would write goes here and nowhere
  std::vector<std::pair<std::string, FileStamp>> files_;  // those to look at every time are first
  size_t looked_at_every_time_ = 0;
  Clock::time_point all_looked_at_;
};

}  // namespace unflake
