#include "agent/record/sites.h"

#include <dlfcn.h>
#include <unwind.h>

#include "agent/hash.h"
#include "agent/process.h"
#include "agent/record/images.h"
#include "agent/record/memory.h"

namespace unflake::agent {
namespace {

using namespace protocol;

constexpr uint64_t walked_bit = uint64_t{1} << 63;
constexpr uint64_t probe_bit = uint64_t{1} << 62;
constexpr uint64_t forgotten_bit = uint64_t{1} << 61;

struct Found {
  Tally* tally;
  bool is_new;
};

bool is_forgotten(const Tally& tally) {
  return (tally.key & forgotten_bit) != 0;
}

// What was counted at code that is gone moves to its site, to make room.
Tally* reuse(Tally* tally) {
  if (tally == nullptr || !is_forgotten(*tally)) return tally;
  if (tally->site != none) {
    Site& site = memory().sites[tally->site];
    site.visits.add(tally->visits.load());
    site.waited_ns.add(tally->waited_ns.load());
  }
  *tally = {};
  return tally;
}

Found find_or_add(uint64_t key) {
  Tally* tallies = this_thread.tallies;
  if (tallies == nullptr) return {nullptr, false};
  const size_t first = tally_slot(key);
  Tally* room = nullptr;
  for (size_t i = 0; i < 16; ++i) {
    Tally& tally = tallies[(first + i) % tallies_per_thread];
    if (tally.key == key) return {&tally, false};
    if (room == nullptr && (tally.key == 0 || is_forgotten(tally))) room = &tally;
    if (tally.key == 0) break;
  }
  return {reuse(room), true};
}

// For a thread that has no room for one more place. Its counts go to the site itself: slower, since
// that is shared, but not lost.
Tally* spare_tally() {
  static thread_local Tally spare __attribute__((tls_model("initial-exec")));
  spare = {};
  return &spare;
}

bool is_spare(const Tally& tally) {
  return tally.key == 0;
}

bool group_is_on(uint16_t api) {
  return api == probe_api ||
         (plan().groups >> static_cast<uint32_t>(api_facts[api].group) & 1) != 0;
}

bool is_before(const PlanSite& site, uint32_t image, uint64_t offset, uint16_t api) {
  if (site.image != image) return site.image < image;
  if (site.offset != offset) return site.offset < offset;
  return site.api < api;
}

uint16_t as_plan_site(uint32_t number) {
  return number < memory().plan_sites.count && number < no_plan_site ? static_cast<uint16_t>(number)
                                                                     : no_plan_site;
}

uint16_t find_plan_site(const LoadedImage* image, uint64_t offset, uint16_t api) {
  if (image == nullptr || image->plan_number == none) return no_plan_site;
  const PlanSite* sites = memory().plan_sites.first;
  uint32_t low = 0, high = memory().plan_sites.count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (is_before(sites[middle], image->plan_number, offset, api))
      low = middle + 1;
    else
      high = middle;
  }
  const bool found = low < memory().plan_sites.count && sites[low].image == image->plan_number &&
                     sites[low].offset == offset && sites[low].api == api;
  return found ? as_plan_site(low) : no_plan_site;
}

bool is_due(uint16_t api, uint16_t plan_site) {
  if (plan_site != no_plan_site || (plan().flags & record_events) != 0) return true;
  return api != probe_api && (api_facts[api].traits & api_wait) != 0 &&
         (api_facts[api].group_facts().traits & group_locks) == 0;
}

// What a wrapper protects for itself is not done on behalf of its caller.
bool is_own_lock(Api api, const LoadedImage* image) {
  const GroupFacts& group = api_facts[static_cast<size_t>(api)].group_facts();
  return image->locks_for_itself && (plan().flags & include_system) == 0 &&
         (group.traits & group_guards) != 0;
}

// Where nothing is to be done.
Mode idle_mode() {
  return is_scheduled() ? Mode::turn : Mode::pass;
}

struct Place {
  uint64_t key;
  uint64_t address;
  const LoadedImage* image;
};

uint16_t planned_as(const Place& place, uint16_t api, uint32_t probe) {
  if (probe != none) return as_plan_site(memory().probes[probe].site);
  return find_plan_site(place.image, place.address - place.image->bias, api);
}

Tally* describe(Found found, const Place& place, uint16_t api, uint32_t probe) {
  Tally* tally = found.tally != nullptr ? found.tally : spare_tally();
  const Address address = address_in(place.address, place.image);
  tally->site = number_of_site(site_key(address, api), address, api, probe);
  tally->plan_site = planned_as(place, api, probe);
  tally->mode = static_cast<uint16_t>(is_due(api, tally->plan_site) ? Mode::act : idle_mode());
  if (found.tally != nullptr)
    tally->key = place.key;
  else
    tally->mode = static_cast<uint16_t>(Mode::act);
  return tally;
}

Tally* leave_alone(Found found, uint64_t key) {
  if (found.tally != nullptr && found.is_new) {
    found.tally->site = none;
    found.tally->plan_site = no_plan_site;
    found.tally->mode = static_cast<uint16_t>(idle_mode());
    found.tally->key = key;
  }
  return nullptr;
}

// The wrapper's caller in project code, past other wrappers. A system library on the way means that
// the call is its own business.
bool find_project_caller(const Caller& caller, Place& place) {
  const KnownStack* known = stack_of(caller);
  if (known == nullptr) return false;
  const StackSnapshot& stack = known->stack;
  const bool include = (plan().flags & include_system) != 0;
  for (uint32_t i = 0; i < stack.count; ++i) {
    const LoadedImage* image = image_at(stack.frames[i]);
    const CodeOwner owner = owner_of(stack.frames[i], image);
    if (owner == CodeOwner::wrapper) continue;
    if (owner != CodeOwner::project && !(include && owner == CodeOwner::system)) return false;
    place.address = stack.frames[i];
    place.image = image;
    return true;
  }
  return false;
}

Tally* tally_of_walk(Api api, const Caller& caller) {
  Place place{};
  if (!find_project_caller(caller, place)) return nullptr;
  place.key = tally_key(api, reinterpret_cast<void*>(place.address)) | walked_bit;
  const Found found = find_or_add(place.key);
  if (found.tally != nullptr && !found.is_new) return found.tally;
  return describe(found, place, static_cast<uint16_t>(api), none);
}

Tally* walk_from_now_on(Found found, uint64_t key, Api api, const Caller& caller) {
  if (found.tally != nullptr) {
    found.tally->site = none;
    found.tally->mode = static_cast<uint16_t>(Mode::walk);
    found.tally->key = key;
  }
  return tally_of_walk(api, caller);
}

bool is_of_this_process(const TallyTable& table) {
  const uint32_t thread = table.thread.load() - 1;
  return thread < memory().threads.count && memory().threads[thread].process == process_number();
}

// The key of a call has the address in its lower bits.
void forget_places_in(TallyTable& table, uint64_t start, uint64_t end) {
  for (Tally& tally : table.tallies) {
    const uint64_t key = tally.key, address = key & offset_mask;
    if ((key & probe_bit) == 0 && address >= start && address < end)
      __atomic_store_n(&tally.key, key | forgotten_bit, __ATOMIC_RELAXED);
  }
}

}  // namespace

void forget_places(uint64_t start, uint64_t end) {
  for (TallyTable& table : memory().tallies)
    if (is_of_this_process(table)) forget_places_in(table, start, end);
}

uint32_t number_of_site(uint64_t key, Address address, uint16_t api, uint32_t probe) {
  const Tables& out = memory();
  for (uint32_t tries = 0; tries < most_tries; ++tries) {
    const uint32_t number = place_of(key >> 13, tries, out.sites.count);
    Site& site = out.sites[number];
    if (site.key.change(0, key)) {
      site.address = address;
      site.api = api;
      site.probe = probe;
      site.complete.store(1);
    }
    if (site.key.load() == key) return number;
  }
  out.dropped[dropped_sites].add(1);
  return none;
}

uint64_t count_visit(Tally& tally, uint32_t site) {
  if (is_spare(tally)) return site != none ? memory().sites[site].visits.add(1) : 0;
  const uint64_t before = tally.visits.load();
  tally.visits.add_alone(1);
  return before;
}

void count_wait(Tally& tally, uint32_t site, uint64_t ns) {
  if (!is_spare(tally))
    tally.waited_ns.add_alone(ns);
  else if (site != none)
    memory().sites[site].waited_ns.add(ns);
}

Tally* tally_of_call(Api api, const Caller& caller) {
  const uint64_t key = tally_key(api, caller.address);
  const Found found = find_or_add(key);
  if (found.tally != nullptr && !found.is_new) {
    if (found.tally->mode == static_cast<uint16_t>(Mode::walk)) return tally_of_walk(api, caller);
    return found.tally->site != none ? found.tally : nullptr;
  }
  if (!group_is_on(static_cast<uint16_t>(api))) return leave_alone(found, key);
  const uint64_t address = reinterpret_cast<uint64_t>(caller.address);
  const LoadedImage* image = image_at(address);
  const CodeOwner owner = owner_of(address, image);
  if (owner == CodeOwner::unknown) return nullptr;  // for now: another thread may be describing it
  if (is_own_lock(api, image)) return leave_alone(found, key);
  if (owner == CodeOwner::wrapper) return walk_from_now_on(found, key, api, caller);
  const bool include = owner == CodeOwner::system && (plan().flags & include_system) != 0;
  if (owner != CodeOwner::project && !include) return leave_alone(found, key);
  return describe(found, {key, address, image}, static_cast<uint16_t>(api), none);
}

Tally* tally_of_probe(uint32_t probe, uint64_t address) {
  const uint64_t key = probe_bit | probe;
  const Found found = find_or_add(key);
  if (found.tally != nullptr && !found.is_new) return found.tally;
  return describe(found, {key, address, image_at(address)}, probe_api, probe);
}

namespace {

bool is_agent(uint64_t address) {
  static const dl_find_object own = [] {
    dl_find_object found{};
    _dl_find_object(reinterpret_cast<void*>(take_stack), &found);
    return found;
  }();
  return address - reinterpret_cast<uint64_t>(own.dlfo_map_start) <
         static_cast<uint64_t>(static_cast<char*>(own.dlfo_map_end) -
                               static_cast<char*>(own.dlfo_map_start));
}

struct Unwinding {
  StackSnapshot& stack;
  KnownStack* known;
};

// A frame that was called has its return address below the stack pointer of its caller; one that
// was interrupted by a signal has none.
void note_place(KnownStack& known, uint32_t frame, uint64_t address, uint64_t stack_pointer) {
  known.places[frame] = stack_pointer - sizeof address;
  known.is_repeatable &= *reinterpret_cast<const uint64_t*>(known.places[frame]) == address;
}

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* argument) {
  const Unwinding& unwinding = *static_cast<Unwinding*>(argument);
  const uint64_t address = _Unwind_GetIP(context);
  if (address == 0) return _URC_END_OF_STACK;
  if (is_agent(address)) return _URC_NO_REASON;
  StackSnapshot& stack = unwinding.stack;
  if (unwinding.known != nullptr)
    note_place(*unwinding.known, stack.count, address, _Unwind_GetCFA(context));
  stack.frames[stack.count++] = address;
  return stack.count == deepest_stack ? _URC_END_OF_STACK : _URC_NO_REASON;
}

void unwind(KnownStack& known) {
  known.stack.count = 0;
  known.is_numbered = false;
  known.is_repeatable = true;
  known.closed_images = closed_images();
  Unwinding unwinding{known.stack, &known};
  _Unwind_Backtrace(add_frame, &unwinding);
}

bool is_still(const KnownStack& known, const Caller& caller) {
  const StackSnapshot& stack = known.stack;
  if (!known.is_repeatable || stack.count == 0 || known.closed_images != closed_images() ||
      known.places[0] != reinterpret_cast<uint64_t>(caller.frame) - sizeof(uint64_t))
    return false;
  for (uint32_t i = 0; i < stack.count; ++i)
    if (*reinterpret_cast<const uint64_t*>(known.places[i]) != stack.frames[i]) return false;
  return true;
}

uint64_t hash_here(const Address* frames, uint32_t count) {
  uint64_t hash = count;
  for (uint32_t i = 0; i < count; ++i) hash = mix(hash, frames[i]);
  return hash != 0 ? hash : 1;
}

bool write_frames(Stack& stack, const Address* frames, uint32_t count) {
  const Tables& out = memory();
  const uint32_t first = out.frames.used->add(count);
  if (first > out.frames.count || count > out.frames.count - first) {
    stack.count = 0;
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) out.frames[first + i] = frames[i];
  stack.first = first;
  stack.count = count;
  stack.complete.store(1);
  return true;
}

}  // namespace

void take_stack(StackSnapshot& stack) {
  stack.count = 0;
  Unwinding unwinding{stack, nullptr};
  _Unwind_Backtrace(add_frame, &unwinding);
}

KnownStack* stack_of(const Caller& caller) {
  ThreadExtra* extra = thread_extra();
  if (extra == nullptr) return nullptr;
  const uint64_t hash = mix(reinterpret_cast<uint64_t>(caller.address), 0);
  KnownStack& known = extra->known[hash % (sizeof extra->known / sizeof extra->known[0])];
  if (!is_still(known, caller)) unwind(known);
  return &known;
}

uint32_t number_of_stack(KnownStack& known) {
  if (!known.is_numbered) known.number = number_of_stack(known.stack);
  known.is_numbered = true;
  return known.number;
}

uint32_t number_of_stack(const StackSnapshot& stack) {
  Address frames[deepest_stack];
  for (uint32_t i = 0; i < stack.count; ++i)
    frames[i] = address_in(stack.frames[i], image_at(stack.frames[i]));
  const uint64_t hash = hash_here(frames, stack.count);
  const Tables& out = memory();
  for (uint32_t tries = 0; tries < most_tries; ++tries) {
    const uint32_t number = place_of(hash, tries, out.stacks.count);
    Stack& place = out.stacks[number];
    if (place.hash.load() == hash) return number;
    if (place.hash.change(0, hash)) {
      if (write_frames(place, frames, stack.count)) return number;
      break;
    }
    if (place.hash.load() == hash) return number;
  }
  out.dropped[dropped_stacks].add(1);
  return none;
}

uint64_t hash_of_stack(const StackSnapshot& stack) {
  uint64_t hash = stack.count;
  for (uint32_t i = 0; i < stack.count; ++i) {
    const LoadedImage* image = image_at(stack.frames[i]);
    hash = mix(hash, image != nullptr ? image->name_hash : 0);
    hash = mix(hash, image != nullptr ? stack.frames[i] - image->bias : 0);
  }
  return hash;
}

}  // namespace unflake::agent
