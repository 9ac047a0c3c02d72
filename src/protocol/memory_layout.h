#pragma once

#include "protocol/agent_protocol.h"

// How unflake lays out a run's memory, and what the structs in it look like. An agent that was not
// built with unflake needs neither: it reads the directory.
namespace unflake::protocol {

inline constexpr uint32_t max_images = 512;
inline constexpr uint32_t max_processes = 2048;
inline constexpr uint32_t max_threads = 8192;
inline constexpr uint32_t max_sites = 16384;  // hashed, as stacks are
inline constexpr uint32_t max_past_tallies = 131072;
inline constexpr uint32_t max_stacks = 16384;
inline constexpr uint32_t max_frames = 262144;
inline constexpr uint32_t max_failures = 8;
inline constexpr uint32_t max_tables = 320;
inline constexpr uint32_t max_chunks = 4096;
inline constexpr uint32_t max_names = 8192;
inline constexpr uint32_t max_rules = 4096;

// Begins with the report's tables that are the same for every plan.
class MemoryLayout {
 public:
  constexpr MemoryLayout() {
    add(TableKind::images, sizeof(Image), max_images);
    add(TableKind::processes, sizeof(Process), max_processes);
    add(TableKind::threads, sizeof(Thread), max_threads);
    add(TableKind::sites, sizeof(Site), max_sites);
    add(TableKind::past_tallies, sizeof(PastTally), max_past_tallies);
    add(TableKind::stacks, sizeof(Stack), max_stacks);
    add(TableKind::frames, sizeof(Address), max_frames);
    add(TableKind::failures, sizeof(Failure), max_failures);
    add(TableKind::tallies, sizeof(TallyTable), max_tables);
    add(TableKind::chunks, sizeof(Chunk), max_chunks);
    add(TableKind::names, sizeof(CodeName), max_names);
    add(TableKind::titles, sizeof(ThreadTitle), max_threads);
  }

  constexpr Table add(TableKind kind, size_t element_size, size_t count) {
    const Table table{static_cast<uint32_t>(kind), static_cast<uint32_t>(element_size),
                      static_cast<uint32_t>(up_to(end_, table_alignment)),
                      static_cast<uint32_t>(count)};
    tables_[count_++] = table;
    end_ = table.offset + element_size * count;
    return table;
  }

  // The plan is all that is added between the two.
  constexpr void begin_plan() { plan_begin_ = end_ = up_to(end_, page); }
  constexpr void end_plan() { plan_end_ = end_ = up_to(end_, page); }

  constexpr size_t size() const { return up_to(end_, page); }
  constexpr size_t plan_begin() const { return plan_begin_; }
  constexpr size_t plan_end() const { return plan_end_; }

  Header header(uint64_t generation, const Plan& plan) const;

 private:
  static constexpr size_t report_offset = page;
  static constexpr size_t up_to(size_t value, size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
  }

  Table tables_[table_kinds]{};
  size_t count_ = 0;
  size_t end_ = 2 * page;  // after the header and the Report, which have a page each
  size_t plan_begin_ = 0;
  size_t plan_end_ = 0;
};

namespace detail {

template <class Enum>
constexpr size_t number(Enum value) {
  return static_cast<size_t>(value);
}

#define UNFLAKE_FIELD(type, field) offsetof(type, field), sizeof(type::field)

inline constexpr size_t layout_facts[] = {
    // clang-format off
    sizeof(Table), UNFLAKE_FIELD(Table, kind), UNFLAKE_FIELD(Table, element_size),
    UNFLAKE_FIELD(Table, offset), UNFLAKE_FIELD(Table, count),
    sizeof(PlanImage), UNFLAKE_FIELD(PlanImage, path), UNFLAKE_FIELD(PlanImage, build_id_size),
    UNFLAKE_FIELD(PlanImage, build_id), UNFLAKE_FIELD(PlanImage, is_project),
    UNFLAKE_FIELD(PlanImage, first_skip), UNFLAKE_FIELD(PlanImage, skip_count),
    sizeof(SkipRange), UNFLAKE_FIELD(SkipRange, start), UNFLAKE_FIELD(SkipRange, size),
    sizeof(PlanSite), UNFLAKE_FIELD(PlanSite, offset), UNFLAKE_FIELD(PlanSite, image),
    UNFLAKE_FIELD(PlanSite, api), UNFLAKE_FIELD(PlanSite, first_rule),
    UNFLAKE_FIELD(PlanSite, rule_count),
    sizeof(Rule), UNFLAKE_FIELD(Rule, thread), UNFLAKE_FIELD(Rule, duration_ns),
    UNFLAKE_FIELD(Rule, count), UNFLAKE_FIELD(Rule, nth), UNFLAKE_FIELD(Rule, executable),
    UNFLAKE_FIELD(Rule, anchor), UNFLAKE_FIELD(Rule, other), UNFLAKE_FIELD(Rule, action),
    UNFLAKE_FIELD(Rule, position), UNFLAKE_FIELD(Rule, threads), UNFLAKE_FIELD(Rule, visits),
    sizeof(FailureSign), UNFLAKE_FIELD(FailureSign, argument), UNFLAKE_FIELD(FailureSign, offset),
    UNFLAKE_FIELD(FailureSign, accepted),
    sizeof(Probe), UNFLAKE_FIELD(Probe, address), UNFLAKE_FIELD(Probe, target),
    UNFLAKE_FIELD(Probe, site), UNFLAKE_FIELD(Probe, length), UNFLAKE_FIELD(Probe, kind),
    UNFLAKE_FIELD(Probe, aux), UNFLAKE_FIELD(Probe, flags), UNFLAKE_FIELD(Probe, first_byte),
    UNFLAKE_FIELD(Probe, sign),
    sizeof(Plan), UNFLAKE_FIELD(Plan, flags), UNFLAKE_FIELD(Plan, groups),
    UNFLAKE_FIELD(Plan, hold_exit_ns),
    sizeof(Image), UNFLAKE_FIELD(Image, state), UNFLAKE_FIELD(Image, build_id_size),
    UNFLAKE_FIELD(Image, build_id), UNFLAKE_FIELD(Image, is_project), UNFLAKE_FIELD(Image, path),
    sizeof(Process), UNFLAKE_FIELD(Process, state), UNFLAKE_FIELD(Process, pid),
    UNFLAKE_FIELD(Process, parent), UNFLAKE_FIELD(Process, executable),
    UNFLAKE_FIELD(Process, started_ns), UNFLAKE_FIELD(Process, ended_ns),
    UNFLAKE_FIELD(Process, degraded), UNFLAKE_FIELD(Process, agent), UNFLAKE_FIELD(Process, name),
    sizeof(Thread), UNFLAKE_FIELD(Thread, state), UNFLAKE_FIELD(Thread, process),
    UNFLAKE_FIELD(Thread, tid), UNFLAKE_FIELD(Thread, parent), UNFLAKE_FIELD(Thread, name),
    UNFLAKE_FIELD(Thread, thread_class), UNFLAKE_FIELD(Thread, spawn_stack),
    UNFLAKE_FIELD(Thread, ordinal), UNFLAKE_FIELD(Thread, first_chunk),
    UNFLAKE_FIELD(Thread, handle), UNFLAKE_FIELD(Thread, started_ns),
    UNFLAKE_FIELD(Thread, ended_ns), UNFLAKE_FIELD(Thread, events_dropped),
    sizeof(Site), UNFLAKE_FIELD(Site, key), UNFLAKE_FIELD(Site, address), UNFLAKE_FIELD(Site, api),
    UNFLAKE_FIELD(Site, probe), UNFLAKE_FIELD(Site, complete), UNFLAKE_FIELD(Site, visits),
    UNFLAKE_FIELD(Site, waited_ns),
    sizeof(Tally), UNFLAKE_FIELD(Tally, key), UNFLAKE_FIELD(Tally, visits),
    UNFLAKE_FIELD(Tally, waited_ns), UNFLAKE_FIELD(Tally, site),
    sizeof(TallyTable), UNFLAKE_FIELD(TallyTable, thread), UNFLAKE_FIELD(TallyTable, tallies),
    sizeof(PastTally), UNFLAKE_FIELD(PastTally, thread), UNFLAKE_FIELD(PastTally, site),
    UNFLAKE_FIELD(PastTally, visits), UNFLAKE_FIELD(PastTally, waited_ns),
    sizeof(Stack), UNFLAKE_FIELD(Stack, hash), UNFLAKE_FIELD(Stack, complete),
    UNFLAKE_FIELD(Stack, first), UNFLAKE_FIELD(Stack, count), deepest_stack,
    sizeof(CodeName), UNFLAKE_FIELD(CodeName, state), UNFLAKE_FIELD(CodeName, line),
    UNFLAKE_FIELD(CodeName, function), UNFLAKE_FIELD(CodeName, file),
    sizeof(Event), UNFLAKE_FIELD(Event, enter_ns), UNFLAKE_FIELD(Event, exit_ns),
    UNFLAKE_FIELD(Event, object), UNFLAKE_FIELD(Event, value), UNFLAKE_FIELD(Event, site),
    UNFLAKE_FIELD(Event, stack), UNFLAKE_FIELD(Event, result), UNFLAKE_FIELD(Event, api),
    UNFLAKE_FIELD(Event, flags),
    sizeof(Chunk), UNFLAKE_FIELD(Chunk, thread), UNFLAKE_FIELD(Chunk, next),
    UNFLAKE_FIELD(Chunk, written), UNFLAKE_FIELD(Chunk, events),
    sizeof(RuleState), UNFLAKE_FIELD(RuleState, matched), UNFLAKE_FIELD(RuleState, waiters),
    UNFLAKE_FIELD(RuleState, visits), UNFLAKE_FIELD(RuleState, fired),
    UNFLAKE_FIELD(RuleState, added_ns), UNFLAKE_FIELD(RuleState, let_go),
    sizeof(Failure), UNFLAKE_FIELD(Failure, committed), UNFLAKE_FIELD(Failure, kind),
    UNFLAKE_FIELD(Failure, thread), UNFLAKE_FIELD(Failure, signal), UNFLAKE_FIELD(Failure, at_ns),
    UNFLAKE_FIELD(Failure, fault_address), UNFLAKE_FIELD(Failure, line),
    UNFLAKE_FIELD(Failure, frame_count), UNFLAKE_FIELD(Failure, frames),
    UNFLAKE_FIELD(Failure, file), UNFLAKE_FIELD(Failure, message), UNFLAKE_FIELD(Failure, type),
    sizeof(Report), UNFLAKE_FIELD(Report, used), UNFLAKE_FIELD(Report, dropped),
    sizeof(Header), UNFLAKE_FIELD(Header, magic), UNFLAKE_FIELD(Header, version),
    UNFLAKE_FIELD(Header, layout), UNFLAKE_FIELD(Header, generation), UNFLAKE_FIELD(Header, size),
    UNFLAKE_FIELD(Header, report_offset), UNFLAKE_FIELD(Header, plan_begin),
    UNFLAKE_FIELD(Header, plan_end), UNFLAKE_FIELD(Header, table_count),
    UNFLAKE_FIELD(Header, plan), UNFLAKE_FIELD(Header, tables),
    sizeof(ServerHello), UNFLAKE_FIELD(ServerHello, magic), UNFLAKE_FIELD(ServerHello, version),
    UNFLAKE_FIELD(ServerHello, opens_libraries), UNFLAKE_FIELD(ServerHello, refusal),
    sizeof(ServerRequest), UNFLAKE_FIELD(ServerRequest, size),
    UNFLAKE_FIELD(ServerRequest, arguments), UNFLAKE_FIELD(ServerRequest, variables),
    sizeof(ServerReply), UNFLAKE_FIELD(ServerReply, begun), UNFLAKE_FIELD(ServerReply, child),
    offset_bits, unknown_image, named_code, probe_api, delay_api,
    number(TableKind::plan_images), number(TableKind::skips), number(TableKind::plan_sites),
    number(TableKind::rules), number(TableKind::probes), number(TableKind::system_prefixes),
    number(TableKind::api_names), number(TableKind::text), number(TableKind::probe_hits),
    number(TableKind::images), number(TableKind::processes), number(TableKind::threads),
    number(TableKind::sites), number(TableKind::past_tallies), number(TableKind::stacks),
    number(TableKind::frames), number(TableKind::failures), number(TableKind::rule_states),
    number(TableKind::tallies), number(TableKind::chunks), number(TableKind::names),
    number(Action::delay), number(Action::hold), number(Action::replace_time),
    number(Action::watch), number(Action::scale_time), number(Position::before),
    number(Position::after), number(Position::start), number(Threads::any), number(Threads::named),
    number(Threads::in_class), number(Visits::every), number(Visits::only_nth),
    number(Visits::from_nth), number(Visits::halving), number(ProbeKind::copy),
    number(ProbeKind::copy_relative), number(ProbeKind::call), number(ProbeKind::call_indirect),
    number(ProbeKind::jump), number(ProbeKind::jump_if), number(ProbeKind::ret),
    number(ProbeKind::push_rbp), number(ProbeKind::nothing), number(AgentKind::native),
    number(AgentKind::jvm), number(AgentKind::python), number(FailureKind::assertion),
    number(FailureKind::assert_macro), number(FailureKind::abort), number(FailureKind::exception),
    number(FailureKind::thrown_before), number(FailureKind::signal), record_events, record_stacks,
    hold_exit, include_system, capture_failures, no_probe_memory, probe_mismatch, sigtrap_taken,
    no_thread_memory, event_timed_out, event_delayed, event_replaced, event_unfinished,
    probe_one_shot, probe_reports_failure, any_bit, argument_itself, foreign_code, main_thread,
    dropped_images, dropped_processes, dropped_threads, dropped_sites, dropped_tallies,
    dropped_stacks, dropped_events, dropped_failures, dropped_names,
    // clang-format on
};
#undef UNFLAKE_FIELD

inline constexpr uint64_t digest_seed = 0xcbf29ce484222325;
constexpr uint64_t digest(uint64_t before, uint64_t fact) {
  return (before ^ fact) * 0x100000001b3;
}

}  // namespace detail

constexpr uint64_t layout_digest() {
  uint64_t digest = detail::digest_seed;
  for (const size_t fact : detail::layout_facts) digest = detail::digest(digest, fact);
  return digest;
}

// What an agent that was built with unflake compares before it trusts its own structs and
// numbers.
constexpr uint64_t native_layout() {
  uint64_t digest = layout_digest();
  for (const ApiFacts& api : api_facts)
    for (const char* at = api.name; *at != '\0'; ++at)
      digest = detail::digest(digest, static_cast<uint8_t>(*at));
  return digest;
}

inline Header MemoryLayout::header(uint64_t generation, const Plan& plan) const {
  Header header{magic,
                protocol::version,
                native_layout(),
                generation,
                size(),
                report_offset,
                static_cast<uint32_t>(plan_begin_),
                static_cast<uint32_t>(plan_end_),
                static_cast<uint32_t>(count_),
                plan,
                {}};
  for (size_t i = 0; i < count_; ++i) header.tables[i] = tables_[i];
  return header;
}

}  // namespace unflake::protocol
