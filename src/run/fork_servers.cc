#include "run/fork_servers.h"

#include <algorithm>

#include "protocol/agent_protocol.h"
#include "run/command_program.h"
#include "run/process_tree.h"

namespace unflake {
namespace {

constexpr size_t most_entries = 8;
// A server that is not used for so many runs makes room. With more kinds of runs than servers, in
// turns, making servers would take longer than they save.
constexpr uint64_t runs_until_old = 100;

constexpr const char* preload_variable = "LD_PRELOAD";
constexpr const char* asan_variable = "ASAN_OPTIONS";

std::string with_agent(const std::string& preloads, const std::string& library) {
  if (preloads.find(library) != std::string::npos) return preloads;
  return preloads.empty() ? library : library + ":" + preloads;
}

std::string with_agent_allowed(const std::string& options) {
  constexpr const char* allowed = "verify_asan_link_order=0";
  if (options.find(allowed) != std::string::npos) return options;
  return options.empty() ? allowed : options + ":" + allowed;
}

void load_agent(Environment& environment, const std::string& library) {
  const std::string preloads = environment.value(preload_variable).value_or("");
  const std::string options = environment.value(asan_variable).value_or("");
  environment.apply({preload_variable, with_agent(preloads, library)});
  environment.apply({asan_variable, with_agent_allowed(options)});
  environment.apply({protocol::memory_variable, std::nullopt});
}

std::string as_variable(const char* name, const std::optional<std::string>& value) {
  return value ? std::string(name) + "=" + *value : name;
}

// Where the server's environment has what loads the agent, a run's has this.
std::vector<std::string> variables_of_runs(const Environment& environment) {
  std::vector<std::string> variables;
  for (const char* name : {preload_variable, asan_variable, bind_now_variable})
    variables.push_back(as_variable(name, environment.value(name)));
  return variables;
}

// All that makes two processes differ before their main, but for the memory that they share with
// unflake; what is the same for all runs of this supervisor is left out.
std::string identity_of(const Launch& launch) {
  std::string identity = launch.command.argv[0];
  const auto add = [&](std::string_view text) { identity.append(1, '\0').append(text); };
  add(launch.command.cwd);
  add(launch.core_dumps ? "core dumps" : "");
  add(launch.conditions.one_core ? "one core" : "");
  add(launch.crash_library);
  for (const EnvChange& change : launch.command.env)
    if (change.name != protocol::memory_variable)
      add(as_variable(change.name.c_str(), change.value));
  return identity;
}

std::string memory_of(const Launch& launch) {
  std::optional<std::string> memory;
  for (const EnvChange& change : launch.command.env)
    if (change.name == protocol::memory_variable) memory = change.value;
  return as_variable(protocol::memory_variable, memory);
}

}  // namespace

bool ForkServers::make_room() {
  if (entries_.size() < most_entries) return true;
  const auto oldest = std::ranges::min_element(entries_, {}, &Entry::last_use);
  if (uses_ - oldest->last_use < runs_until_old) return false;
  entries_.erase(oldest);
  return true;
}

ForkServers::Entry* ForkServers::entry_for(const std::string& identity) {
  ++uses_;
  auto found = std::ranges::find(entries_, identity, &Entry::identity);
  if (found == entries_.end()) {
    if (!make_room()) return nullptr;
    found = entries_.insert(entries_.end(), Entry{identity, {}, std::nullopt, nullptr, 0});
  }
  found->last_use = uses_;
  return &*found;
}

std::set<pid_t> ForkServers::pids() {
  std::set<pid_t> all;
  for (const Entry& entry : entries_)
    if (entry.server)
      for (const pid_t pid : entry.server->pids()) all.insert(pid);
  return all;
}

void ForkServers::start_server(Entry& entry, const Launch& launch, Control& control,
                               ForkedStart& started) {
  const auto program = program_of(launch.command);
  const FileStamp stamp = program ? FileStamp::of(*program) : FileStamp{};
  if (entry.refused == stamp) return;
  Environment environment(launch.command.env);
  entry.variables = variables_of_runs(environment);
  crashes_.load(environment, launch.crash_library);
  load_agent(environment, launch.fork_server);
  ServerStart start{launch.command, environment, launch.timeout, control, crashes_};
  auto server = ForkServer::start(start);
  started.stopped = start.stopped;
  if (server) {
    entry.server = std::move(*server);
  } else if (!started.stopped) {
    entry.refused = stamp;
    started.refusal = server.error().what;
  }
}

ForkedStart ForkServers::start(const Launch& launch, int output, int errors, Control& control,
                               std::set<pid_t> others) {
  ForkedStart started;
  Entry* entry = entry_for(identity_of(launch));
  if (entry == nullptr) return started;
  if (entry->server && entry->server->is_stale()) entry->server.reset();
  // A second time, because somebody may have killed the server since its last run.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!entry->server) start_server(*entry, launch, control, started);
    if (!entry->server) return started;
    auto variables = entry->variables;
    variables.push_back(memory_of(launch));
    started.at = std::chrono::steady_clock::now();
    started.child = entry->server->run(launch.command.argv, variables, output, errors);
    if (started.child) return started;
    entry->server.reset();
    others.merge(pids());
    kill_all_descendants(others);  // what may be left of it
  }
  started.refusal = "its server answers no request";
  return started;
}

}  // namespace unflake
