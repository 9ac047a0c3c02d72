#include "agent/probes/probes.h"

#include <errno.h>
#include <link.h>
#include <signal.h>

#include "agent/hooks/hooks.h"
#include "agent/probes/probed_image.h"
#include "agent/process.h"
#include "agent/record/images.h"
#include "agent/record/memory.h"
#include "agent/record/sites.h"
#include "agent/record/threads.h"
#include "agent/record/visit.h"
#include "agent/schedule/accesses.h"
#include "agent/schedule/scheduler.h"
#include "agent/schedule/virtual_clock.h"

namespace unflake::agent {
namespace {

using protocol::none;
using protocol::Probe;

constexpr uint8_t breakpoint = 0xcc;

// One for each image of the plan, in its order.
ProbedImage images[most_images];
uint32_t image_count = 0;

// The function that the dynamic linker calls when what is loaded has changed, and what its first
// instruction is.
uint64_t linker_event = 0;
Probe linker_instruction;

struct Hit {
  const ProbedImage* image = nullptr;
  uint32_t probe = none;
};

Hit find(uint64_t address) {
  for (uint32_t i = 0; i < image_count; ++i) {
    const uint32_t probe = find_probe(images[i], address);
    if (probe != none) return {&images[i], probe};
  }
  return {};
}

uint32_t place_of(const Hit& hit) {
  return hit.image->places[hit.probe - hit.image->first];
}

const Slot* slot_of(const Hit& hit) {
  const uint32_t place = place_of(hit);
  return place < first_slot ? nullptr : &hit.image->slots[place - first_slot];
}

const JumpSlot* jump_of(const Hit& hit) {
  const uint32_t place = place_of(hit);
  return place < first_jump ? nullptr : &hit.image->jumps[place - first_jump];
}

uint64_t address_of(const ProbedImage& image, uint32_t probe) {
  return image.bias + protocol::offset_of(memory().probes[probe].address);
}

const Slot* slot_around(const ProbedImage& image, uint64_t address) {
  const uint64_t distance = address - reinterpret_cast<uint64_t>(image.slots);
  if (!is_loaded(image) || distance >= image.slot_count * sizeof(Slot)) return nullptr;
  return &image.slots[distance / sizeof(Slot)];
}

struct Jump {
  const ProbedImage* image = nullptr;
  const JumpSlot* slot = nullptr;
};

Jump jump_around(uint64_t address) {
  for (uint32_t i = 0; i < image_count; ++i) {
    const uint64_t distance = address - reinterpret_cast<uint64_t>(images[i].jumps);
    if (is_loaded(images[i]) && distance < images[i].jump_count * sizeof(JumpSlot))
      return {&images[i], &images[i].jumps[distance / sizeof(JumpSlot)]};
  }
  return {};
}

bool is_known(const LoadedFile& file) {
  for (uint32_t i = 0; i < image_count; ++i)
    if (is_loaded(images[i]) && images[i].identity == file.identity && images[i].bias == file.bias)
      return true;
  return false;
}

// The agent is entered by a probe, and the dynamic linker calls it.
bool is_taboo(const LoadedFile& file) {
  return contains(file, reinterpret_cast<uint64_t>(&find)) || contains(file, _r_debug.r_brk);
}

void add_new_images() {
  for (const link_map* map = _r_debug.r_map; map != nullptr; map = map->l_next) {
    LoadedFile file;
    if (!describe(*map, file) || is_known(file) || is_taboo(file)) continue;
    const uint32_t number = number_in_plan(file);
    if (number < image_count && !is_loaded(images[number]))
      add_probes(images[number], number, file);
  }
}

bool is_still_there(const ProbedImage& image) {
  for (const link_map* map = _r_debug.r_map; map != nullptr; map = map->l_next)
    if (map->l_ld == image.identity && map->l_addr == image.bias) return true;
  return false;
}

void forget_unloaded_images() {
  for (uint32_t i = 0; i < image_count; ++i)
    if (is_loaded(images[i]) && !is_still_there(images[i])) forget(images[i]);
}

void take_linker_event() {
  if (_r_debug.r_state != r_debug::RT_CONSISTENT) return;
  forget_unloaded_images();
  add_new_images();
}

void on_linker_event(ucontext_t* context) {
  take_linker_event();
  emulate(linker_instruction, linker_event, context->uc_mcontext.gregs);
}

// Only what compilers make of an empty function.
bool understand_linker_event(const uint8_t* code) {
  static constexpr uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
  linker_instruction = {};
  linker_instruction.kind =
      code[0] == 0xc3 ? protocol::ProbeKind::ret : protocol::ProbeKind::nothing;
  linker_instruction.length = code[0] == 0xc3 ? 1 : sizeof endbr;
  return code[0] == 0xc3 || __builtin_memcmp(code, endbr, sizeof endbr) == 0;
}

// What compilers fill the room behind a function with.
bool is_filling(const uint8_t* code, size_t size) {
  static constexpr uint8_t nop[] = {0x66, 0x66, 0x2e, 0x0f, 0x1f}, other[] = {0x0f, 0x1f};
  if (__builtin_memcmp(code, nop, size) == 0 || __builtin_memcmp(code, nop + 1, size) == 0 ||
      __builtin_memcmp(code, other, sizeof other) == 0)
    return true;
  for (size_t i = 0; i < size; ++i)
    if (code[i] != 0x90 && code[i] != breakpoint) return false;
  return true;
}

// A breakpoint would be the end of a thread that blocks all signals, as the C library's own do. The
// function is overwritten where that can be, as if it had always called the agent.
bool replace_linker_event(uint64_t event) {
  constexpr size_t size = 5;
  const auto* code = reinterpret_cast<const uint8_t*>(event);
  const bool returns_at_once = linker_instruction.kind == protocol::ProbeKind::ret;
  const int64_t distance =
      reinterpret_cast<int64_t>(&take_linker_event) - static_cast<int64_t>(event + size);
  const auto narrow = static_cast<int32_t>(distance);
  const bool has_room = returns_at_once ? is_filling(code + 1, size - 1) : code[4] == 0xc3;
  if (narrow != distance || !has_room) return false;
  uint8_t jump[size] = {0xe9};
  __builtin_memcpy(jump + 1, &narrow, sizeof narrow);
  return write_code(event, jump, size);
}

void watch_linker() {
  if (linker_event != 0) return;
  const uint64_t event = _r_debug.r_brk;
  if (event == 0 || !understand_linker_event(reinterpret_cast<const uint8_t*>(event)))
    return process_degraded(protocol::no_probe_memory);
  linker_event = event;
  if (replace_linker_event(event) || write_code(event, breakpoint)) return;
  linker_event = 0;
  process_degraded(protocol::no_probe_memory);
}

bool only_counts(const Probe& probe) {
  return probe.site == none &&
         (probe.flags & (protocol::probe_reports_failure | protocol::probe_accesses)) == 0;
}

// A framework that calls all the time must not make the test slow: then its calls are not told from
// the test's own any more, and nobody's are counted.
constexpr uint32_t most_calls_of_others = 1000;
protocol::Shared<uint32_t> calls_of_others;

// The return address is on top of the stack.
bool is_call_of_project(const ucontext_t* context) {
  const auto* stack = reinterpret_cast<const uint64_t*>(context->uc_mcontext.gregs[REG_RSP]);
  Guard guard;
  return !guard || owner_of(*stack, image_at(*stack)) != CodeOwner::system;
}

// False: the probe is needed no longer, and gone.
bool counts_and_stays(const Hit& hit, uint64_t address, const ucontext_t* context) {
  const Probe& probe = memory().probes[hit.probe];
  const bool is_call = (probe.flags & protocol::probe_of_call) != 0;
  const bool counts = attached() && (!is_call || is_call_of_project(context));
  if (counts) memory().probe_hits[hit.probe].add(1);
  const bool stays = is_call ? !counts && calls_of_others.add(1) < most_calls_of_others
                             : (probe.flags & protocol::probe_one_shot) == 0;
  if (!stays) write_code(address, probe.first_byte);
  return stays;
}

// Whether the project makes this call; it is not asked again then.
void ask_for_caller(const Jump& jump, const ucontext_t* context) {
  if (!attached()) return;
  if (is_call_of_project(context)) {
    memory().probe_hits[jump.slot->probe].store(1);
    return;
  }
  // Somewhere else there may be other code in the next run.
  const auto caller = *reinterpret_cast<const uint64_t*>(context->uc_mcontext.gregs[REG_RSP]);
  if (contains(jump.image->file, caller)) remember_stranger(*jump.image->strangers, caller);
  if (calls_of_others.add(1) >= most_calls_of_others)
    remove_jump(*jump.slot, address_of(*jump.image, jump.slot->probe));
}

// A jump is of no use any more when it has been taken very often.
void cool_down(const Jump& jump) {
  uint16_t* calls = &jump.image->calls[jump.slot - jump.image->jumps];
  __atomic_store_n(calls, 0, __ATOMIC_RELAXED);
  remove_jump(*jump.slot, address_of(*jump.image, jump.slot->probe));
}

// The code that a jump leads to asks for something. False: it is none of that.
bool take_request(uint64_t address, ucontext_t* context) {
  const Jump jump = jump_around(address);
  if (jump.slot == nullptr) return false;
  const Probe& probe = memory().probes[jump.slot->probe];
  context->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(moved_code(*jump.slot, probe));
  if ((probe.flags & protocol::probe_of_call) != 0)
    ask_for_caller(jump, context);
  else
    cool_down(jump);
  return true;
}

void take(const Hit& hit, uint64_t address, ucontext_t* context) {
  const Probe& probe = memory().probes[hit.probe];
  const bool stays = counts_and_stays(hit, address, context);
  if (!only_counts(probe) && !on_probe(hit.probe, context)) write_code(address, probe.first_byte);
  if (!stays) return;
  const Slot* slot = slot_of(hit);
  if (slot == nullptr)
    emulate(probe, address, context->uc_mcontext.gregs);
  else
    enter_copy(probe, address, slot->code, context->uc_mcontext.gregs);
}

// Another thread may have removed the probe between the trap and now. The long form of a
// breakpoint has a different byte there from the start.
bool is_stale(uint64_t address) {
  const auto* code = reinterpret_cast<const volatile uint8_t*>(address);
  return code[0] != breakpoint && !(code[0] == 0x03 && code[-1] == 0xcd);
}

void on_trap(int signal, siginfo_t* info, void* raw) {
  auto* context = static_cast<ucontext_t*>(raw);
  auto& rip = context->uc_mcontext.gregs[REG_RIP];
  const auto address = static_cast<uint64_t>(rip) - 1;
  if (info->si_code != SI_KERNEL && info->si_code != TRAP_BRKPT)
    return give_trap_to_program(signal, info, raw);
  if (take_request(address, context)) return;
  const bool linker = address == linker_event;
  const Hit hit = linker ? Hit{} : find(address);
  if (!linker && hit.image == nullptr && !is_stale(address))
    return give_trap_to_program(signal, info, raw);
  rip = static_cast<greg_t>(address);
  if (linker)
    on_linker_event(context);
  else if (hit.image != nullptr && jump_of(hit) != nullptr)  // it is being taken out
    rip = static_cast<greg_t>(moved_code(*jump_of(hit), memory().probes[hit.probe]));
  else if (hit.image != nullptr)
    take(hit, address, context);
}

bool plans_one_shots() {
  const auto* probes = memory().probes.first;
  for (uint32_t i = 0; i < memory().probes.count; ++i)
    if ((probes[i].flags & (protocol::probe_one_shot | protocol::probe_of_call)) != 0) return true;
  return false;
}

// Of the plan by which the probes were put in before this process was part of a run.
struct Ahead {
  const Probe* probes = nullptr;
  uint32_t count = 0;
} ahead;

void put_probes_in() {
  if (!trap_is_taken() && !take_trap(on_trap)) return process_degraded(protocol::sigtrap_taken);
  const uint32_t count = memory().plan_images.count;
  image_count = count < most_images ? count : most_images;
  add_new_images();
  watch_linker();
}

bool is_planned_ahead() {
  const auto& probes = memory().probes;
  return probes.count == ahead.count &&
         __builtin_memcmp(probes.first, ahead.probes, ahead.count * sizeof(Probe)) == 0;
}

}  // namespace

void install_probes() {
  if (!attached()) return;
  const bool is_planned = ahead.probes != nullptr && is_planned_ahead();
  if (ahead.probes != nullptr)
    for (uint32_t i = 0; i < image_count; ++i)
      if (is_loaded(images[i]) && !(is_planned && bind_hits(images[i])))
        remove_probes(images[i], ahead.probes);
  if (memory().probes.count == 0) return;
  if (plans_one_shots()) prepare_to_write_code();
  put_probes_in();
}

void install_probes_ahead(const char* memory_name) {
  if (!attach(memory_name)) return;
  if (memory().probes.count > 0) {
    ahead = {memory().probes.first, memory().probes.count};
    put_probes_in();
  }
  let_go();
}

// A few times: a test that makes and joins threads in a loop would do little else.
bool arm_accesses() {
  constexpr uint32_t most_armings = 16;
  static uint32_t armings = 0;
  if (schedule_tables().accesses.count == 0 || armings >= most_armings) return false;
  for (uint32_t i = 0; i < image_count; ++i) arm_accesses(images[i]);
  return ++armings < most_armings;
}

Displacement translate(ucontext_t* context) {
  auto& registers = context->uc_mcontext.gregs;
  const auto rip = static_cast<uint64_t>(registers[REG_RIP]);
  if (const Jump jump = jump_around(rip); jump.slot != nullptr) {
    const auto rsp = static_cast<uint64_t>(registers[REG_RSP]);
    const uint32_t probe = jump.slot->probe;
    const uint64_t place =
        program_address(*jump.slot, memory().probes[probe], address_of(*jump.image, probe), rip);
    registers[REG_RIP] = static_cast<greg_t>(place);
    return {rip, rsp, place, rsp};
  }
  for (uint32_t i = 0; i < image_count; ++i) {
    const Slot* slot = slot_around(images[i], rip);
    if (slot == nullptr) continue;
    const Probe& probe = memory().probes[slot->probe];
    const uint64_t start = images[i].bias + protocol::offset_of(probe.address);
    Displacement displacement = {rip, static_cast<uint64_t>(registers[REG_RSP]), 0, 0};
    leave_copy(probe, start, rip - reinterpret_cast<uint64_t>(slot->code), registers);
    displacement.program_rip = static_cast<uint64_t>(registers[REG_RIP]);
    displacement.program_rsp = static_cast<uint64_t>(registers[REG_RSP]);
    return displacement;
  }
  return {};
}

void restore(const Displacement& displacement, ucontext_t* context) {
  auto& registers = context->uc_mcontext.gregs;
  if (displacement.rip == 0 ||
      static_cast<uint64_t>(registers[REG_RIP]) != displacement.program_rip ||
      static_cast<uint64_t>(registers[REG_RSP]) != displacement.program_rsp)
    return;
  registers[REG_RIP] = static_cast<greg_t>(displacement.rip);
  registers[REG_RSP] = static_cast<greg_t>(displacement.rsp);
}

using namespace protocol;

namespace {

// In the order in which functions get their arguments.
constexpr int argument_registers[] = {REG_RDI, REG_RSI, REG_RDX, REG_RCX, REG_R8, REG_R9};

bool is_failure(const FailureSign& sign, const ucontext_t* context) {
  const size_t argument = sign.argument & ~any_bit;
  if (argument == 0 || argument > sizeof argument_registers / sizeof argument_registers[0])
    return true;
  const auto word =
      static_cast<uint64_t>(context->uc_mcontext.gregs[argument_registers[argument - 1]]);
  const uint8_t value = sign.offset == argument_itself
                            ? static_cast<uint8_t>(word)
                            : *reinterpret_cast<const uint8_t*>(word + sign.offset);
  if ((sign.argument & any_bit) != 0) return (value & sign.accepted) != 0;
  return value < 8 && (sign.accepted >> value & 1) != 0;
}

void record_visit(uint32_t site, const ucontext_t* context) {
  Event* event = next_event(Worth::matters);
  if (event == nullptr) return;
  const uint64_t now = traced_now();
  *event = {
      .enter_ns = now,
      .exit_ns = now,
      .object = 0,
      .value = -1,
      .site = site,
      .stack = (plan().flags & record_stacks) != 0 ? number_of_interrupted_stack(context) : none,
      .api = probe_api};
}

void visit_site(uint32_t probe, const ucontext_t* context) {
  const auto address = static_cast<uint64_t>(context->uc_mcontext.gregs[REG_RIP]);
  Tally* tally = tally_of_probe(probe, address);
  const uint32_t site = tally->site;
  const uint64_t visit = count_visit(*tally, site);
  if ((plan().flags & record_events) != 0) record_visit(site, context);
  if (tally->plan_site != no_plan_site)
    perform(due_at({tally->plan_site, Position::before, visit}), site);
}

}  // namespace

namespace {

// Without the guard: the thread may wait for its turn here, and handle signals meanwhile.
bool touch_memory(uint32_t number, const ucontext_t* context) {
  const auto address = static_cast<uint64_t>(context->uc_mcontext.gregs[REG_RIP]);
  const Probe& probe = memory().probes[number];
  Touch touch{static_cast<uint32_t>(probe.target), none, 0, memory().probe_hits[number].load()};
  if (Guard guard; guard) {
    Tally* tally = tally_of_probe(number, address);
    touch.site = tally->site;
    count_visit(*tally, touch.site);
    if (needs_stack(touch.access)) touch.stack = number_of_interrupted_stack(context) + 1;
  } else {
    return true;
  }
  return take_touch(touch, address - offset_of(probe.address), context->uc_mcontext.gregs);
}

}  // namespace

bool on_probe(uint32_t number, ucontext_t* context) {
  const int error = errno;
  if (Guard guard; guard && meet_this_thread()) {
    const Probe& probe = memory().probes[number];
    if ((probe.flags & probe_reports_failure) != 0 && is_failure(probe.sign, context))
      capture_report(context);
    if (probe.site != none) visit_site(number, context);
  }
  bool is_needed = true;
  if ((memory().probes[number].flags & probe_accesses) != 0 && is_controlled())
    is_needed = touch_memory(number, context);
  errno = error;
  return is_needed;
}

}  // namespace unflake::agent
