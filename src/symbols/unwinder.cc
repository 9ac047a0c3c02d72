#include "symbols/unwinder.h"

#include <sys/uio.h>

#include <array>

namespace unflake {
namespace {

// Unwinding needs what is loaded only; a debug server on the network must not be asked.
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

}  // namespace unflake
