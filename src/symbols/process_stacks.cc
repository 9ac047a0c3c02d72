#include "symbols/process_stacks.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "util/files.h"

namespace unflake {
namespace {

constexpr int rounds = 8;                   // of looking for threads that were started meanwhile
constexpr int most_tries_to_let_go = 2000;  // about half a second

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  std::error_code failed;
  const std::filesystem::path folder = fmt::format("/proc/{}/task", process);
  std::filesystem::directory_iterator entries(folder, failed);
  for (; !failed && entries != std::filesystem::directory_iterator(); entries.increment(failed))
    threads.push_back(std::atoi(entries->path().filename().c_str()));
  return threads;
}

pid_t parent_of(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("PPid:")) return std::atoi(line.c_str() + std::strlen("PPid:"));
  return 0;
}

// 'Z' for one that has ended and 0 for one that is gone.
char state_of(pid_t process, pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/stat", process, tid));
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(") ");
  return name_end == std::string::npos ? '\0' : line[name_end + 2];
}

bool has_ended(pid_t process, pid_t tid) {
  const char state = state_of(process, tid);
  return state == 0 || state == 'Z' || state == 'X';
}

constexpr char ended[] = "it has ended";

std::string why_not_traced(int error) {
  if (error == EPERM)
    return "it may not be traced: another tracer has it, or the system forbids it";
  if (error == ESRCH) return ended;
  return std::strerror(error);
}

// Takes only stops: the exit status belongs to the parent.
std::optional<int> stop_of(pid_t tid) {
  siginfo_t info{};
  const int failed = ::waitid(P_PID, tid, &info, WSTOPPED | WNOHANG | __WALL);
  if (failed != 0 || info.si_pid != tid) return std::nullopt;
  return info.si_status;
}

// What a stop without an event is about; the stop that was asked for has one.
int signal_of(int stop) {
  const bool has_event = (stop >> 8) != 0;
  return has_event ? 0 : stop & 0x7f;
}

void rest_for_a_moment() {
  const timespec pause{0, 200'000};
  ::nanosleep(&pause, nullptr);
}

}  // namespace

Tracer::Tracer(pid_t process, size_t most_threads, Deadline deadline)
    : process_(process), is_child_(parent_of(process) == ::getpid()) {
  for (int round = 0; round < rounds; ++round) {
    const size_t before = threads_.size();
    seize_new(most_threads);
    if (threads_.size() == before) return;
    wait_for_stops(deadline);
  }
}

void Tracer::seize_new(size_t most_threads) {
  for (const pid_t tid : threads_of(process_)) {
    const bool known = std::any_of(threads_.begin(), threads_.end(),
                                   [&](const Thread& thread) { return thread.tid == tid; });
    if (known || threads_.size() >= most_threads) continue;
    Thread thread;
    thread.tid = tid;
    if (has_ended(process_, tid))
      thread.why_not = ended;
    else if (::ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0)
      thread.why_not = why_not_traced(errno);
    else if (::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0)
      thread.why_not = why_not_traced(errno);
    threads_.push_back(thread);
  }
}

void Tracer::wait_for_stops(Deadline deadline) {
  const auto is_awaited = [](const Thread& t) { return !t.is_stopped && t.why_not.empty(); };
  for (;;) {
    for (Thread& thread : threads_) {
      if (!is_awaited(thread)) continue;
      const auto stop = stop_of(thread.tid);
      if (stop) thread.signal = signal_of(*stop);
      thread.is_stopped = stop.has_value();
      if (!stop && has_ended(process_, thread.tid)) thread.why_not = ended;
    }
    if (std::none_of(threads_.begin(), threads_.end(), is_awaited)) return;
    if (std::chrono::steady_clock::now() >= deadline) break;
    rest_for_a_moment();
  }
  for (Thread& thread : threads_)
    if (is_awaited(thread)) thread.why_not = "it did not stop in time: the kernel is busy with it";
}

std::optional<user_regs_struct> Tracer::registers(pid_t tid) const {
  user_regs_struct values{};
  iovec room{&values, sizeof values};
  const long failed = ::ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &room);
  if (failed != 0 || room.iov_len != sizeof values) return std::nullopt;
  return values;
}

// A thread that is about to end, or to stop, cannot be let go yet; and what has ended waits for its
// tracer: left alone, it would keep its whole process from ending. Our own child's end is for
// whoever waits for it.
void Tracer::let_go(const Thread& thread) const {
  const auto signal = static_cast<long>(thread.signal);
  const bool is_own_child = thread.tid == process_ && is_child_;
  for (int tries = 0; tries < most_tries_to_let_go; ++tries) {
    if (::ptrace(PTRACE_DETACH, thread.tid, nullptr, signal) == 0 || errno != ESRCH) return;
    if (is_own_child && has_ended(process_, thread.tid)) return;
    siginfo_t info{};
    if (!is_own_child &&
        (::waitid(P_PID, thread.tid, &info, WEXITED | WNOHANG | __WALL) != 0 || info.si_pid != 0))
      return;
    rest_for_a_moment();
  }
}

Tracer::~Tracer() {
  for (const Thread& thread : threads_) let_go(thread);
}

namespace {

// Unwinding needs only what is loaded; a debug server on the network must not be asked.
int find_no_debug_information(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*,
                              const char*, GElf_Word, char**) {
  return -1;
}

const Dwfl_Callbacks module_callbacks = {
    .find_elf = ::dwfl_linux_proc_find_elf,
    .find_debuginfo = find_no_debug_information,
    .section_address = nullptr,
    .debuginfo_path = nullptr,
};

bool read_word(pid_t process, uint64_t address, uint64_t& word) {
  const iovec here{&word, sizeof word};
  const iovec there{reinterpret_cast<void*>(address), sizeof word};
  return ::process_vm_readv(process, &here, 1, &there, 1, 0) == ssize_t{sizeof word};
}

// In the order of the DWARF numbers.
std::array<Dwarf_Word, 17> in_dwarf_order(const user_regs_struct& r) {
  return {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
          r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
}

}  // namespace

const Dwfl_Thread_Callbacks Unwinder::callbacks = {
    .next_thread = [](Dwfl*, void*, void**) { return pid_t{0}; },
    .get_thread =
        [](Dwfl*, pid_t tid, void* self, void** thread) {
          *thread = self;
          return static_cast<Unwinder*>(self)->tracer_.registers(tid).has_value();
        },
    .memory_read =
        [](Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* self) {
          return read_word(static_cast<Unwinder*>(self)->process_, address, *word);
        },
    .set_initial_registers =
        [](Dwfl_Thread* thread, void* self) {
          const auto values =
              static_cast<Unwinder*>(self)->tracer_.registers(::dwfl_thread_tid(thread));
          if (!values) return false;
          const auto ordered = in_dwarf_order(*values);
          return ::dwfl_thread_state_registers(thread, 0, ordered.size(), ordered.data());
        },
    .detach = nullptr,
    .thread_detach = nullptr,
};

Unwinder::Unwinder(pid_t process, const Tracer& tracer, Tracer::Deadline deadline)
    : process_(process),
      tracer_(tracer),
      deadline_(deadline),
      dwfl_(::dwfl_begin(&module_callbacks)) {
  if (dwfl_ == nullptr) return;
  const bool reported = ::dwfl_linux_proc_report(dwfl_.get(), process) == 0 &&
                        ::dwfl_report_end(dwfl_.get(), nullptr, nullptr) == 0;
  if (!reported || !::dwfl_attach_state(dwfl_.get(), nullptr, process, &callbacks, this))
    dwfl_.reset();
}

struct Unwinder::Walk {
  Unwinder* self;
  size_t most_frames;
  std::vector<CodePlace> places;
};

std::vector<CodePlace> Unwinder::stack_of(pid_t tid, size_t most_frames) {
  Walk walk{this, most_frames, {}};
  const auto add = [](Dwfl_Frame* frame, void* argument) -> int {
    auto& walk = *static_cast<Walk*>(argument);
    Dwarf_Addr address = 0;
    bool is_innermost = false;
    if (!::dwfl_frame_pc(frame, &address, &is_innermost)) return DWARF_CB_ABORT;
    walk.places.push_back(walk.self->place_of(is_innermost ? address : address - 1));
    walk.places.back().interrupted = is_innermost;
    const bool late = std::chrono::steady_clock::now() >= walk.self->deadline_;
    return late || walk.places.size() >= walk.most_frames ? DWARF_CB_ABORT : DWARF_CB_OK;
  };
  if (dwfl_ != nullptr) ::dwfl_getthread_frames(dwfl_.get(), tid, add, &walk);
  return std::move(walk.places);
}

CodePlace Unwinder::place_of(uint64_t address) const {
  Dwfl_Module* module = ::dwfl_addrmodule(dwfl_.get(), address);
  GElf_Addr bias = 0;
  if (module == nullptr || ::dwfl_module_getelf(module, &bias) == nullptr) return {"", address};
  const char* path = nullptr;
  const char* name =
      ::dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, &path, nullptr);
  return {path != nullptr ? path : name != nullptr ? name : "", address - bias};
}

namespace {

std::string name_of(pid_t process, pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/comm", process, tid));
  std::string name;
  std::getline(file, name);
  return name;
}

ThreadStack take_stack(pid_t process, const Tracer::Thread& thread, Unwinder& unwinder,
                       size_t most_frames) {
  ThreadStack stack;
  stack.tid = thread.tid;
  stack.name = name_of(process, thread.tid);
  stack.why_empty = thread.why_not;
  if (thread.is_stopped)
    for (CodePlace& place : unwinder.stack_of(thread.tid, most_frames))
      stack.frames.push_back({std::move(place.image), place.address, {}, place.interrupted});
  return stack;
}

// The process is stopped only while this works.
std::vector<ThreadStack> take_stacks(pid_t process, const StackLimits& limits,
                                     Tracer::Deadline deadline) {
  const Tracer tracer(process, limits.threads, deadline);
  Unwinder unwinder(process, tracer, deadline);
  std::vector<ThreadStack> stacks;
  for (const Tracer::Thread& thread : tracer.threads())
    stacks.push_back(take_stack(process, thread, unwinder, limits.frames));
  return stacks;
}

constexpr size_t most_open_images = 32;

// Images stay open: whoever looks at one process of a test will look at others, and reading the
// debug information takes longer than anything else.
std::shared_ptr<const Image> image_at(const std::string& path) {
  struct Known {
    FileStamp stamp;
    std::shared_ptr<const Image> image;  // none: it cannot be read
  };
  static std::map<std::string, Known> images;
  if (images.size() > most_open_images) images.clear();
  Known& known = images[path];
  const FileStamp stamp = FileStamp::of(path);
  if (known.stamp == stamp) return known.image;
  auto opened = Image::open(path);
  known = {stamp, opened ? *opened : nullptr};
  return known.image;
}

void give_names_until(ThreadStack& stack, Tracer::Deadline deadline) {
  for (ThreadFrame& frame : stack.frames) {
    if (std::chrono::steady_clock::now() >= deadline || !frame.image.starts_with('/')) continue;
    if (const auto image = image_at(frame.image)) frame.frames = image->frames_at(frame.address);
  }
}

bool was_gone(const ThreadStack& stack) {
  return stack.frames.empty() && stack.name.empty();
}

Error no_stack(pid_t pid, const std::string& why) {
  return internal_error("no stack could be read: " + (why.empty() ? "its stacks are empty" : why),
                        fmt::format("process {}", pid));
}

}  // namespace

Result<std::vector<ThreadStack>> stacks_of(pid_t pid, const StackLimits& limits) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<ThreadStack> stacks = take_stacks(pid, limits, start + limits.time);
  std::erase_if(stacks, was_gone);
  const bool any = std::any_of(stacks.begin(), stacks.end(),
                               [](const ThreadStack& stack) { return !stack.frames.empty(); });
  if (!any) return no_stack(pid, stacks.empty() ? "it has ended" : stacks.front().why_empty);
  // The process goes on meanwhile.
  for (ThreadStack& stack : stacks) give_names_until(stack, start + 2 * limits.time);
  return stacks;
}

Result<ThreadStack> stack_of_thread(pid_t pid, pid_t tid, const StackLimits& limits) {
  const auto deadline = std::chrono::steady_clock::now() + limits.time;
  ThreadStack stack;
  {
    const Tracer tracer(pid, limits.threads, deadline);
    Unwinder unwinder(pid, tracer, deadline);
    const auto thread = std::ranges::find(tracer.threads(), tid, &Tracer::Thread::tid);
    if (thread != tracer.threads().end()) stack = take_stack(pid, *thread, unwinder, limits.frames);
  }
  if (stack.frames.empty()) return no_stack(pid, stack.why_empty);
  return stack;
}

void give_names(ThreadStack& stack, std::chrono::milliseconds at_most) {
  give_names_until(stack, std::chrono::steady_clock::now() + at_most);
}

}  // namespace unflake
