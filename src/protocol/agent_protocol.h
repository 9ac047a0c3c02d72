#pragma once

#include <stddef.h>
#include <stdint.h>

#include "protocol/timing_apis.h"

// The memory that unflake and the agent inside a test share, one file per run. unflake writes the
// plan before the run and believes nothing that it reads afterwards: a test may have written over
// any of it.
namespace unflake::protocol {

inline constexpr uint32_t magic = 0x4b4c4655;  // "UFLK"
inline constexpr uint32_t version = 2;

// "GENERATION:PATH" of the memory. A process that outlives its run would otherwise meet the memory
// of a later one behind the same descriptor.
inline constexpr char memory_variable[] = "UNFLAKE_AGENT";

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

constexpr Address make_address(uint32_t image, uint64_t offset) {
  return (uint64_t{image} << offset_bits) | (offset & offset_mask);
}
constexpr uint32_t image_of(Address address) {
  return static_cast<uint32_t>(address >> offset_bits);
}
constexpr uint64_t offset_of(Address address) {
  return address & offset_mask;
}

// --- The plan: written by unflake, mapped read-only by the agent. ---

struct Table {      // an array in the plan
  uint32_t offset;  // from the beginning of the memory, a multiple of 8
  uint32_t count;
};

// An executable or library as the plan knows it. The build id decides when both sides have one,
// else the path.
struct PlanImage {
  uint32_t path;  // offset in `Plan::text` of a string that ends with 0
  uint32_t build_id_size;
  uint8_t build_id[32];
  uint32_t is_project;
  uint32_t first_skip;  // in Plan::skips, ordered by start
  uint32_t skip_count;
};

// Code that is not the project's although it is in a project image: what a template of a system
// header became, which works on behalf of its caller, or something foreign, which has locks of its
// own.
struct SkipRange {
  uint32_t start;
  uint32_t size;  // with foreign_code or without
};
inline constexpr uint32_t foreign_code = 0x80000000;

// A place that a rule or a probe is about. Ordered by image, then offset, then api.
struct PlanSite {
  uint64_t offset;  // the return address of the call, or the probed address
  uint32_t image;   // in Plan::images
  uint16_t api;     // number of the timing API, or probe_api
  uint16_t unused;
  uint32_t first_rule;
  uint32_t rule_count;
};
inline constexpr uint16_t probe_api = 0xffff;
inline constexpr uint16_t delay_api = 0xfffe;  // of events only: the plan made the thread late

enum class Action : uint8_t {
  delay,         // be late by `duration`
  hold,          // wait until the rule `other` has matched `count` times, at most `duration`
  replace_time,  // pass `duration` instead of the time that the call was given
  watch,         // nothing but to count: what holds and anchors refer to
  scale_time,    // the same in proportion: `duration` is what a second becomes
};
enum class Position : uint8_t {
  before,
  after,  // of a wait: the woken side; of a thread's creation: in the creator
  start,  // of a thread's creation: in the new thread, before its first line
};
enum class Threads : uint8_t { any, named, in_class };
enum class Visits : uint8_t {
  every,
  only_nth,  // counted over all threads that match
  from_nth,
  halving,  // every; at the i-th visit of a thread, from 0: duration / 2^i
};

struct Rule {
  uint64_t thread;       // name or class
  uint64_t duration_ns;  // of a delay; the bound of a hold; the new time value or second
  uint64_t count;
  uint64_t nth;         // from 1
  uint32_t executable;  // in Plan::images; none: any
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

// How the call of a framework's reporter tells a failure from what else it is made for.
struct FailureSign {
  uint8_t argument;  // which one tells, from 1, with any_bit or without; 0: every call is a failure
  uint8_t offset;    // of the byte that tells in what it points to; argument_itself: its own byte
  uint8_t accepted;  // the values of a failure, as bits; with any_bit: bits of the value itself
};
inline constexpr uint8_t any_bit = 0x80;
inline constexpr uint8_t argument_itself = 0xff;

// Ordered by address. Small, because a plan may have hundreds of thousands.
struct Probe {
  Address address;  // its image is one of Plan::images
  int32_t target;   // of a jump or call: from the end of the instruction
  uint32_t site;    // in Plan::sites; none: only its hits count
  uint8_t length;   // of the displaced instruction
  ProbeKind kind;
  uint8_t aux;
  uint8_t flags;
  uint8_t first_byte;  // what must be there; another byte means another file
  FailureSign sign;    // of a probe that reports failures
};
inline constexpr uint8_t probe_one_shot = 1;
inline constexpr uint8_t probe_reports_failure = 2;  // a framework's assertion reporter

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
  Table images;
  Table skips;
  Table sites;
  Table rules;
  Table probes;
  Table probe_hits;       // Shared<uint32_t> per probe; outside of the read-only part
  Table system_prefixes;  // uint32_t offsets in `text`: images below them are no project code
  Table text;             // bytes
};

// --- The report: written by the agents of all processes of the run. ---

struct Image {
  Shared<uint32_t> state;  // 0 free, 1 being written, 2 complete
  uint32_t build_id_size;
  uint8_t build_id[32];
  uint32_t is_project;
  char path[980];  // its end is missing when it is longer
};

struct Process {
  Shared<uint32_t> state;
  uint32_t pid;
  uint32_t parent;      // number of the process that forked it; none: not known
  uint32_t executable;  // in images
  uint64_t started_ns;  // CLOCK_MONOTONIC, as all times here
  Shared<uint64_t> ended_ns;
  Shared<uint32_t> degraded;  // bits of Degraded
  uint32_t unused;
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
  uint32_t unused;
  uint64_t handle;  // its pthread_t, as joins name it
  uint64_t started_ns;
  Shared<uint64_t> ended_ns;
  Shared<uint64_t> events_dropped;
};

// A call of a timing API from one place, or a probe of the plan.
struct Site {
  Shared<uint64_t> key;  // 0: free; the address, with `api` mixed in
  Address address;
  uint16_t api;
  uint16_t unused;
  uint32_t probe;  // in Plan::probes; none: a call
  Shared<uint32_t> complete;
  uint32_t unused2;
  Shared<uint64_t> visits;  // by threads that had no room of their own
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
  uint64_t unused[6];
  Event events[events_per_chunk];
};

struct RuleState {
  Shared<uint32_t> matched;  // a futex: holds wait on it
  Shared<uint32_t> waiters;
  Shared<uint64_t> visits;
  Shared<uint64_t> fired;  // counted when the action starts
  Shared<uint64_t> added_ns;
  Shared<uint64_t> let_go;  // holds that ended at their bound
  uint64_t unused[2];
};

enum class FailureKind : uint32_t {
  assertion,  // a framework's reporter was called
  assert_macro,
  abort,
  exception,      // that nobody caught
  thrown_before,  // the last one of a thread that reports an assertion: it may be the reason
  signal,
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

enum Dropped {
  dropped_images,
  dropped_processes,
  dropped_threads,
  dropped_sites,
  dropped_tallies,
  dropped_stacks,
  dropped_events,
  dropped_failures,
  dropped_kinds
};

inline constexpr size_t max_images = 512;
inline constexpr size_t max_processes = 2048;
inline constexpr size_t max_threads = 8192;
inline constexpr size_t max_sites = 8192;  // a power of two: hashed
inline constexpr size_t max_tables = 320;
inline constexpr size_t max_past_tallies = 49152;
inline constexpr size_t max_stacks = 8192;  // a power of two: hashed
inline constexpr size_t max_frames = 131072;
inline constexpr size_t max_chunks = 1280;
inline constexpr size_t max_failures = 8;
inline constexpr size_t max_rules = 4096;

struct Report {
  Shared<uint32_t> images_used;  // these counts may run past the capacity: the rest was dropped
  Shared<uint32_t> processes_used;
  Shared<uint32_t> threads_used;
  Shared<uint32_t> past_tallies_used;
  Shared<uint32_t> frames_used;
  Shared<uint32_t> chunks_used;
  Shared<uint32_t> failures_used;
  Shared<uint64_t> dropped[dropped_kinds];

  Image images[max_images];
  Process processes[max_processes];
  Thread threads[max_threads];
  Site sites[max_sites];
  PastTally past_tallies[max_past_tallies];
  Stack stacks[max_stacks];
  Address frames[max_frames];
  Failure failures[max_failures];
  RuleState rules[max_rules];
  alignas(64) TallyTable tables[max_tables];
  alignas(64) Chunk chunks[max_chunks];
};

struct Header {
  uint32_t magic;
  uint32_t version;
  uint64_t generation;
  uint64_t size;  // of the whole memory
  uint32_t report_offset;
  uint32_t plan_end;  // of the plan's tables, which begin at tables_offset; the probe hits follow
  Plan plan;
};

// The memory: header; the report; from the next page on the plan's tables, then the probe hits.
inline constexpr size_t page = 4096;
inline constexpr size_t report_offset = page;
inline constexpr size_t tables_offset = (report_offset + sizeof(Report) + page - 1) / page * page;

static_assert(sizeof(Header) <= page);
static_assert(sizeof(Probe) == 24);
static_assert(sizeof(Event) == 48 && sizeof(Tally) == 32 && sizeof(Chunk) == 4096);
static_assert(tables_offset < (size_t{13} << 20));

// --- The fork server: a process that stands before its main and forks one child for each run. ---

// The first word of the server, once all static constructors are done.
struct ServerHello {
  uint32_t magic;
  uint32_t version;
  uint32_t opens_libraries;  // whether it could load more of them
  char refusal[244];         // why it cannot serve; empty: it serves
};

// The server keeps one child in stock, which takes the next request, so that a run does not wait
// for the fork. With a request come the descriptors for standard output and standard error. Behind
// it: the program's arguments, then what becomes of variables of the environment, as "NAME=VALUE"
// or as "NAME" for one that is taken out; each ends with 0. There are no more new variables than
// the agent's own.
struct ServerRequest {
  uint32_t size;  // of what is behind it
  uint32_t arguments;
  uint32_t variables;
};
inline constexpr uint32_t largest_request = 16u << 20;

// From the server, for each child in stock; and from the child itself, when all that is left to do
// is to call main.
struct ServerReply {
  uint32_t begun;
  int32_t child;  // its pid, or a negated errno
};

}  // namespace unflake::protocol
