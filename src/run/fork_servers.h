#pragma once

#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "run/crash_watch.h"
#include "run/fork_server.h"

namespace unflake {

struct ForkedStart {
  std::optional<pid_t> child;
  std::chrono::steady_clock::time_point at;  // when the child was asked for
  std::string refusal;                       // why there is no server; told once for each
  bool stopped = false;                      // by a word from the one for whom it was to be started
};

// The fork servers of one supervisor: one for each program, environment and working directory.
class ForkServers {
 public:
  explicit ForkServers(const CrashWatch& crashes) : crashes_(crashes) {}

  // Starts a run as a child of this process, with a server that is made, or made anew, as needed.
  // Children of this process that are none of its own are named in `others`.
  ForkedStart start(const Launch& launch, int output, int errors, Control& control,
                    std::set<pid_t> others);

  // The servers and what they have in stock, which are children of this process too.
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

}  // namespace unflake
