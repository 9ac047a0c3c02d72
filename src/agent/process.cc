#include "agent/process.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/hooks/hooks.h"
#include "agent/probes/probes.h"
#include "agent/raw.h"
#include "agent/real.h"
#include "agent/record/images.h"
#include "agent/record/memory.h"
#include "agent/record/sites.h"
#include "agent/record/threads.h"
#include "agent/record/visit.h"
#include "agent/schedule/turns.h"
#include "agent/schedule/virtual_clock.h"
#include "agent/server/fork_server.h"

namespace unflake::agent {
namespace {

using namespace protocol;

uint32_t number = none;
Shared<uint64_t> unknown_threads;
Shared<uint32_t> late_threads;
Shared<uint32_t> delayed_threads;
Shared<uint32_t> changes;  // of the two above; a futex
Shared<uint64_t> last_delay_end;
Shared<uint64_t> delayed_until;  // at the latest, by the delays that have begun

void tell_change() {
  changes.add(1);
  raw_syscall(__NR_futex, as_word(changes.raw()), FUTEX_WAKE_PRIVATE, 1);
}

void wait_for_change(uint32_t seen, uint64_t at_most_ns) {
  const timespec time = to_timespec(static_cast<int64_t>(at_most_ns));
  raw_syscall(__NR_futex, as_word(changes.raw()), FUTEX_WAIT_PRIVATE, seen, as_word(&time));
}

// This thread cannot wait for itself.
uint32_t others(const Shared<uint32_t>& threads, bool including_this) {
  const uint32_t count = threads.load();
  return including_this && count > 0 ? count - 1 : count;
}

uint64_t later(uint64_t one, uint64_t other) {
  return one > other ? one : other;
}

}  // namespace

void meet_process() {
  const uint32_t parent = number;
  late_threads.store(0);
  delayed_threads.store(0);
  delayed_until.store(0);
  const Tables& out = memory();
  number = out.processes.used->add(1);
  if (number >= out.processes.count) {
    out.dropped[dropped_processes].add(1);
    number = none;
    return;
  }
  Process& process = out.processes[number];
  process.state.store(1);
  process.pid = static_cast<uint32_t>(raw_syscall(__NR_getpid));
  process.parent = parent;
  const LoadedImage* executable = executable_image();
  process.executable = executable != nullptr ? executable->number : none;
  process.started_ns = traced_now();
  process.agent = AgentKind::native;
  raw_syscall(__NR_prctl, PR_GET_NAME, as_word(process.name));
  process.state.store(2);
}

uint32_t process_number() {
  return number;
}

void process_degraded(Degraded what) {
  if (number == none) return;
  __atomic_fetch_or(memory().processes[number].degraded.raw(), what, __ATOMIC_RELAXED);
}

uint64_t next_unknown_thread() {
  return unknown_threads.add(1);
}

void late_thread_began() {
  late_threads.add(1);
}

void late_thread_ended() {
  late_threads.add(-1u);
  tell_change();
}

void delay_began(uint64_t at_most_ns) {
  delayed_threads.add(1);
  const uint64_t until = now_ns() + at_most_ns;
  for (uint64_t old = delayed_until.load(); old < until; old = delayed_until.load())
    if (delayed_until.change(old, until)) break;
}

void delay_ended() {
  last_delay_end.store(now_ns());
  delayed_threads.add(-1u);
  tell_change();
}

void end_process() {
  if (attached() && number != none) memory().processes[number].ended_ns.store(traced_now());
}

// Only delays that have begun by now count: a thread that is made late again and again would hold
// the exit forever.
void hold_exit() {
  if (!attached() || (plan().flags & protocol::hold_exit) == 0) return;
  if (is_controlled()) return wait_for_late_threads(static_cast<int64_t>(plan().hold_exit_ns));
  const uint64_t began = now_ns();
  const uint64_t latest = later(began, delayed_until.load());
  while (others(late_threads, this_thread.was_late) > 0) {
    const uint32_t seen = changes.load();
    const uint64_t now = now_ns();
    const uint64_t since = delayed_threads.load() > 0 ? now : later(began, last_delay_end.load());
    const uint64_t end = (since < latest ? since : latest) + plan().hold_exit_ns;
    if (now >= end) return;
    wait_for_change(seen, end - now);
  }
}

namespace {

constexpr char preload_name[] = "LD_PRELOAD=";

char library[preload_size / 2];
char memory_entry[256];  // "UNFLAKE_AGENT=..."

bool starts_with(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool is_memory(const char* entry) {
  const size_t size = strlen(protocol::memory_variable);
  return strncmp(entry, protocol::memory_variable, size) == 0 && entry[size] == '=';
}

bool has_both(char* const* environment) {
  bool preload = false, named = false;
  for (; *environment != nullptr; ++environment) {
    preload |= starts_with(*environment, preload_name) && strstr(*environment, library) != nullptr;
    named |= strcmp(*environment, memory_entry) == 0;
  }
  return preload && named;
}

// The child's own libraries stay after the agent, as long as there is room for them.
void write_preload(char* out, const char* own) {
  strcpy(out, preload_name);
  strcat(out, library);
  if (own == nullptr || *own == '\0' || strstr(own, library) != nullptr) return;
  if (strlen(out) + strlen(own) + 2 > preload_size) return;
  strcat(out, ":");
  strcat(out, own);
}

}  // namespace

void remember_inheritance(const char* memory_name) {
  Dl_info info{};
  if (dladdr(library, &info) == 0 || info.dli_fname == nullptr) return;
  if (strlen(info.dli_fname) >= sizeof library || strlen(memory_name) + 32 > sizeof memory_entry)
    return;
  strcpy(library, info.dli_fname);
  strcpy(memory_entry, protocol::memory_variable);
  strcat(memory_entry, "=");
  strcat(memory_entry, memory_name);
}

size_t followed_size(char* const* environment) {
  size_t count = 0;
  while (environment != nullptr && environment[count] != nullptr) ++count;
  return count + 3;
}

char* const* follow_environment(char* const* environment, char** room, char* preload) {
  if (!attached() || library[0] == '\0') return environment;
  if (environment != nullptr && has_both(environment)) return environment;
  const char* own = nullptr;
  size_t count = 0;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    if (starts_with(*environment, preload_name))
      own = *environment + strlen(preload_name);
    else if (!is_memory(*environment))
      room[count++] = *environment;
  }
  write_preload(preload, own);
  room[count++] = preload;
  room[count++] = memory_entry;
  room[count] = nullptr;
  return room;
}

namespace {

bool started = false;

// Other libraries' constructors may run before this one; then their first hooked call has started
// the agent.
__attribute__((constructor)) void start_at_load() {
  start();
}

using Main = int (*)(int, char**, char**);
Main real_main;

int call_main_and_visit_exit(int argc, char** argv, char** environment) {
  const int status = real_main(argc, argv, environment);
  visit_exit();
  turn_before_exit();
  return status;
}

bool exit_matters() {
  return is_controlled() || plans_exit();
}

int serve_and_call_main(int, char**, char**) {
  const Arguments arguments = serve();
  return call_main_somewhere_else(exit_matters() ? call_main_and_visit_exit : real_main, arguments,
                                  is_controlled());
}

void (*end_libraries)();

// exit() calls it last, before it flushes stdio, however the program came to exit: handlers have
// run and global objects are gone, so a late thread meets what it would meet in an unlucky run.
void end_libraries_and_hold() {
  if (end_libraries != nullptr) end_libraries();
  turn_before_exit();
  hold_exit();
  end_process();
  end_turns_of_process();
}

}  // namespace

void start() {
  if (started || environ == nullptr) return;
  started = true;
  resolve_real_functions();
  resolve_clock();
  if (const char* socket = getenv(protocol::fork_server_variable))
    plan_to_serve(socket);
  else
    join_run(getenv(protocol::memory_variable));
}

void join_run(const char* memory_name) {
  if (!attach(memory_name)) return;
  remember_inheritance(memory_name);
  meet_process();
  meet_first_thread();
  begin_control();
  if (captures_failures() || is_controlled()) watch_fatal_signals();
  install_probes();
}

HOOK(int, __libc_start_main,
     (Main main, int argc, char** argv, void (*init)(), void (*fini)(), void (*rtld_fini)(),
      void* stack_end)) {
  resolve_real_functions();
  real_main = main;
  end_libraries = rtld_fini;
  const Main first = is_to_serve()    ? serve_and_call_main
                     : exit_matters() ? call_main_and_visit_exit
                                      : main;
  return real::__libc_start_main(first, argc, argv, init, fini, end_libraries_and_hold, stack_end);
}

}  // namespace unflake::agent
