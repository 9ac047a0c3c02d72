#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "protocol/memory_layout.h"
#include "trace/raw_trace.h"

namespace unflake {

// Plays the agent's part: writes a report into memory as an agent would.
class FakeAgent {
 public:
  explicit FakeAgent(const protocol::Tables& report) : report(report) {}

  uint32_t image(const std::string& path, bool is_project = true) {
    const uint32_t number = report.images.used->add(1);
    protocol::Image& image = report.images[number];
    path.copy(image.path, sizeof image.path);
    image.build_id_size = 0;
    image.is_project = is_project;
    image.state.store(2);
    return number;
  }

  // A name for code that is in no image.
  protocol::Address name(const std::string& function, const std::string& file, uint32_t line) {
    const uint32_t number = report.names.used->add(1);
    protocol::CodeName& name = report.names[number];
    function.copy(name.function, sizeof name.function);
    file.copy(name.file, sizeof name.file);
    name.line = line;
    name.state.store(2);
    return protocol::make_address(protocol::named_code, number);
  }

  uint32_t process(uint32_t executable, uint64_t started_ns, uint32_t parent = protocol::none) {
    const uint32_t number = report.processes.used->add(1);
    protocol::Process& process = report.processes[number];
    process.pid = 1000 + number;
    process.parent = parent;
    process.executable = executable;
    process.started_ns = started_ns;
    std::string("name").copy(process.name, sizeof process.name);
    process.state.store(2);
    return number;
  }

  uint32_t thread(uint32_t process, uint64_t name, uint64_t thread_class, uint64_t started_ns,
                  uint32_t parent = protocol::none, uint32_t spawn_stack = protocol::none,
                  uint32_t ordinal = 0) {
    const uint32_t number = report.threads.used->add(1);
    protocol::Thread& thread = report.threads[number];
    thread.process = process;
    thread.tid = 2000 + number;
    thread.parent = parent;
    thread.name = name;
    thread.thread_class = thread_class;
    thread.spawn_stack = spawn_stack;
    thread.ordinal = ordinal;
    thread.first_chunk = protocol::none;
    thread.started_ns = started_ns;
    thread.state.store(2);
    return number;
  }

  uint32_t stack(const std::vector<protocol::Address>& frames) {
    const uint32_t number = stacks_++ * 7 % protocol::max_stacks;  // hashed: not in order
    protocol::Stack& stack = report.stacks[number];
    stack.first = report.frames.used->add(static_cast<uint32_t>(frames.size()));
    stack.count = static_cast<uint32_t>(frames.size());
    std::ranges::copy(frames, &report.frames[stack.first]);
    stack.hash.store(number + 1);
    stack.complete.store(1);
    return number;
  }

  uint32_t site(protocol::Address address, protocol::Api api) {
    return add_site(address, static_cast<uint16_t>(api), protocol::none);
  }
  uint32_t probe_site(protocol::Address address, uint32_t probe) {
    return add_site(address, protocol::probe_api, probe);
  }

  void past(uint32_t thread, uint32_t site, uint64_t visits, uint64_t waited_ns = 0) {
    protocol::PastTally& past = report.past_tallies[report.past_tallies.used->add(1)];
    past.site = site;
    past.visits = visits;
    past.waited_ns = waited_ns;
    past.thread.store(thread + 1);
  }

  void tally(uint32_t thread, uint32_t site, uint64_t visits, uint64_t waited_ns = 0) {
    protocol::TallyTable& table = report.tallies[thread];
    table.thread.store(thread + 1);
    protocol::Tally& tally = table.tallies[site % protocol::tallies_per_thread];
    tally.key = site + 1;
    tally.site = site;
    tally.visits.store(visits);
    tally.waited_ns.store(waited_ns);
  }

  // Into the thread's last chunk; a new one when that is full, its beginning when none is left.
  protocol::Event& event(uint32_t thread, uint32_t site, uint64_t enter_ns, uint64_t exit_ns,
                         uint32_t stack = protocol::none) {
    protocol::Chunk& chunk = chunk_of(thread);
    const uint64_t written = chunk.written.add(1);
    protocol::Event& event = chunk.events[written % protocol::events_per_chunk];
    event = {};
    event.enter_ns = enter_ns;
    event.exit_ns = exit_ns;
    event.value = -1;
    event.site = site;
    event.stack = stack;
    return event;
  }

  protocol::Failure& failure(protocol::FailureKind kind, uint32_t thread, uint64_t at_ns,
                             const std::vector<protocol::Address>& frames) {
    protocol::Failure& failure = report.failures[report.failures.used->add(1)];
    failure.kind = kind;
    failure.thread = thread;
    failure.at_ns = at_ns;
    failure.frame_count = static_cast<uint32_t>(frames.size());
    std::ranges::copy(frames, failure.frames);
    failure.committed.store(1);
    return failure;
  }

  const protocol::Tables report;
  size_t most_chunks = protocol::max_chunks;

 private:
  uint32_t add_site(protocol::Address address, uint16_t api, uint32_t probe) {
    const uint32_t number = (100 + 5 * sites_++) % protocol::max_sites;
    protocol::Site& site = report.sites[number];
    site.address = address;
    site.api = api;
    site.probe = probe;
    site.key.store(number + 1);
    site.complete.store(1);
    return number;
  }

  protocol::Chunk& chunk_of(uint32_t thread) {
    uint32_t* first = &report.threads[thread].first_chunk;
    if (*first == protocol::none) return new_chunk(thread, *first);
    protocol::Chunk* last = &report.chunks[*first];
    while (last->next.load() != 0) last = &report.chunks[last->next.load() - 1];
    if (last->written.load() < protocol::events_per_chunk ||
        report.chunks.used->load() >= most_chunks)
      return *last;
    uint32_t number = 0;
    protocol::Chunk& added = new_chunk(thread, number);
    last->next.store(number + 1);
    return added;
  }

  protocol::Chunk& new_chunk(uint32_t thread, uint32_t& number) {
    number = report.chunks.used->add(1);
    report.chunks[number].thread.store(thread + 1);
    return report.chunks[number];
  }

  uint32_t stacks_ = 1;
  uint32_t sites_ = 0;
};

// A run's memory without a run.
class FakeMemory {
 public:
  static constexpr uint64_t made_ns = 1'000'000'000;

  explicit FakeMemory(size_t rules = 0, size_t probes = 0)
      : shape{header_for(rules, probes), made_ns, 2 * made_ns}, size_(shape.header.size) {
    void* data = std::aligned_alloc(protocol::page, size_);
    std::fill_n(static_cast<char*>(data), size_, '\0');
    data_.reset(static_cast<std::byte*>(data));
    std::memcpy(data, &shape.header, sizeof shape.header);
    protocol::find_tables(static_cast<char*>(data), shape.header, tables_);
  }

  std::span<std::byte> bytes() { return {data_.get(), size_}; }
  const protocol::Tables& report() const { return tables_; }
  RawTrace read() { return read_raw_trace(bytes(), shape); }

  MemoryShape shape;

 private:
  static protocol::Header header_for(size_t rules, size_t probes) {
    using namespace protocol;
    MemoryLayout layout;
    layout.add(TableKind::rule_states, sizeof(RuleState), rules);
    layout.begin_plan();
    layout.add(TableKind::plan_images, sizeof(PlanImage), 0);
    layout.add(TableKind::skips, sizeof(SkipRange), 0);
    layout.add(TableKind::plan_sites, sizeof(PlanSite), 0);
    layout.add(TableKind::rules, sizeof(Rule), rules);
    layout.add(TableKind::probes, sizeof(Probe), probes);
    layout.add(TableKind::system_prefixes, sizeof(uint32_t), 0);
    layout.add(TableKind::text, 1, 0);
    layout.end_plan();
    layout.add(TableKind::probe_hits, sizeof(uint32_t), probes);
    return layout.header(7, {});
  }

  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  size_t size_;
  std::unique_ptr<std::byte, Free> data_;
  protocol::Tables tables_;
};

}  // namespace unflake
