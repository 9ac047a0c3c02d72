#include "run/supervisor.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <set>

#include "protocol/agent_protocol.h"
#include "run/agent_session.h"
#include "run/launch.h"
#include "symbols/loadable.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using protocol::ServerHello;
using protocol::ServerReply;
using protocol::ServerRequest;

// Above what constructors get when they open files, so that these have their usual numbers.
constexpr int socket_number_in_server = 200;
constexpr auto longest_way_to_main = 30s;
constexpr auto longest_fork = 10s;
constexpr timeval longest_send{10, 0};
constexpr auto between_looks_at_libraries = 1s;

Error refuse(std::string reason) {
  return usage_error(std::move(reason));
}

int to_poll_time(Duration left) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<int64_t>(ms, 0, 3600 * 1000));
}

bool is_script(const std::string& program) {
  char magic[SELFMAG] = "";
  std::ifstream(program, std::ios::binary).read(magic, sizeof magic);
  return std::memcmp(magic, ELFMAG, SELFMAG) != 0;
}

Result<std::string> servable_program(const Command& command) {
  auto program = program_of(command);
  if (!program) return refuse(program.error().what);
  if (const auto loadable = check_loadable(*program); !loadable)
    return refuse(loadable.error().what);
  if (is_script(*program)) return refuse("it is a script");
  return program;
}

// The files that the kernel has mapped into the process, each once.
std::set<std::string> mapped_files(pid_t pid) {
  std::set<std::string> files;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);)
    if (const size_t path = line.find('/'); path != std::string::npos)
      files.insert(line.substr(path));
  return files;
}

bool is_child(pid_t pid) {
  siginfo_t unused;
  return pid > 0 &&
         ::waitid(P_PID, static_cast<id_t>(pid), &unused, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void kill_and_reap(pid_t pid) {
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

template <class Strings>
void append_strings(std::string& bytes, const Strings& strings) {
  for (const std::string& text : strings) bytes.append(text.c_str(), text.size() + 1);
}

}  // namespace

// With all functions found by the loader beforehand, no child needs to look for them. Not so for a
// program that loads libraries itself: in them too, a missing function would be an error.
Result<std::unique_ptr<ForkServer>> ForkServer::start(ServerStart& start) {
  if (start.environment.value(bind_now_variable)) return start_once(start);
  start.environment.apply({bind_now_variable, "1"});
  auto bound = start_once(start);
  if (bound ? !(*bound)->opens_libraries_ : !start.ended_early) return bound;
  start.environment.apply({bind_now_variable, std::nullopt});
  return start_once(start);
}

Result<std::unique_ptr<ForkServer>> ForkServer::start_once(ServerStart& start) {
  const auto program = servable_program(start.command);
  if (!program) return program.error();
  int ends[2], pipe[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return refuse(fmt::format("cannot make a socket: {}", std::strerror(errno)));
  std::unique_ptr<ForkServer> server(new ForkServer);
  server->socket_.reset(ends[0]);
  ::setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &longest_send, sizeof longest_send);
  UniqueFd theirs(ends[1]);
  if (::pipe2(pipe, O_CLOEXEC) != 0)
    return refuse(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  server->output_.reset(pipe[0]);
  const UniqueFd output(pipe[1]);

  start.environment.apply(
      {protocol::fork_server_variable, std::to_string(socket_number_in_server)});
  server->remember_files(*program, start.command.cwd);
  const SpawnFiles files{output.get(), output.get(), theirs.get(), socket_number_in_server};
  if (const int code =
          spawn(start.command, start.environment, files,
                start.fixed_addresses ? ChildStep(fix_addresses) : ChildStep(), server->pid_);
      code != 0)
    return refuse(fmt::format("it cannot be started as a server: {}", std::strerror(code)));
  theirs.reset();
  if (const auto hello = server->wait_for_hello(start); !hello) return hello.error();
  if (const auto streams = server->check_streams(output.get()); !streams) return streams.error();
  for (const std::string& file : mapped_files(server->pid_))
    server->files_.push_back({file, FileStamp::of(file)});
  return server;
}

ForkServer::~ForkServer() {
  if (pid_ == 0) return;
  kill_and_reap(pid_);
  if (stock_ == 0) stock_ = receive(false, Duration::zero()).value_or(0);
  if (stock_ != 0) kill_and_reap(stock_);
}

Result<void> ForkServer::wait_for_hello(ServerStart& start) {
  const Duration bound = start.at_most > Duration::zero()
                             ? std::min<Duration>(start.at_most, longest_way_to_main)
                             : longest_way_to_main;
  const auto deadline = Clock::now() + bound;
  pollfd watched[] = {
      {socket_.get(), POLLIN, 0}, {start.control.fd(), POLLIN, 0}, {start.crashes.fd(), POLLIN, 0}};
  while (watched[0].revents == 0) {
    const auto left = std::chrono::duration_cast<Duration>(deadline - Clock::now());
    if (left <= Duration::zero())
      return refuse(fmt::format("it did not reach main within {}", format_duration(bound)));
    ::poll(watched, std::size(watched), to_poll_time(left));
    start.stopped = watched[1].revents != 0 && start.control.read_word_to_stop();
    if (start.stopped) return refuse("it was stopped");
    if (watched[2].revents != 0 && start.crashes.read()) start.crashes.let_die();
  }
  return read_hello(start);
}

Result<void> ForkServer::read_hello(ServerStart& start) {
  ServerHello hello{};
  start.ended_early = ::recv(socket_.get(), &hello, sizeof hello, MSG_WAITALL) != sizeof hello;
  if (start.ended_early) return refuse("it ended before main");
  if (hello.magic != protocol::magic || hello.version != protocol::version)
    return refuse("the agent in it belongs to another unflake");
  hello.refusal[sizeof hello.refusal - 1] = '\0';
  if (hello.refusal[0] != '\0') return refuse(printable(hello.refusal));
  opens_libraries_ = hello.opens_libraries != 0;
  return {};
}

Result<void> ForkServer::check_streams(int output) const {
  int written = 0;
  ::ioctl(output_.get(), FIONREAD, &written);
  if (written > 0)
    return refuse("a static constructor writes output, which only the first run would");
  const std::string streams = fmt::format("/proc/{}/fd/", pid_);
  const FileStamp given = FileStamp::of(fmt::format("/proc/self/fd/{}", output));
  if (FileStamp::of(streams + "0") != FileStamp::of("/dev/null") ||
      FileStamp::of(streams + "1") != given || FileStamp::of(streams + "2") != given)
    return refuse("a static constructor redirects standard input, output or error");
  return {};
}

void ForkServer::remember_files(const std::string& program, const std::string& cwd) {
  files_.push_back({program, FileStamp::of(program)});
  if (!cwd.empty()) files_.push_back({cwd, FileStamp::of(cwd)});
  looked_at_every_time_ = files_.size();
  all_looked_at_ = Clock::now();
}

bool ForkServer::is_stale() {
  size_t looked_at = looked_at_every_time_;
  if (Clock::now() - all_looked_at_ >= between_looks_at_libraries) {
    looked_at = files_.size();
    all_looked_at_ = Clock::now();
  }
  return std::any_of(files_.begin(), files_.begin() + static_cast<ptrdiff_t>(looked_at),
                     [](const auto& file) { return FileStamp::of(file.first) != file.second; });
}

bool ForkServer::send(const std::string& request, int output, int errors) {
  const int files[] = {output, errors};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof files)] = {};
  iovec part{const_cast<char*>(request.data()), request.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof files);
  std::memcpy(CMSG_DATA(header), files, sizeof files);
  ssize_t sent;
  while ((sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  return sent == static_cast<ssize_t>(request.size());
}

std::optional<pid_t> ForkServer::receive(bool begun, Duration at_most) {
  pollfd answers{socket_.get(), POLLIN, 0};
  if (::poll(&answers, 1, to_poll_time(at_most)) <= 0) return std::nullopt;
  ServerReply reply{};
  if (::recv(socket_.get(), &reply, sizeof reply, MSG_WAITALL) != sizeof reply) return std::nullopt;
  if (!is_child(reply.child)) return std::nullopt;
  if (reply.begun == begun) return reply.child;
  // The next ready child may be announced before the last one has begun.
  if (reply.begun == 0) stock_ = reply.child;
  return reply.begun == 0 ? receive(begun, at_most) : std::nullopt;
}

bool ForkServer::has_stock() {
  if (stock_ == 0) stock_ = receive(false, longest_fork).value_or(0);
  return stock_ != 0;
}

std::vector<pid_t> ForkServer::pids() {
  if (has_stock()) return {pid_, stock_};
  return {pid_};
}

std::optional<pid_t> ForkServer::run(const std::vector<std::string>& arguments,
                                     const std::vector<std::string>& variables, int output,
                                     int errors) {
  std::string request(sizeof(ServerRequest), '\0');
  append_strings(request, arguments);
  append_strings(request, variables);
  const ServerRequest head{static_cast<uint32_t>(request.size() - sizeof head),
                           static_cast<uint32_t>(arguments.size()),
                           static_cast<uint32_t>(variables.size())};
  if (head.size > protocol::largest_request || !has_stock()) return std::nullopt;
  std::memcpy(request.data(), &head, sizeof head);
  const pid_t expected = std::exchange(stock_, 0);
  if (!send(request, output, errors)) return std::nullopt;
  const auto begun = receive(true, longest_fork);
  if (begun != expected && begun == stock_) stock_ = 0;  // the expected one was killed
  return begun;
}

namespace {

constexpr size_t most_entries = 8;
// A server that is not used for this many runs makes room. With more kinds of runs than servers, in
// turns, making servers would take longer than they save.
constexpr uint64_t runs_until_old = 100;

std::string as_variable(const char* name, const std::optional<std::string>& value) {
  return value ? std::string(name) + "=" + *value : name;
}

void load_agent(Environment& environment, const AgentLoader& loader) {
  for (const EnvChange& change : loader.loading(variables_of(environment)).environment)
    environment.apply(change);
  environment.apply({protocol::memory_variable, std::nullopt});
}

// In place of what loads the agent in the server's environment, a run's has this.
std::vector<std::string> variables_of_runs(const Environment& environment,
                                           const AgentLoader& loader) {
  std::vector<std::string> variables{
      as_variable(bind_now_variable, environment.value(bind_now_variable))};
  for (const EnvChange& change : loader.loading(variables_of(environment)).environment)
    variables.push_back(as_variable(change.name.c_str(), environment.value(change.name)));
  return variables;
}

// All that makes two processes differ before their main, except the memory that they share with
// unflake; what is the same for all runs of this supervisor is left out.
std::string identity_of(const Launch& launch) {
  std::string identity = launch.command.argv[0];
  const auto add = [&](std::string_view text) { identity.append(1, '\0').append(text); };
  add(launch.command.cwd);
  add(launch.core_dumps ? "core dumps" : "");
  add(launch.conditions.one_core ? "one core" : "");
  add(launch.fixed_addresses ? "fixed addresses" : "");
  add(launch.crash_library);
  add(launch.shared_probes);
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
  const NativeLoader loader(launch.fork_server);
  entry.variables = variables_of_runs(environment, loader);
  crashes_.load(environment, launch.crash_library);
  load_agent(environment, loader);
  if (!launch.shared_probes.empty()) {
    environment.apply({protocol::probes_variable, launch.agent_memory});
    entry.variables.push_back(as_variable(protocol::probes_variable, std::nullopt));
  }
  ServerStart start{launch.command, environment, launch.timeout,
                    control,        crashes_,    launch.fixed_addresses};
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
  started.refusal = "its server does not answer";
  return started;
}

}  // namespace unflake
