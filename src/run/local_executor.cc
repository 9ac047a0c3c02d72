#include "run/local_executor.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "output/output_parsers.h"
#include "output/read_outcome.h"
#include "protocol/preload_protocol.h"
#include "run/launch.h"
#include "run/supervisor.h"
#include "symbols/loadable.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

int to_poll_time(std::optional<Duration> at_most) {
  if (!at_most) return -1;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(*at_most).count();
  return static_cast<int>(std::clamp<int64_t>(ms, 0, 3600 * 1000));
}

// A launch that a supervisor cannot take right away could wait for a result that nobody reads yet.
constexpr size_t largest_queued_launch = 32 * 1024;

ProcessResult supervisor_lost() {
  ProcessResult result;
  result.end = ProcessResult::End::not_started;
  result.code = ESRCH;
  result.error =
      "the process that watches over the test was killed, by the test or for lack of memory";
  return result;
}

// It was for unflake to read, and was not printed by the test.
void forget_progress(CapturedOutput& output) {
  const size_t before = output.head.size() + output.tail.size();
  output.head = without_boost_progress(output.head);
  output.tail = without_boost_progress(output.tail);
  output.total -= before - output.head.size() - output.tail.size();
}

bool ends_with_path(const std::string& path, const std::string& end) {
  return path == end || path.ends_with("/" + end);
}

bool is_at(const SiteName& site, const ThreadAtEnd::Frame& frame) {
  if (site.file.empty()) return site.function == frame.function;
  return site.line == frame.line && ends_with_path(frame.file, site.file);
}

uint32_t site_of(const Trace& trace, const ThreadAtEnd& thread) {
  const auto frame = std::ranges::find_if(thread.frames, &ThreadAtEnd::Frame::is_project);
  if (frame == thread.frames.end()) return no_index;
  const auto site = std::ranges::find_if(trace.sites, [&](const TracedSite& one) {
    return one.name.api == thread.call && is_at(one.name, *frame);
  });
  return site == trace.sites.end() ? no_index : static_cast<uint32_t>(site - trace.sites.begin());
}

// The last one of that number: the system gives it again.
uint32_t thread_of(const Trace& trace, int pid, int tid) {
  for (size_t i = trace.threads.size(); i-- > 0;) {
    const TracedThread& thread = trace.threads[i];
    if (thread.tid == tid && thread.process < trace.processes.size() &&
        trace.processes[thread.process].pid == pid)
      return static_cast<uint32_t>(i);
  }
  return no_index;
}

uint32_t first_thread_of(const Trace& trace, int pid) {
  return thread_of(trace, pid, pid);
}

// Threads that no agent has seen, as those of a shell that waits for the test, are left out.
std::vector<DeadlockedThread> named_deadlock(const Trace& trace, const ProcessResult& process) {
  std::vector<DeadlockedThread> deadlock;
  for (const ProcessResult::Waiting& waiting : process.deadlock) {
    DeadlockedThread stuck{thread_of(trace, waiting.pid, waiting.tid), no_index, waiting.object,
                           std::nullopt};
    if (stuck.thread == no_index) continue;
    const auto stack = std::ranges::find(process.thread_stacks, waiting.tid, &ThreadAtEnd::tid);
    if (stack != process.thread_stacks.end()) stuck.site = site_of(trace, *stack);
    uint32_t other = thread_of(trace, waiting.pid, waiting.for_tid);
    if (other == no_index) other = first_thread_of(trace, waiting.for_tid);
    if (waiting.for_tid != 0 && other != no_index) stuck.held_by = other;
    deadlock.push_back(stuck);
  }
  return deadlock;
}

// A controlled run knows at once that it would hang, and where.
void take_for_hang(const Trace& trace, ProcessResult& process) {
  process.end = ProcessResult::End::timed_out;
  process.thread_stacks.clear();
  for (const DeadlockedThread& stuck : trace.controlled->deadlock) {
    const TracedThread* thread = scheduled_thread(trace, stuck.thread);
    if (thread == nullptr) continue;
    ThreadAtEnd at_end{
        trace.processes[thread->process].pid, thread->tid, thread->name.text, {}, ""};
    if (stuck.site < trace.sites.size()) {
      const SiteName& site = trace.sites[stuck.site].name;
      at_end.frames.push_back({site.function, site.file, site.line, true});
    }
    process.thread_stacks.push_back(std::move(at_end));
  }
}

bool is_deadlocked(const ExperimentResult& result) {
  return result.trace && !deadlock_of(*result.trace).empty();
}

// The signature stays that of the same hang in a run that nobody controls.
void name_deadlock(ExperimentResult& result) {
  if (!result.outcome.failures.empty())
    result.outcome.failures.front().message = deadlock_text(*result.trace);
}

// Tens of thousands of them, the same for every test of a program.
std::string digest_of(const std::vector<protocol::Probe>& probes) {
  const auto* bytes = reinterpret_cast<const char*>(probes.data());
  return std::to_string(fnv1a({bytes, probes.size() * sizeof(protocol::Probe)}));
}

// Looked for when the test is to run: an earlier one, such as a fixture's set-up, may have made it.
std::string what_is_missing(const Test& test) {
  if (!test.obstacle.empty()) return test.obstacle;
  const auto is_missing = [](const std::string& path) {
    return ::access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
  };
  const auto file = std::ranges::find_if(test.required_files, is_missing);
  return file == test.required_files.end() ? "" : "its required file is missing: " + *file;
}

}  // namespace

Result<std::unique_ptr<LocalExecutor>> LocalExecutor::create(const LocalOptions& options,
                                                             Interrupts& interrupts) {
  if (!open_pidfd(::getpid()))
    return internal_error("the system call pidfd_open does not work here", "",
                          "use Linux 5.3 or newer, or allow it in the container's seccomp profile");
  adopt_orphans();  // of a supervisor that a test has killed
  std::unique_ptr<LocalExecutor> executor(new LocalExecutor(options, interrupts));
  for (size_t i = 0; i < options.jobs; ++i)
    if (const auto added = executor->add_slot(false); !added) return added.error();
  if (options.crash_places) executor->find_crash_library();
  return executor;
}

// Without it, runs just report less.
void LocalExecutor::find_crash_library() {
  const auto found = find_library(protocol::crash_file_name);
  if (!found) return;
  if (auto library = PreloadedLibrary::open(*found)) crash_library_.emplace(std::move(*library));
}

LocalExecutor::~LocalExecutor() {
  for (const auto& slot : slots_) slot->supervisor.socket.reset();
  for (const auto& slot : slots_) ::waitpid(slot->supervisor.pid, nullptr, 0);
}

Result<void> LocalExecutor::add_slot(bool for_fixtures) {
  auto supervisor = start_supervisor();
  if (!supervisor) return supervisor.error();
  auto slot = std::make_unique<Slot>();
  slot->number = slots_.size();
  slot->supervisor = std::move(*supervisor);
  slot->for_fixtures = for_fixtures;
  slots_.push_back(std::move(slot));
  return {};
}

LocalExecutor::Slot* LocalExecutor::slot_with(size_t ordered, bool for_fixtures) {
  const auto found = std::ranges::find_if(slots_, [&](const auto& slot) {
    return slot->ordered.size() == ordered && slot->for_fixtures == for_fixtures;
  });
  return found == slots_.end() ? nullptr : found->get();
}

Result<LocalExecutor::Slot*> LocalExecutor::slot_for(const Experiment& experiment) {
  if (Slot* idle = slot_with(0, experiment.keep_leftovers)) return idle;
  if (Slot* busy = experiment.keep_leftovers ? nullptr : slot_with(1, false)) return busy;
  if (const auto added = add_slot(experiment.keep_leftovers); !added) return added.error();
  return slots_.back().get();
}

size_t LocalExecutor::free_slots() const {
  const auto busy =
      std::ranges::count_if(slots_, [](const auto& slot) { return !slot->ordered.empty(); });
  return options_.jobs - std::min(options_.jobs, static_cast<size_t>(busy) + refused_.size());
}

size_t LocalExecutor::queue_room() const {
  return static_cast<size_t>(std::ranges::count_if(
      slots_, [](const auto& slot) { return slot->ordered.size() == 1 && !slot->for_fixtures; }));
}

Launch LocalExecutor::launch_for(const Slot& slot, const Ordered& ordered) {
  const Experiment& experiment = ordered.experiment;
  Launch launch;
  launch.command = experiment.tests.how();
  if (ordered.agent) apply(ordered.agent->loading, launch.command);
  launch.timeout = experiment.timeout;
  launch.grace = options_.grace;
  launch.limits = options_.limits;
  launch.core_dumps = options_.core_dumps;
  launch.keep_leftovers = experiment.keep_leftovers;
  launch.project_code = options_.project_code;
  if (!ordered.agent) launch.crash_library = crash_library_for(launch.command);
  launch.conditions = experiment.conditions;
  if (needs_library(launch.conditions)) launch.world_library = world_library_for(launch.command);
  launch.fixed_addresses = experiment.plan.schedule.has_value();
  if (experiment.plan.schedule) launch.conditions.one_core = true;  // a switch costs a tenth there
  if (ordered.agent) {
    launch.agent_memory = ordered.agent->memory.address();
    launch.quiescence_offset = ordered.agent->memory.quiescence_offset();
    launch.holds = std::ranges::any_of(experiment.plan.interventions, [](const auto& what) {
      return what.action == Intervention::Action::hold;
    });
  }
  if (ordered.agent && is_function_trace(experiment.plan))
    launch.shared_probes = digest_of(ordered.agent->plan.probes);
  launch.slot = slot.number;
  if (ordered.experiment.fork_server && !experiment.keep_leftovers)
    if (const auto library = agents_.library()) launch.fork_server = *library;
  return launch;
}

std::string LocalExecutor::crash_library_for(const Command& command) {
  return crash_library_ && can_preload(command) ? crash_library_->path() : "";
}

// Empty where it cannot be loaded: then the conditions cannot be made.
std::string LocalExecutor::world_library_for(const Command& command) {
  if (!can_preload(command)) return "";
  const auto found =
      world_library_ ? Result<std::string>("") : find_library(protocol::world_file_name);
  if (!world_library_ && found)
    if (auto library = PreloadedLibrary::open(*found)) world_library_.emplace(std::move(*library));
  return world_library_ ? world_library_->path() : "";
}

bool LocalExecutor::can_preload(const Command& command) {
  if (command.argv.empty()) return false;
  const auto [known, is_new] = tells_crashes_.try_emplace({command.argv[0], command.cwd}, false);
  if (is_new) {
    const auto program = program_of(command);
    known->second = program && has_glibc_loader(*program) && check_loadable(*program) &&
                    !has_sanitizer(*program);
  }
  return known->second;
}

void LocalExecutor::refuse(Ticket ticket, const Experiment& experiment, std::string why, int code) {
  ProcessResult process;
  process.end = ProcessResult::End::not_started;
  process.code = code;
  process.error = std::move(why);
  process.started = std::chrono::system_clock::now();
  Finished finished{ticket, {process.started, {}, std::move(process), nullptr}, 0};
  read_outcomes(experiment.tests, finished.result);
  refused_.push_back(std::move(finished));
}

Ticket LocalExecutor::start(const Experiment& experiment) {
  const Ticket ticket = ++last_ticket_;
  for (const auto& test : experiment.tests.all)
    if (std::string missing = what_is_missing(*test); !missing.empty()) {
      refuse(ticket, experiment, std::move(missing), ENOENT);
      return ticket;
    }
  std::unique_ptr<AgentRun> agent;
  if (experiment.plan.agent) {
    auto prepared = agents_.prepare(experiment.tests.last(), experiment.plan);
    if (!prepared) {
      refuse(ticket, experiment, to_string(prepared.error()), EINVAL);
      return ticket;
    }
    agent = std::move(*prepared);
  }
  const auto slot = slot_for(experiment);
  if (!slot) {
    broken_ = slot.error();
    return ticket;
  }
  (*slot)->ordered.push_back({ticket, experiment, false, std::move(agent)});
  send_next(**slot, (*slot)->ordered.size() - 1);
  return ticket;
}

// A supervisor that does not take it has died; the end of its socket shows it in wait().
void LocalExecutor::send_next(Slot& slot, size_t position) {
  Ordered& next = slot.ordered[position];
  if (next.sent) return;
  const std::string launch = encode(launch_for(slot, next));
  if (position > 0 && launch.size() > largest_queued_launch) return;
  next.sent = true;
  slot.supervisor.launch(launch);
  if (slot.cancelled) slot.supervisor.cancel();
}

ProcessResult LocalExecutor::replace_supervisor(Slot& slot) {
  ::waitpid(slot.supervisor.pid, nullptr, 0);
  std::set<pid_t> others;
  for (const auto& other : slots_)
    if (other.get() != &slot) others.insert(other->supervisor.pid);
  kill_all_descendants(others);
  auto supervisor = start_supervisor();
  if (supervisor)
    slot.supervisor = std::move(*supervisor);
  else
    broken_ = supervisor.error();
  for (Ordered& waiting : slot.ordered) waiting.sent = false;
  return supervisor_lost();
}

std::optional<Wakeup> LocalExecutor::ready_interrupt() {
  const auto interrupt = interrupts_.next();
  if (!interrupt) return std::nullopt;
  if (*interrupt == Interrupt::status) return StatusAsked{};
  stop_told_ = true;
  return Stopped{};
}

void LocalExecutor::read_trace(const Ordered& done, ExperimentResult& result) {
  auto trace = std::make_shared<Trace>(
      agents_.read(done.experiment.tests.last(), *done.agent, result.process));
  if (!trace->controlled) trace->deadlock = named_deadlock(*trace, result.process);
  if (trace->controlled && !trace->controlled->deadlock.empty())
    take_for_hang(*trace, result.process);
  if (result.process.thread_stacks.empty())
    result.process.thread_stacks = agents_.stack_at_crash(*trace, result.process);
  result.trace = std::move(trace);
}

Wakeup LocalExecutor::finish(Slot& slot) {
  auto process = slot.supervisor.receive();
  if (!process) process = replace_supervisor(slot);
  const Ordered done = std::move(slot.ordered.front());
  slot.ordered.pop_front();
  Finished finished{done.ticket, {process->started, {}, std::move(*process), nullptr}, 0};
  if (slot.ordered.empty()) {
    slot.cancelled = false;
  } else {
    send_next(slot, 0);
    finished.next = slot.ordered.front().ticket;
  }
  if (done.experiment.fork_server)
    if (const auto library = agents_.library(); !library)
      finished.result.process.no_fork_server = to_string(library.error());
  if (done.agent) read_trace(done, finished.result);
  read_outcomes(done.experiment.tests, finished.result);
  if (is_deadlocked(finished.result)) name_deadlock(finished.result);
  if (logs_progress(done.experiment.tests.last())) forget_progress(finished.result.process.output);
  return finished;
}

Wakeup LocalExecutor::wait(std::optional<Duration> at_most) {
  if (broken_) return Broken{*broken_};
  if (!refused_.empty()) {
    Finished finished = std::move(refused_.front());
    refused_.pop_front();
    return finished;
  }
  if (interrupts_.stop_signal() != 0 && !stop_told_) {  // it came while something was listed
    stop_told_ = true;
    return Stopped{};
  }
  std::vector<pollfd> watched{{interrupts_.fd(), POLLIN, 0}};
  std::vector<Slot*> busy;
  for (const auto& slot : slots_) {
    if (slot->ordered.empty()) continue;
    watched.push_back({slot->supervisor.socket.get(), POLLIN, 0});
    busy.push_back(slot.get());
  }
  if (::poll(watched.data(), watched.size(), to_poll_time(at_most)) <= 0) return Tick{};
  if (auto interrupt = ready_interrupt()) return *interrupt;
  for (size_t i = 0; i < busy.size(); ++i)
    if (watched[i + 1].revents) return finish(*busy[i]);
  return Tick{};
}

void LocalExecutor::cancel_all() {
  for (const auto& slot : slots_) {
    if (slot->ordered.empty()) continue;
    slot->cancelled = true;
    slot->supervisor.cancel();
  }
}

Duration LocalExecutor::elapsed() const {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - made_);
}

ProcessResult LocalExecutor::launch(const Command& command, Duration timeout) {
  Supervisor& supervisor = slots_.front()->supervisor;
  Launch launch;
  launch.command = command;
  launch.timeout = timeout;
  launch.grace = options_.grace;
  launch.limits = {64 << 20, 64 << 10, true};
  ProcessResult cancelled;
  cancelled.end = ProcessResult::End::cancelled;
  if (interrupts_.stop_signal() != 0) return cancelled;
  if (!supervisor.launch(encode(launch))) return supervisor_lost();
  for (;;) {
    pollfd watched[] = {{interrupts_.fd(), POLLIN, 0}, {supervisor.socket.get(), POLLIN, 0}};
    ::poll(watched, 2, -1);
    if (watched[0].revents && interrupts_.next() == Interrupt::stop) supervisor.cancel();
    if (watched[1].revents) return supervisor.receive().value_or(supervisor_lost());
  }
}

}  // namespace unflake
