#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/trace.h"
#include "protocol/agent_protocol.h"

namespace unflake {

// A run's report as the agents wrote it, but safe: every number refers to something that is there
// or is `no_index`, every time lies within the run, every text is bounded. Nothing is named yet.

struct RawProcess {
  uint32_t pid = 0;
  uint32_t parent = no_index;
  uint32_t executable = no_index;
  uint64_t started_ns = 0;  // since the memory was made, as all times here
  uint32_t degraded = 0;
  protocol::AgentKind agent = protocol::AgentKind::native;
  std::string name;
};

struct RawThread {
  uint32_t process = no_index;
  uint32_t tid = 0;
  uint32_t parent = no_index;
  uint64_t name = 0;
  uint64_t thread_class = 0;
  uint32_t spawn_stack = no_index;
  uint32_t ordinal = 0;
  uint64_t started_ns = 0;
  uint64_t ended_ns = 0;  // 0: it lived as long as its process
  uint64_t calls_dropped = 0;
  uint32_t scheduled = no_index;  // its number in a controlled run
  std::string title;              // that the program gave it; any bytes
};

// Code that is not in an image, as its agent calls it. No two of a report are the same.
struct RawName {
  std::string function, file;
  int line = 0;  // 0: not known
  auto operator<=>(const RawName&) const = default;
};

// A place in an image of the report, or a name. With neither it is a plain address.
struct RawAddress {
  uint32_t image = no_index;
  uint64_t offset = 0;
  uint32_t name = no_index;
  auto operator<=>(const RawAddress&) const = default;
};

struct RawSite {
  RawAddress address;
  uint16_t api = 0;           // below the number of APIs, or protocol::probe_api
  uint32_t probe = no_index;  // in the plan
};

struct RawTally {
  uint32_t thread = no_index;  // no_index: of threads that had no room of their own
  uint32_t site = no_index;
  uint64_t visits = 0;
  uint64_t waited_ns = 0;
};

struct RawCall {
  uint64_t enter_ns = 0;
  uint64_t exit_ns = 0;
  uint64_t object = 0;
  int64_t value = -1;
  uint32_t thread = no_index;
  uint32_t site = no_index;
  uint32_t stack = no_index;
  int32_t result = 0;
  uint8_t flags = 0;
  bool is_intervention = false;  // the plan's own delay or hold at the site, not a call
};

struct RawRule {
  uint64_t visits = 0;
  uint64_t fired = 0;
  uint64_t added_ns = 0;
  uint64_t let_go = 0;
  uint64_t impossible = 0;
};

struct RawFailure {
  protocol::FailureKind kind = protocol::FailureKind::abort;
  uint32_t thread = no_index;
  int32_t signal = 0;
  uint64_t at_ns = 0;
  uint64_t fault_address = 0;
  uint32_t line = 0;
  std::vector<RawAddress> frames;
  std::string file, message, type;
};

struct RawPoint {
  uint64_t object = 0;
  uint32_t thread = 0;
  uint32_t site = no_index;
  bool writes = false;
  uint32_t chosen = 0;
  std::vector<uint32_t> enabled;
  RawAddress place{};  // of the object, when races are watched
  uint32_t stack = no_index;
  std::vector<uint32_t> ready{};  // of `enabled`, where threads may be stalled
  uint32_t time_us = 0;
};

struct RawStuckThread {
  uint32_t thread = 0;
  uint32_t site = no_index;
  uint64_t object = 0;
  uint32_t held_by = no_index;
};

struct RawControl {
  bool refused = false;  // `reason` says why
  bool left = false;     // the run may be another one next time, and `reason` says why
  std::string reason;
  uint64_t digest = 0;
  uint64_t points_in_all = 0;
  uint64_t switches = 0;
  uint64_t virtual_ns = 0;
  std::vector<RawPoint> points;
  std::vector<RawStuckThread> deadlock;
  std::vector<uint32_t> shared_accesses;  // in the plan
  std::vector<uint32_t> hot_accesses;
  uint64_t guarded_accesses = 0;  // by a lock, and so not shared
};

struct RawTrace {
  std::vector<TracedImage> images;
  std::vector<RawName> names;
  std::vector<RawProcess> processes;
  std::vector<RawThread> threads;
  std::vector<RawSite> sites;
  std::vector<RawTally> tallies;
  std::vector<std::vector<RawAddress>> stacks;
  std::vector<RawCall> calls;  // by thread, each thread's in order of `enter_ns`
  std::vector<RawRule> rules;  // as in the plan
  std::vector<RawFailure> failures;
  std::vector<uint32_t> probe_hits;  // as in the plan
  std::vector<Drops> drops;
  uint64_t calls_left_out = 0;  // parts of bursts
  std::vector<std::string> problems;
  std::optional<RawControl> control;  // when a process was controlled, or refused it
};

// What unflake itself knows about the memory, and so need not believe.
struct MemoryShape {
  protocol::Header header{};  // as it was written
  uint64_t made_ns = 0;       // CLOCK_MONOTONIC
  uint64_t read_ns = 0;
};

// Reads a copy of a run's memory, aligned as the memory was, that nobody else writes any more.
// Whatever its bytes are, the result is safe; what was not believed is in `problems`.
RawTrace read_raw_trace(std::span<const std::byte> memory, const MemoryShape& shape);

}  // namespace unflake
