#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "run/launch.h"
#include "run/thread_stacks.h"
#include "util/files.h"
#include "util/result.h"

namespace unflake {

// Whoever a process is run for.
class Control {
 public:
  virtual ~Control() = default;
  virtual int fd() const = 0;            // readable when there is something to read
  virtual bool read_word_to_stop() = 0;  // reads it; whether it was the request to stop
  // What the leftovers of a finished process write to: with nobody to read, it would kill them.
  virtual void take_over(UniqueFd output) = 0;
};

// The loader's own.
inline constexpr const char* bind_now_variable = "LD_BIND_NOW";

struct ServerStart {
  const Command& command;
  Environment& environment;  // with the agent
  Duration at_most{};        // zero: no matter
  Control& control;
  const CrashWatch& crashes;
  bool fixed_addresses = false;
  bool stopped = false;      // by a word from `control`; there is nothing wrong with the program
  bool ended_early = false;  // without having come to its main
};

// A process of a test's program stopped before its main, with its libraries loaded and its
// static constructors done, which forks a child for each run. The children are children of this
// process, like those that it spawns.
class ForkServer {
 public:
  // An error says why this program cannot be served this way.
  static Result<std::unique_ptr<ForkServer>> start(ServerStart& start);
  ~ForkServer();
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  // The server and the child that it has ready. Waits for it to have one.
  std::vector<pid_t> pids();

  // Whether the program, one of its libraries or the folder has changed.
  bool is_stale();

  // Runs the program in the child that is ready; the variables are as protocol::ServerRequest
  // has them. none: the server is no longer of use.
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
  pid_t stock_ = 0;  // a child that waits for a request; 0: not known yet
  bool opens_libraries_ = false;
  UniqueFd socket_;
  UniqueFd output_;  // what the server itself would write goes here and is lost
  std::vector<std::pair<std::string, FileStamp>> files_;  // those to look at every time are first
  size_t looked_at_every_time_ = 0;
  Clock::time_point all_looked_at_;
};

struct ForkedStart {
  std::optional<pid_t> child;
  std::chrono::steady_clock::time_point at;  // when the child was asked for
  std::string refusal;                       // why there is no server; reported once for each
  bool stopped = false;                      // by a request from whoever it was started for
};

// The fork servers of one supervisor: one for each program, environment and working directory.
class ForkServers {
 public:
  explicit ForkServers(const CrashWatch& crashes) : crashes_(crashes) {}

  // Starts a run as a child of this process, with a server that is made, or made again, as needed.
  // Children of this process that are not its own are named in `others`.
  ForkedStart start(const Launch& launch, int output, int errors, Control& control,
                    std::set<pid_t> others);

  // The servers and their ready children, which are children of this process too.
  std::set<pid_t> pids();

 private:
  struct Entry {
    std::string identity;
    std::vector<std::string> variables;  // of its runs, as protocol::ServerRequest has them
    std::optional<FileStamp> refused;    // this file; another one at the same path may do better
    std::unique_ptr<ForkServer> server;
    uint64_t last_use = 0;
  };

  bool make_room();
  Entry* entry_for(const std::string& identity);
  void start_server(Entry& entry, const Launch& launch, Control& control, ForkedStart& started);

  const CrashWatch& crashes_;
  std::list<Entry> entries_;
  uint64_t uses_ = 0;
};

// A forked child that runs one process at a time and owns every descendant of it: orphans are
// re-parented to the supervisor, so what a test leaves running is found however it was forked, and
// belongs to that test alone. However unflake dies, the supervisor ends the test
// and exits too.
struct Supervisor {
  pid_t pid = 0;
  UniqueFd socket;  // readable when a result waits

  // false, none: the supervisor is gone. Launches wait for their turn; each gets one result.
  bool launch(const std::string& launch);  // an encoded Launch
  bool cancel();  // drops what waits and asks what runs to end; a second time, kills it
  std::optional<ProcessResult> receive();
};

Result<Supervisor> start_supervisor();

// Starts the process in its own session, captures what it writes, ends it at its time-out or
// at a request from `control`, and kills what it leaves running. Must be, with the servers, the
// only one in this process that has children. What can wait until the process runs is done by
// `meanwhile`.
ProcessResult run_process(const Launch& launch, Control& control, ForkServers& servers,
                          const CrashWatch& crashes, const std::function<void()>& meanwhile);

}  // namespace unflake
