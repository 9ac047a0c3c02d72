#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/outcome.h"
#include "protocol/agent_protocol.h"
#include "run/launch.h"
#include "run/thread_stacks.h"
#include "util/files.h"
#include "util/result.h"

namespace unflake {

// The names in a folder that are numbers, as processes, threads and descriptors are in /proc.
std::vector<int> numbered_entries(const std::string& folder);

// This process adopts every descendant whose parent dies, however it was forked.
bool adopt_orphans();

// Everything below this process, parents before their children, except these children and what is
// below them.
std::vector<pid_t> all_descendants(const std::set<pid_t>& spared);

// The same by the kernel's own lists, which is fast, but may miss some while processes come and go.
std::vector<pid_t> listed_descendants(const std::set<pid_t>& spared);

// Whether this process has a child, dead or alive, except these.
bool has_descendants(const std::set<pid_t>& spared);

// Kills and reaps every descendant of this process except these children and what is below them.
// Returns how many it killed.
int kill_all_descendants(const std::set<pid_t>& spared = {});

// Whether a test can still go on, seen from outside: the kernel knows of every thread what it waits
// for, whether the agent has seen the call or not, and the calls that the test makes cost nothing
// for it.
//
// When all threads of all its processes wait for each other, a thread that the plan holds is
// released, the one that began last; when none is held, the test is in a deadlock. Whatever the
// world, a deadline or a signal could end is no such wait, nor is a call that is not known.
class QuiescenceWatch {
 public:
  // Children of this process that are none of the test's.
  using Others = std::function<std::set<pid_t>()>;
  QuiescenceWatch(const Launch& launch, Others others);

  // Until the next look, at most; -1: there is none.
  int milliseconds_to_look() const;

  // Whether the test is in a deadlock.
  bool look();

  // Who waits for whom in it, as far as the stacks tell.
  std::vector<ProcessResult::Waiting> waiting(const std::vector<ThreadAtEnd>& stacks) const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Waiter {
    pid_t pid = 0;
    pid_t tid = 0;
    long call = 0;
    std::array<uint64_t, 6> arguments{};
    uint64_t switches = 0;  // to other threads: the same as before: it has not run since
    bool is_held = false;
    bool operator==(const Waiter&) const = default;
  };
  using Waiters = std::vector<Waiter>;

  void read_held();
  const protocol::HeldThread* held_as(const Waiter& waiter) const;
  std::optional<Waiters> all_waiting(const std::vector<pid_t>& processes) const;
  bool add_waiters(pid_t pid, Waiters& all) const;
  bool is_quiet(bool is_any_held);
  void release_last_held();
  void plan_next_look(bool is_any_held);

  const Others others_;
  const bool holds_;
  const uint64_t offset_;
  UniqueFd memory_;
  protocol::Quiescence told_{};  // by the agents
  std::optional<Waiters> seen_;
  int same_looks_ = 0;
  std::chrono::milliseconds pause_;
  Clock::time_point next_look_;        // whether somebody is held
  Clock::time_point next_whole_look_;  // at all threads
};

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
