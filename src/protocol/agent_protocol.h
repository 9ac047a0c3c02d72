#pragma once

#include <stddef.h>
#include <stdint.h>

#include "protocol/timing_apis.h"

// The memory that unflake and the agents inside a test share, one file per run. unflake writes the
// plan before the run and trusts nothing that it reads afterwards: a test may have overwritten
// any of it.
//
// An agent may be written in another language and built at another time, so it takes no offset in
// the memory for granted: the directory in the header says where every table is, how large its
// elements are and how many there is room for.
namespace unflake::protocol {

inline constexpr uint32_t magic = 0x4b4c4655;  // "UFLK"

// The version changes when an agent of the version before could read or write something wrong: when
// a field of a struct is moved, gets another size or another meaning, when a number of an enum
// does, or when an agent must do what it need not do before. It does not for what such an agent
// ignores: a new table, a new kind of action that no plan for it asks for, a field in what was
// unused, or a timing API (agents of other languages find their numbers by name, in the table
// `api_names`).
//
// layout_digest() follows from the size of every struct and the place of every field. A test
// compares it with what is written here: whoever changes one changes both lines.
inline constexpr uint32_t version = 3;
inline constexpr uint64_t layout_of_version = 0x8a0b2159974b1d22;

// "GENERATION:PATH" of the memory. A process that outlives its run would otherwise meet the memory
// of a later one under the same descriptor.
inline constexpr char memory_variable[] = "UNFLAKE_AGENT";

// Of a fork server: the memory of a run, whose probes all runs will have.
inline constexpr char probes_variable[] = "UNFLAKE_AGENT_PROBES";
// The number of the socket on which the agent of a fork server talks to its supervisor.
inline constexpr char fork_server_variable[] = "UNFLAKE_FORK_SERVER";

inline constexpr uint32_t none = 0xffffffff;

// A word that several processes write.
template <class T>
class Shared {
 public:
  T load() const { return __atomic_load_n(&value_, __ATOMIC_ACQUIRE); }
  void store(T value) { __atomic_store_n(&value_, value, __ATOMIC_RELEASE); }
  T add(T more) { return __atomic_fetch_add(&value_, more, __ATOMIC_ACQ_REL); }
  bool change(T from, T to) {
    return __atomic_compare_exchange_n(&value_, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
  }
  // For a word that one thread writes and others only read.
  void add_alone(T more) {
    __atomic_store_n(&value_, __atomic_load_n(&value_, __ATOMIC_RELAXED) + more, __ATOMIC_RELAXED);
  }
  T* raw() { return &value_; }

 private:
  T value_;
};

// A place in code, the same in every process and under every address space layout: the image's
// number in the upper 16 bits, below it the address as the ELF file gives it.
using Address = uint64_t;
inline constexpr int offset_bits = 48;
inline constexpr uint64_t offset_mask = (uint64_t{1} << offset_bits) - 1;
inline constexpr uint32_t unknown_image = 0xffff;  // the offset is then the plain address
inline constexpr uint32_t named_code = 0xfffe;     // the offset is then a number in `names`

constexpr Address make_address(uint32_t image, uint64_t offset) {
  return (uint64_t{image} << offset_bits) | (offset & offset_mask);
}
constexpr uint32_t image_of(Address address) {
  return static_cast<uint32_t>(address >> offset_bits);
}
constexpr uint64_t offset_of(Address address) {
  return address & offset_mask;
}

// --- The directory: what is where. ---

enum class TableKind : uint32_t {
  // The plan, which agents only read.
  plan_images = 0,
  skips = 1,
  plan_sites = 2,
  rules = 3,
  probes = 4,
  system_prefixes = 5,  // uint32_t offsets in `text`: images below them are not project code
  api_names = 6,        // uint32_t offsets in `text`, one for each timing API in order
  text = 7,             // bytes
  // The report, which agents write.
  probe_hits = 8,  // Shared<uint32_t> for each of `probes`
  images = 9,
  processes = 10,
  threads = 11,
  sites = 12,
  past_tallies = 13,
  stacks = 14,
  frames = 15,  // Address
  failures = 16,
  rule_states = 17,  // one for each of `rules`
  tallies = 18,
  chunks = 19,
  names = 20,
  // Of a controlled run: the plan's, and then what the run tells. See schedule_protocol.h.
  schedule = 21,
  decisions = 22,
  selected = 23,   // uint64_t
  remaining = 24,  // uint64_t
  control = 25,
  switch_points = 26,
  enabled = 27,  // uint16_t
  deadlocked = 28,
  accesses = 29,
  access_states = 30,  // Shared<uint32_t> for each of `accesses`
  turns = 31,          // uint64_t: what agents of this version share, of no use to anybody else
  quiescence = 32,     // one Quiescence
  titles = 33,         // ThreadTitle, one for each of `threads`
  count
};
inline constexpr size_t table_kinds = static_cast<size_t>(TableKind::count);

struct Table {
  uint32_t kind;
  uint32_t element_size;
  uint32_t offset;  // from the beginning of the memory, a multiple of table_alignment
  uint32_t count;   // of elements; in the report: how many there is room for
};
inline constexpr size_t table_alignment = 64;

// --- The plan: written by unflake, mapped read-only by the agent. ---

// An executable or library as the plan knows it. The build id decides when both sides have one,
// else the path.
struct PlanImage {
  uint32_t path;  // offset in `text` of a string that ends with 0
  uint32_t build_id_size;
  uint8_t build_id[32];
  uint32_t is_project;
  uint32_t first_skip;  // in `skips`, ordered by start
  uint32_t skip_count;
};

// Code that is not the project's although it is in a project image: what a template of a system
// header became, which works on behalf of its caller, or something foreign, which has its own
// locks.
struct SkipRange {
  uint32_t start;
  uint32_t size;  // with foreign_code or without
};
inline constexpr uint32_t foreign_code = 0x80000000;

// A place that a rule or a probe is about. Ordered by image, then offset, then api.
struct PlanSite {
  uint64_t offset;  // the return address of the call, or the probed address
  uint32_t image;   // in `plan_images`
  uint16_t api;     // number of the timing API, or probe_api
  uint16_t unused;
  uint32_t first_rule;
  uint32_t rule_count;
};
inline constexpr uint16_t probe_api = 0xffff;
inline constexpr uint16_t delay_api = 0xfffe;       // of events only: the plan made the thread late
inline constexpr uint16_t exit_api = 0xfffd;        // the end of main, or exit(): its offset is 0
inline constexpr uint16_t thread_end_api = 0xfffc;  // of any thread but a process's first: the same

enum class Action : uint8_t {
  delay = 0,         // be late by `duration`
  hold = 1,          // wait until the rule `other` has matched `count` times, at most `duration`
  replace_time = 2,  // pass `duration` instead of the time that the call was given
  watch = 3,         // only count: what holds and anchors refer to
  scale_time = 4,    // the same in proportion: `duration` is what a second becomes
};
enum class Position : uint8_t {
  before = 0,
  after = 1,  // of a wait: the woken side; of a thread's creation: in the creator
  start = 2,  // of a thread's creation: in the new thread, before its first line
};
enum class Threads : uint8_t { any = 0, named = 1, in_class = 2 };
enum class Visits : uint8_t {
  every = 0,
  only_nth = 1,  // counted over all threads that match
  from_nth = 2,
  halving = 3,  // every; at the i-th visit of a thread, from 0: duration / 2^i
};

struct Rule {
  uint64_t thread;       // name or class
  uint64_t duration_ns;  // of a delay; the bound of a hold; the new time value or second
  uint64_t count;
  uint64_t nth;         // from 1
  uint32_t executable;  // in `plan_images`; none: any
  uint32_t anchor;      // a watch rule that must have matched before visits count; none: no such
  uint32_t other;
  Action action;
  Position position;
  Threads threads;
  Visits visits;
};

enum class ProbeKind : uint8_t {
  copy,           // executed out of line as it is
  copy_relative,  // the same, with a 32-bit displacement from the instruction pointer at `aux`
  call,           // relative
  call_indirect,  // through a register or memory; its ModRM byte is at `aux`
  jump,
  jump_if,  // `aux` is the condition, 0..15 as in the opcode
  ret,      // pops `target` more bytes
  push_rbp,
  nothing,  // nop, endbr
};

// How the call of a framework's reporter tells a failure from its other uses.
struct FailureSign {
  uint8_t argument;  // the deciding one, from 1, maybe with any_bit; 0: every call is a failure
  uint8_t offset;    // of the deciding byte in what it points to; argument_itself: its own byte
  uint8_t accepted;  // the values of a failure, as bits; with any_bit: bits of the value itself
};
inline constexpr uint8_t any_bit = 0x80;
inline constexpr uint8_t argument_itself = 0xff;

// Instructions that are executed elsewhere, one after the other, so that a jump may take their
// place.
struct MovedCode {
  uint8_t size;      // of all of them
  uint8_t relative;  // where a 32-bit displacement from the instruction pointer is; 0: nowhere
  uint8_t unused;
};

// Ordered by address. Small, because a plan may have hundreds of thousands.
struct Probe {
  Address address;  // its image is one of `plan_images`
  int32_t target;   // of a jump or call: from the end of the instruction
  uint32_t site;    // in `plan_sites`; none: only its hits count
  uint8_t length;   // of the displaced instruction
  ProbeKind kind;
  uint8_t aux;
  uint8_t flags;
  uint8_t first_byte;  // what must be there; another byte means another file
  union {
    FailureSign sign;  // of a probe that reports failures
    MovedCode moved;   // of one that may be a jump
  };
};
inline constexpr uint8_t probe_one_shot = 1;
inline constexpr uint8_t probe_reports_failure = 2;  // a framework's assertion reporter
inline constexpr uint8_t probe_accesses = 4;         // memory: `target` is a number in `accesses`
// Where another library's function is entered: counted, and taken out, when project code calls it
// or what works on its behalf. It stays when a test framework does.
inline constexpr uint8_t probe_of_call = 8;
// A jump to where the hit is noted may be used instead of a breakpoint: nobody enters the code
// behind the entry, and nobody looks at the flags there. Whoever ignores this loses only time.
inline constexpr uint8_t probe_may_jump = 16;

enum PlanFlags : uint32_t {
  record_events = 1,
  record_stacks = 2,
  hold_exit = 4,       // while a delayed thread lives
  include_system = 8,  // sites of calls that system libraries make for themselves
  capture_failures = 16,
};

struct Plan {
  uint32_t flags;
  uint32_t groups;  // bit per group of timing APIs that is switched on
  uint64_t hold_exit_ns;
};

// --- The report: written by the agents of all processes of the run. ---

struct Image {
  Shared<uint32_t> state;  // 0 free, 1 being written, 2 complete
  uint32_t build_id_size;
  uint8_t build_id[32];
  uint32_t is_project;
  char path[980];  // its end is missing when it is longer
};

// What an agent is written for. One process may have several, each with its own Process.
enum class AgentKind : uint32_t {
  native = 0,
  jvm = 1,     // reserved
  python = 2,  // reserved
};

struct Process {
  Shared<uint32_t> state;
  uint32_t pid;
  uint32_t parent;      // number of the process that forked it; none: not known
  uint32_t executable;  // in images
  uint64_t started_ns;  // CLOCK_MONOTONIC, as all times here
  Shared<uint64_t> ended_ns;
  Shared<uint32_t> degraded;  // bits of Degraded
  AgentKind agent;
  char name[64];
};

// What the agent could not do in a process, and so did not.
enum Degraded : uint32_t {
  no_probe_memory = 1,
  probe_mismatch = 2,  // the code is not what the plan was made for
  sigtrap_taken = 4,
  no_thread_memory = 8,
};

// The name of a program's initial thread, and its class.
inline constexpr uint64_t main_thread = 1;

struct Thread {
  Shared<uint32_t> state;  // 0 free, 1 being written, 2 lives, 3 has ended
  uint32_t process;
  uint32_t tid;
  uint32_t parent;  // in threads; none: first thread of a process
  uint64_t name;
  uint64_t thread_class;
  uint32_t spawn_stack;  // in stacks; none: unknown
  uint32_t ordinal;      // how many threads this place had spawned before
  uint32_t first_chunk;  // of events
  uint32_t scheduled;    // its number in a controlled run + 1; 0: it has none
  uint64_t handle;       // its pthread_t, as joins name it
  uint64_t started_ns;
  Shared<uint64_t> ended_ns;
  Shared<uint64_t> events_dropped;
};

// What the program itself calls a thread (pthread_setname_np, prctl). Empty: nothing.
struct ThreadTitle {
  char text[16];  // without a 0 at its end when it is this long
};

// A call of a timing API from one place, or a probe of the plan.
struct Site {
  Shared<uint64_t> key;  // 0: free; the address, with `api` mixed in
  Address address;
  uint16_t api;
  uint16_t unused;
  uint32_t probe;  // in `probes`; none: a call
  Shared<uint32_t> complete;
  uint32_t unused2;
  Shared<uint64_t> visits;  // by threads that had no room themselves
  Shared<uint64_t> waited_ns;
};

// What one thread did at one site. Lives in a table of the thread as long as the thread lives.
struct Tally {
  uint64_t key;  // for the agent alone
  Shared<uint64_t> visits;
  Shared<uint64_t> waited_ns;
  uint32_t site;
  uint16_t plan_site;  // for the agent alone
  uint16_t mode;       // for the agent alone
};
inline constexpr size_t tallies_per_thread = 256;

struct TallyTable {
  Shared<uint32_t> thread;  // its number + 1; 0: free
  uint32_t unused[15];
  Tally tallies[tallies_per_thread];
};

struct PastTally {          // of a thread that has ended
  Shared<uint32_t> thread;  // its number + 1
  uint32_t site;
  uint64_t visits;
  uint64_t waited_ns;
};

struct Stack {
  Shared<uint64_t> hash;  // 0: free
  Shared<uint32_t> complete;
  uint32_t first;  // in frames
  uint32_t count;
  uint32_t unused;
};
inline constexpr size_t deepest_stack = 64;

// Code that is not in an ELF image: interpreted, or compiled at run time. An agent writes
// the name once and then uses its number wherever an address is expected: see named_code.
struct CodeName {
  Shared<uint32_t> state;  // 0 free, 1 being written, 2 complete
  uint32_t line;           // 0: not known
  uint64_t unused;
  char function[240];  // UTF-8, its end is missing when it is longer
  char file[256];
};

enum EventFlags : uint8_t {
  event_timed_out = 1,
  event_delayed = 2,     // an intervention made it late
  event_replaced = 4,    // its time value was changed
  event_unfinished = 8,  // entered and not left
};

struct Event {
  uint64_t enter_ns;
  uint64_t exit_ns;
  uint64_t object;  // mutex, condition variable, descriptor, thread ... as the call names it
  int64_t value;    // the time asked for in ns, or bytes; -1: none
  uint32_t site;
  uint32_t stack;
  int32_t result;
  uint16_t api;
  uint8_t flags;
  uint8_t unused;
};

inline constexpr size_t events_per_chunk = 84;
struct Chunk {
  Shared<uint32_t> thread;   // its number + 1; 0: free
  Shared<uint32_t> next;     // + 1; 0: last
  Shared<uint64_t> written;  // events ever written here: beyond events_per_chunk it wrapped around
  // Of those that were overwritten: left out on purpose, as parts of a burst.
  Shared<uint64_t> left_out;
  uint64_t unused[5];
  Event events[events_per_chunk];
};

struct RuleState {
  Shared<uint32_t> matched;  // a futex: holds wait on it
  Shared<uint32_t> waiters;
  Shared<uint64_t> visits;
  Shared<uint64_t> fired;  // counted when the action starts
  Shared<uint64_t> added_ns;
  Shared<uint64_t> let_go;      // holds that ended at their bound
  Shared<uint64_t> impossible;  // holds that ended because nobody could come
  uint64_t unused;
};

// A thread that a hold keeps waiting, for whoever looks at the test from outside: all others may
// be waiting for it.
struct HeldThread {
  Shared<uint32_t> tid;       // 0: free
  Shared<uint32_t> released;  // from outside: nobody else can go on
  Shared<uint64_t> word;      // the futex at which it waits, as its process addresses it
  Shared<uint64_t> began_ns;
};
inline constexpr size_t most_held = 64;

// What cannot be seen of a process from outside, and would wake or end a thread that waits.
struct Quiescence {
  Shared<uint32_t> timers;  // that were set and send signals
  uint32_t unused;
  HeldThread held[most_held];
};

enum class FailureKind : uint32_t {
  assertion = 0,  // a framework's reporter was called
  assert_macro = 1,
  abort = 2,
  exception = 3,      // uncaught
  thrown_before = 4,  // the last one of a thread that reports an assertion: it may be the reason
  signal = 5,
};

struct Failure {
  Shared<uint32_t> committed;  // written last
  FailureKind kind;
  uint32_t thread;
  int32_t signal;
  uint64_t at_ns;
  uint64_t fault_address;
  uint32_t line;
  uint32_t frame_count;
  Address frames[deepest_stack];
  char file[512];
  char message[1024];
  char type[256];  // of an exception, mangled
};

// What had no room, by kind.
enum Dropped {
  dropped_images = 0,
  dropped_processes = 1,
  dropped_threads = 2,
  dropped_sites = 3,
  dropped_tallies = 4,
  dropped_stacks = 5,
  dropped_events = 6,
  dropped_failures = 7,
  dropped_names = 8,
  dropped_kinds
};

struct Report {
  // Elements of a table that were taken, by kind, for tables that are filled from their beginning.
  // It may run past the table's room: the rest was dropped.
  Shared<uint32_t> used[64];
  Shared<uint64_t> dropped[16];
};
static_assert(table_kinds <= 64 && dropped_kinds <= 16);

inline constexpr size_t most_tables = 64;

struct Header {
  uint32_t magic;
  uint32_t version;
  uint64_t layout;  // for agents that were built with unflake: native_layout()
  uint64_t generation;
  uint64_t size;           // of the whole memory
  uint32_t report_offset;  // of Report
  uint32_t plan_begin;     // agents write nothing from here
  uint32_t plan_end;       // to here; both at the boundary of a page
  uint32_t table_count;    // of `tables`, in any order, each kind once at most
  Plan plan;
  Table tables[most_tables];
};

inline constexpr size_t page = 4096;
static_assert(sizeof(Header) <= page && sizeof(Report) <= page);
static_assert(sizeof(Probe) == 24 && sizeof(CodeName) == 512);
static_assert(sizeof(ThreadTitle) == 16);
static_assert(sizeof(Event) == 48 && sizeof(Tally) == 32 && sizeof(Chunk) == 4096);

// --- The tables, once they are found. ---

template <class T>
struct Elements {
  T* first = nullptr;
  uint32_t count = 0;
  Shared<uint32_t>* used = nullptr;

  T& operator[](size_t number) const { return first[number]; }
  T* begin() const { return first; }
  T* end() const { return first + count; }
};

struct Tables {
  Elements<const PlanImage> plan_images;
  Elements<const SkipRange> skips;
  Elements<const PlanSite> plan_sites;
  Elements<const Rule> rules;
  Elements<const Probe> probes;
  Elements<const uint32_t> system_prefixes;
  Elements<const char> text;

  Elements<Shared<uint32_t>> probe_hits;
  Elements<Image> images;
  Elements<Process> processes;
  Elements<Thread> threads;
  Elements<Site> sites;
  Elements<PastTally> past_tallies;
  Elements<Stack> stacks;
  Elements<Address> frames;
  Elements<Failure> failures;
  Elements<RuleState> rule_states;
  Elements<TallyTable> tallies;
  Elements<Chunk> chunks;
  Elements<CodeName> names;
  Elements<ThreadTitle> titles;  // none: whoever laid out the memory knows of no titles
  Shared<uint64_t>* dropped = nullptr;
};

// Where a table of this kind is; false: the directory has none, or one that is not within the
// memory or has other elements.
template <class T>
bool find_table(char* base, const Header& header, TableKind kind, Elements<T>& found) {
  for (uint32_t i = 0; i < header.table_count && i < most_tables; ++i) {
    const Table& table = header.tables[i];
    if (table.kind != static_cast<uint32_t>(kind)) continue;
    if (table.element_size != sizeof(T) || table.offset % table_alignment != 0 ||
        table.offset > header.size || table.count > (header.size - table.offset) / sizeof(T))
      return false;
    auto& report = *reinterpret_cast<Report*>(base + header.report_offset);
    found = {reinterpret_cast<T*>(base + table.offset), table.count,
             &report.used[static_cast<size_t>(kind)]};
    return true;
  }
  return false;
}

// The same for one that need not be there.
template <class T>
bool find_if_there(char* base, const Header& header, TableKind kind, Elements<T>& found) {
  for (uint32_t i = 0; i < header.table_count && i < most_tables; ++i)
    if (header.tables[i].kind == static_cast<uint32_t>(kind))
      return find_table(base, header, kind, found);
  found = {};
  return true;
}

// `header` is the memory's own or, for whoever does not trust that, a copy of what was written.
inline bool find_tables(char* base, const Header& header, Tables& tables) {
  if (header.size < sizeof(Report) || header.report_offset > header.size - sizeof(Report) ||
      header.report_offset % table_alignment != 0)
    return false;
  tables.dropped = reinterpret_cast<Report*>(base + header.report_offset)->dropped;
  const auto find = [&](TableKind kind, auto& found) {
    return find_table(base, header, kind, found);
  };
  using Kind = TableKind;
  return find(Kind::plan_images, tables.plan_images) && find(Kind::skips, tables.skips) &&
         find(Kind::plan_sites, tables.plan_sites) && find(Kind::rules, tables.rules) &&
         find(Kind::probes, tables.probes) && find(Kind::system_prefixes, tables.system_prefixes) &&
         find(Kind::text, tables.text) && find(Kind::probe_hits, tables.probe_hits) &&
         find(Kind::images, tables.images) && find(Kind::processes, tables.processes) &&
         find(Kind::threads, tables.threads) && find(Kind::sites, tables.sites) &&
         find(Kind::past_tallies, tables.past_tallies) && find(Kind::stacks, tables.stacks) &&
         find(Kind::frames, tables.frames) && find(Kind::failures, tables.failures) &&
         find(Kind::rule_states, tables.rule_states) && find(Kind::tallies, tables.tallies) &&
         find(Kind::chunks, tables.chunks) && find(Kind::names, tables.names) &&
         find_if_there(base, header, Kind::titles, tables.titles) &&
         tables.probe_hits.count == tables.probes.count &&
         tables.rule_states.count == tables.rules.count && tables.sites.count > 0 &&
         tables.stacks.count > 0 && tables.tallies.count > 0;  // they are hashed
}

// --- The fork server: a process stopped before its main, which forks one child for each run. ---

// The first word of the server, once all static constructors are done.
struct ServerHello {
  uint32_t magic;
  uint32_t version;
  uint32_t opens_libraries;  // whether it could load more of them
  char refusal[244];         // why it cannot serve; empty: it serves
};

// The server keeps one child ready, which takes the next request, so that a run does not wait
// for the fork. With a request come the descriptors for standard output and standard error. After
// it: the program's arguments, then what becomes of variables of the environment, as "NAME=VALUE"
// or as "NAME" for one that is removed; each ends with 0. There are no more new variables than
// the agent's own.
struct ServerRequest {
  uint32_t size;  // of what follows it
  uint32_t arguments;
  uint32_t variables;
};
inline constexpr uint32_t largest_request = 16u << 20;

// From the server, for each ready child; and from the child itself, when all that is left to do is
// to call main.
struct ServerReply {
  uint32_t begun;
  int32_t child;  // its pid, or a negated errno
};

}  // namespace unflake::protocol
