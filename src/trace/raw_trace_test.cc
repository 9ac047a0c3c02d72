#include "trace/raw_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>

#include <random>

#include "support/fake_agent.h"

namespace unflake {
namespace {

using namespace protocol;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t t0 = FakeMemory::made_ns;

// A test with two threads, three sites and a failure.
struct Valid {
  Valid() : memory(2, 3), agent(memory.report()) {
    image = agent.image("/build/server_test");
    process = agent.process(image, t0 + 10);
    main = agent.thread(process, 11, 12, t0 + 20);
    spawn = agent.stack({make_address(image, 0x100), make_address(unknown_image, 0x200)});
    worker = agent.thread(process, 21, 22, t0 + 30, main, spawn, 1);
    lock = agent.site(make_address(image, 0x1000), Api::pthread_mutex_lock);
    sleep = agent.site(make_address(image, 0x2000), Api::nanosleep);
    probe = agent.probe_site(make_address(image, 0x3000), 2);
    agent.tally(main, lock, 5, 700);
    agent.past(worker, sleep, 3, 900);
    for (uint64_t i = 0; i < 200; ++i) agent.event(main, lock, t0 + 100 + i, t0 + 101 + i, spawn);
    agent.event(worker, sleep, t0 + 50, t0 + 60);
    agent.failure(protocol::FailureKind::assertion, worker, t0 + 400,
                  {make_address(image, 0x4000), make_address(image, 0x5000)});
    memory.report().rule_states[1].fired.store(4);
    memory.report().probe_hits[2].store(9);
  }
  FakeMemory memory;
  FakeAgent agent;
  uint32_t image, process, main, worker, spawn, lock, sleep, probe;
};

TEST(RawTraceReader, Reads_what_an_agent_wrote) {
  Valid valid;
  const RawTrace raw = valid.memory.read();
  EXPECT_THAT(raw.problems, IsEmpty());
  EXPECT_THAT(raw.drops, IsEmpty());
  ASSERT_THAT(raw.images, SizeIs(1));
  EXPECT_EQ(raw.images[0].path, "/build/server_test");
  ASSERT_THAT(raw.threads, SizeIs(2));
  EXPECT_EQ(raw.threads[1].parent, 0u);
  EXPECT_EQ(raw.threads[1].ordinal, 1u);
  EXPECT_EQ(raw.threads[1].started_ns, 30u);
  EXPECT_EQ(raw.stacks[raw.threads[1].spawn_stack].size(), 2u);
  EXPECT_EQ(raw.stacks[raw.threads[1].spawn_stack][1].image, no_index);
  ASSERT_THAT(raw.sites, SizeIs(3));
  EXPECT_EQ(raw.sites[2].probe, 2u);
  ASSERT_THAT(raw.calls, SizeIs(201));
  EXPECT_EQ(raw.calls[199].enter_ns, 299u);
  EXPECT_EQ(raw.calls[200].thread, 1u);
  EXPECT_EQ(raw.rules[1].fired, 4u);
  EXPECT_EQ(raw.probe_hits[2], 9u);
  ASSERT_THAT(raw.failures, SizeIs(1));
  EXPECT_EQ(raw.failures[0].frames[1].offset, 0x5000u);
}

TEST(RawTraceReader, Counts_of_living_and_of_ended_threads_are_both_there) {
  Valid valid;
  const RawTrace raw = valid.memory.read();
  ASSERT_THAT(raw.tallies, SizeIs(2));
  EXPECT_EQ(raw.tallies[0].visits, 5u);
  EXPECT_EQ(raw.tallies[1].waited_ns, 900u);
}

TEST(RawTraceReader, A_ring_that_wrapped_around_is_read_in_order_and_tells_what_it_lost) {
  Valid valid;
  valid.agent.most_chunks = 0;
  for (uint64_t i = 0; i < 100; ++i)
    valid.agent.event(valid.worker, valid.sleep, t0 + 100 + i, t0 + 100 + i);
  const RawTrace raw = valid.memory.read();
  EXPECT_EQ(raw.threads[1].calls_dropped, 101 - events_per_chunk);
  ASSERT_THAT(raw.drops, SizeIs(1));
  EXPECT_EQ(raw.drops[0].what, "calls");
  EXPECT_EQ(raw.calls.back().enter_ns, 199u);
  EXPECT_EQ(raw.calls[raw.calls.size() - events_per_chunk].enter_ns, 200 - events_per_chunk);
}

TEST(RawTraceReader, What_was_left_out_of_a_burst_is_not_lost) {
  Valid valid;
  valid.agent.most_chunks = 0;
  for (uint64_t i = 0; i < 100; ++i)
    valid.agent.event(valid.worker, valid.sleep, t0 + 100 + i, t0 + 100 + i);
  Chunk& chunk =
      valid.memory.report().chunks[valid.memory.report().threads[valid.worker].first_chunk];
  chunk.left_out.store(10);
  EXPECT_EQ(valid.memory.read().calls_left_out, 10u);
  EXPECT_EQ(valid.memory.read().threads[1].calls_dropped, 91 - events_per_chunk);
  chunk.left_out.store(1u << 30);
  EXPECT_EQ(valid.memory.read().calls_left_out, 101 - events_per_chunk);
  EXPECT_EQ(valid.memory.read().threads[1].calls_dropped, 0u);
}

TEST(RawTraceReader, A_thread_has_the_name_that_its_program_gave_it) {
  Valid valid;
  ::strcpy(valid.memory.report().titles[valid.worker].text, "flusher");
  ::memset(valid.memory.report().titles[valid.main].text, 'x', sizeof(ThreadTitle));
  const RawTrace raw = valid.memory.read();
  EXPECT_EQ(raw.threads[1].title, "flusher");
  EXPECT_EQ(raw.threads[0].title, std::string(sizeof(ThreadTitle), 'x'));
}

TEST(RawTraceReader, Chunks_in_a_circle_end) {
  Valid valid;
  valid.memory.report().chunks[2].next.store(1);
  const RawTrace raw = valid.memory.read();
  EXPECT_THAT(raw.problems, Contains(HasSubstr("in a circle")));
}

TEST(RawTraceReader, A_chunk_of_another_thread_is_not_read) {
  Valid valid;
  valid.memory.report().threads[valid.worker].first_chunk = 0;
  EXPECT_THAT(valid.memory.read().calls, SizeIs(200));
}

TEST(RawTraceReader, A_stack_beyond_the_frames_is_left_out) {
  Valid valid;
  valid.memory.report().stacks[valid.spawn].first = max_frames - 1;
  const RawTrace raw = valid.memory.read();
  EXPECT_EQ(raw.threads[1].spawn_stack, no_index);
  EXPECT_THAT(raw.problems, Contains(HasSubstr("stacks lie outside")));
}

TEST(RawTraceReader, What_was_not_written_to_the_end_is_left_out_and_told) {
  Valid valid;
  valid.memory.report().threads[valid.worker].state.store(1);
  const RawTrace raw = valid.memory.read();
  EXPECT_THAT(raw.threads, SizeIs(1));
  EXPECT_EQ(raw.failures[0].thread, no_index);
  EXPECT_THAT(raw.problems, Contains(HasSubstr("threads were not written")));
}

TEST(RawTraceReader, Times_stay_within_the_run) {
  Valid valid;
  valid.agent.event(valid.main, valid.lock, 5, ~uint64_t{0});
  const RawTrace raw = valid.memory.read();
  EXPECT_EQ(raw.calls[0].enter_ns, 0u);
  EXPECT_EQ(raw.calls[0].exit_ns, valid.memory.shape.read_ns - t0);
  EXPECT_THAT(raw.problems, Contains(HasSubstr("outside of the run")));
}

TEST(RawTraceReader, A_call_that_never_returned_lasts_to_the_end) {
  Valid valid;
  valid.agent.event(valid.worker, valid.lock, t0 + 500, 0).flags = event_unfinished;
  const RawTrace raw = valid.memory.read();
  EXPECT_EQ(raw.calls.back().exit_ns, valid.memory.shape.read_ns - t0);
  EXPECT_TRUE(raw.calls.back().flags & event_unfinished);
}

TEST(RawTraceReader, A_text_without_an_end_is_cut) {
  Valid valid;
  protocol::Failure& failure = valid.memory.report().failures[0];
  std::fill_n(failure.message, sizeof failure.message, 'x');
  EXPECT_EQ(valid.memory.read().failures[0].message.size(), sizeof failure.message);
}

TEST(RawTraceReader, Counts_past_the_capacity_are_clamped) {
  Valid valid;
  const Tables& report = valid.memory.report();
  for (Shared<uint32_t>* count :
       {report.images.used, report.names.used, report.processes.used, report.threads.used,
        report.past_tallies.used, report.frames.used, report.chunks.used, report.failures.used})
    count->store(0xffffffff);
  report.dropped[dropped_threads].store(12);
  const RawTrace raw = valid.memory.read();
  EXPECT_THAT(raw.threads, SizeIs(2));
  ASSERT_THAT(raw.drops, SizeIs(1));
  EXPECT_EQ(raw.drops[0].what, "threads");
}

// Every number in what was read must be safe to use.
void expect_consistent(const RawTrace& raw) {
  const auto fits = [](uint32_t number, const auto& table) {
    return number == no_index || number < table.size();
  };
  for (const RawProcess& process : raw.processes)
    ASSERT_TRUE(fits(process.parent, raw.processes) && fits(process.executable, raw.images));
  for (size_t i = 0; i < raw.threads.size(); ++i) {
    const RawThread& thread = raw.threads[i];
    ASSERT_LT(thread.process, raw.processes.size());
    ASSERT_TRUE(thread.parent == no_index || thread.parent < i);
    ASSERT_TRUE(fits(thread.spawn_stack, raw.stacks));
  }
  for (const RawTally& tally : raw.tallies)
    ASSERT_TRUE(fits(tally.thread, raw.threads) && tally.site < raw.sites.size());
  for (const RawCall& event : raw.calls)
    ASSERT_TRUE(event.thread < raw.threads.size() && event.site < raw.sites.size() &&
                fits(event.stack, raw.stacks) && event.enter_ns <= event.exit_ns);
  for (const auto& stack : raw.stacks)
    for (const RawAddress& frame : stack)
      ASSERT_TRUE(fits(frame.image, raw.images) && fits(frame.name, raw.names));
  for (const RawFailure& failure : raw.failures)
    ASSERT_TRUE(fits(failure.thread, raw.threads) && failure.frames.size() <= deepest_stack);
}

void fill_randomly(std::span<std::byte> bytes, std::mt19937_64& random) {
  for (size_t at = 0; at + 8 <= bytes.size(); at += 8)
    *reinterpret_cast<uint64_t*>(&bytes[at]) = random();
}

TEST(RawTraceReader, Survives_random_bytes_everywhere) {
  std::mt19937_64 random(1);
  FakeMemory memory(5, 1000);
  for (int round = 0; round < 3; ++round) {
    fill_randomly(memory.bytes(), random);
    expect_consistent(memory.read());
  }
}

TEST(RawTraceReader, Survives_all_ones) {
  FakeMemory memory(4096, 1000);
  std::ranges::fill(memory.bytes(), std::byte{0xff});
  expect_consistent(memory.read());
}

// Small numbers look more like the real thing than random ones: states are right by chance.
TEST(RawTraceReader, Survives_small_numbers_everywhere) {
  std::mt19937_64 random(2);
  for (const uint64_t mask : {0x0303030303030303u, 0x0000000300000003u, 0x0000000700000001u}) {
    FakeMemory memory(5, 4);
    for (size_t at = 0; at + 8 <= memory.bytes().size(); at += 8)
      *reinterpret_cast<uint64_t*>(&memory.bytes()[at]) = random() & mask;
    expect_consistent(memory.read());
  }
}

TEST(RawTraceReader, Survives_flips_in_a_valid_report) {
  std::mt19937_64 random(3);
  Valid valid;
  std::vector<size_t> written;
  for (size_t at = 0; at < valid.memory.bytes().size(); ++at)
    if (valid.memory.bytes()[at] != std::byte{0}) written.push_back(at);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::pair<size_t, std::byte>> undo;
    for (int flip = 0; flip < 50; ++flip) {
      const size_t at = written[random() % written.size()];
      undo.emplace_back(at, valid.memory.bytes()[at]);
      valid.memory.bytes()[at] ^= std::byte(1u << random() % 8);
    }
    expect_consistent(valid.memory.read());
    for (auto change = undo.rbegin(); change != undo.rend(); ++change)
      valid.memory.bytes()[change->first] = change->second;
  }
}

TEST(RawTraceReader, A_frame_may_have_a_name_instead_of_an_address) {
  Valid valid;
  const Address get = valid.agent.name("Queue.get", "/src/queue.py", 40);
  const uint32_t stack = valid.agent.stack({get, make_address(valid.image, 0x100)});
  valid.memory.report().threads[valid.worker].spawn_stack = stack;
  const RawTrace raw = valid.memory.read();
  EXPECT_THAT(raw.problems, IsEmpty());
  ASSERT_THAT(raw.names, SizeIs(1));
  EXPECT_EQ(raw.names[0], (RawName{"Queue.get", "/src/queue.py", 40}));
  const std::vector<RawAddress>& frames = raw.stacks[raw.threads[1].spawn_stack];
  EXPECT_EQ(frames[0].name, 0u);
  EXPECT_EQ(frames[0].image, no_index);
  EXPECT_EQ(frames[1].name, no_index);
}

TEST(RawTraceReader, A_name_that_was_given_twice_is_one) {
  Valid valid;
  valid.agent.name("f", "/src/a.py", 1);
  const Address again = valid.agent.name("f", "/src/a.py", 1);
  const Address other = valid.agent.name("f", "/src/a.py", 2);
  const uint32_t stack = valid.agent.stack({again, other});
  valid.memory.report().threads[valid.worker].spawn_stack = stack;
  const RawTrace raw = valid.memory.read();
  const std::vector<RawAddress>& frames = raw.stacks[raw.threads[1].spawn_stack];
  EXPECT_EQ(frames[0].name, 0u);
  EXPECT_EQ(frames[1].name, 1u);
}

TEST(RawTraceReader, A_name_that_is_not_there_is_a_plain_frame_and_told) {
  Valid valid;
  const Address half = valid.agent.name("f", "/src/a.py", 1);
  valid.memory.report().names[0].state.store(1);
  const uint32_t stack =
      valid.agent.stack({half, make_address(named_code, 7), make_address(named_code, offset_mask)});
  valid.memory.report().threads[valid.worker].spawn_stack = stack;
  const RawTrace raw = valid.memory.read();
  EXPECT_THAT(raw.names, IsEmpty());
  for (const RawAddress& frame : raw.stacks[raw.threads[1].spawn_stack])
    EXPECT_EQ(frame, RawAddress());
  EXPECT_THAT(raw.problems, Contains(HasSubstr("names were not written")));
  EXPECT_THAT(raw.problems, Contains(HasSubstr("3 frames have no name")));
}

TEST(RawTraceReader, An_agent_of_no_known_kind_is_told) {
  Valid valid;
  valid.memory.report().processes[0].agent = AgentKind::python;
  EXPECT_EQ(valid.memory.read().processes[0].agent, AgentKind::python);
  valid.memory.report().processes[0].agent = static_cast<AgentKind>(77);
  EXPECT_THAT(valid.memory.read().problems, Contains(HasSubstr("agent of no known kind")));
}

TEST(Protocol, A_layout_belongs_to_its_version) {
  EXPECT_EQ(layout_digest(), layout_of_version)
      << "The layout of the memory has changed. In protocol/agent_protocol.h raise `version`, if "
         "its rule says so, and write "
      << std::hex << std::showbase << layout_digest() << " into layout_of_version.";
}

TEST(Protocol, A_directory_that_leads_out_of_the_memory_is_refused) {
  FakeMemory memory;
  Tables tables;
  auto* base = reinterpret_cast<char*>(memory.bytes().data());
  ASSERT_TRUE(find_tables(base, memory.shape.header, tables));
  for (const auto& change :
       {Table{0, 1, 0, 0}, Table{0, 0, 1, 0}, Table{0, 0, 1u << 31, 0}, Table{0, 0, 0, 0x7fffffff}})
    for (uint32_t i = 0; i < memory.shape.header.table_count; ++i) {
      Header header = memory.shape.header;
      header.tables[i].element_size += change.element_size;
      header.tables[i].offset += change.offset;
      header.tables[i].count += change.count;
      EXPECT_FALSE(find_tables(base, header, tables)) << i;
    }
}

TEST(Protocol, A_table_of_a_kind_that_is_not_known_is_passed_over) {
  FakeMemory memory;
  Tables tables;
  Header header = memory.shape.header;
  header.tables[header.table_count++] = {1000, 3, 5, 7};
  EXPECT_TRUE(find_tables(reinterpret_cast<char*>(memory.bytes().data()), header, tables));
}

TEST(RawTraceReader, A_memory_that_is_too_small_is_a_problem_and_no_report) {
  FakeMemory memory;
  const RawTrace raw = read_raw_trace(memory.bytes().first(4096), memory.shape);
  EXPECT_THAT(raw.problems, SizeIs(1));
}

TEST(RawTraceReader, A_header_that_was_written_over_is_told) {
  FakeMemory memory;
  memory.bytes()[0] = std::byte{0};
  EXPECT_THAT(memory.read().problems, Contains(HasSubstr("head of the agent's memory")));
}

}  // namespace
}  // namespace unflake
