#include "trace/raw_trace.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include "protocol/schedule_protocol.h"

namespace unflake {
namespace {

using namespace protocol;

enum State : uint32_t { free_slot, being_written, complete, ended };

constexpr std::pair<Dropped, const char*> drop_names[] = {
    {dropped_images, "images"}, {dropped_processes, "processes"}, {dropped_threads, "threads"},
    {dropped_sites, "sites"},   {dropped_tallies, "counts"},      {dropped_stacks, "stacks"},
    {dropped_events, "calls"},  {dropped_failures, "failures"},   {dropped_names, "names"},
};
static_assert(std::size(drop_names) == dropped_kinds);

template <size_t N>
std::string bounded(const char (&text)[N]) {
  return std::string(text, ::strnlen(text, N));
}

std::string bytes_of(const uint8_t* bytes, uint32_t size, uint32_t room) {
  return std::string(reinterpret_cast<const char*>(bytes), std::min(size, room));
}

// From numbers in the memory to those in the RawTrace.
class Numbers {
 public:
  explicit Numbers(size_t room) : to_(room, no_index) {}
  void set(size_t from, size_t to) { to_[from] = static_cast<uint32_t>(to); }
  uint32_t operator[](uint32_t from) const { return from < to_.size() ? to_[from] : no_index; }

 private:
  std::vector<uint32_t> to_;
};

template <class T>
size_t used(const Elements<T>& table) {
  return std::min(table.used->load(), table.count);
}

// What has been read so far, and how much of the rest is believed.
class Known {
 public:
  Known(const MemoryShape& shape, const Tables& report)
      : images(report.images.count),
        names(report.names.count),
        processes(report.processes.count),
        stacks(report.stacks.count),
        threads(report.threads.count),
        sites(report.sites.count),
        shape_(shape) {}

  Numbers images, names, processes, stacks, threads, sites;

  void doubt(const char* what) { ++doubts_[what]; }

  // A number that may say "none", and nothing else that is not there.
  uint32_t checked(const Numbers& numbers, uint32_t from, const char* what) {
    const uint32_t to = numbers[from];
    if (to == no_index && from != none) doubt(what);
    return to;
  }

  uint64_t time(uint64_t ns) {
    const uint64_t latest = std::max(shape_.read_ns, shape_.made_ns);
    if (ns < shape_.made_ns || ns > latest) doubt("times lie outside of the run");
    return std::clamp(ns, shape_.made_ns, latest) - shape_.made_ns;
  }

  uint64_t time_or_never(uint64_t ns) { return ns == 0 ? 0 : std::max<uint64_t>(1, time(ns)); }

  RawAddress address(Address address) {
    const uint32_t image = image_of(address);
    if (image == named_code) return named(offset_of(address));
    return {image == unknown_image ? no_index : images[image], offset_of(address)};
  }

  std::vector<std::string> problems() const {
    std::vector<std::string> all;
    for (const auto& [what, count] : doubts_) all.push_back(fmt::format("{} {}", count, what));
    return all;
  }

 private:
  RawAddress named(uint64_t number) {
    const uint32_t known = number < none ? names[static_cast<uint32_t>(number)] : no_index;
    if (known == no_index) doubt("frames have no name");
    return {no_index, known == no_index ? 0 : known, known};
  }

  const MemoryShape& shape_;
  std::map<std::string, uint64_t> doubts_;
};

// The calls of every thread, from its chain of chunks.
class CallReader {
 public:
  CallReader(const Tables& report, uint64_t read_ns, Known& known, RawTrace& raw)
      : report_(report), read_ns_(read_ns), known_(known), raw_(raw) {}

  void operator()() {
    for (size_t i = 0; i < used(report_.threads); ++i) {
      const uint32_t thread = known_.threads[static_cast<uint32_t>(i)];
      if (thread == no_index) continue;
      const size_t first = raw_.calls.size();
      read_chunks(static_cast<uint32_t>(i), thread);
      std::stable_sort(raw_.calls.begin() + static_cast<ptrdiff_t>(first), raw_.calls.end(),
                       [](const auto& a, const auto& b) { return a.enter_ns < b.enter_ns; });
    }
  }

 private:
  void read_chunks(uint32_t number, uint32_t thread) {
    uint64_t overwritten = 0;
    uint32_t next = report_.threads[number].first_chunk;
    const uint32_t room = report_.chunks.count;
    for (size_t left = room; next < room && left > 0; --left) {
      const Chunk& chunk = report_.chunks[next];
      if (chunk.thread.load() != number + 1) break;
      overwritten += read_chunk(chunk, thread);
      const uint32_t following = chunk.next.load();
      if (left == 1 && following != 0) known_.doubt("threads have calls in a circle");
      if (following == 0) break;
      next = following - 1;
    }
    uint64_t& dropped = raw_.threads[thread].calls_dropped;
    dropped = std::max(dropped, overwritten);
  }

  uint64_t read_chunk(const Chunk& chunk, uint32_t thread) {
    const uint64_t written = chunk.written.load();
    const uint64_t kept = std::min<uint64_t>(written, events_per_chunk);
    for (uint64_t i = written - kept; i < written; ++i)
      read_call(chunk.events[i % events_per_chunk], thread);
    const uint64_t left_out = std::min(chunk.left_out.load(), written - kept);
    raw_.calls_left_out += left_out;
    return written - kept - left_out;
  }

  void read_call(const Event& event, uint32_t thread) {
    if (raw_.calls.size() >= report_.chunks.count * events_per_chunk) return;
    RawCall read;
    read.site = known_.checked(known_.sites, event.site, "calls name no site");
    if (read.site == no_index) return;
    read.enter_ns = known_.time(event.enter_ns);
    const bool unfinished = event.flags & event_unfinished || event.exit_ns == 0;
    read.exit_ns =
        std::max(read.enter_ns, unfinished ? known_.time(read_ns_) : known_.time(event.exit_ns));
    read.object = event.object;
    read.value = event.value;
    read.thread = thread;
    read.stack = known_.checked(known_.stacks, event.stack, "calls name no stack");
    read.result = event.result;
    read.flags = static_cast<uint8_t>(event.flags | (unfinished ? event_unfinished : 0));
    read.is_intervention = event.api == delay_api;
    raw_.calls.push_back(read);
  }

  const Tables& report_;
  const uint64_t read_ns_;
  Known& known_;
  RawTrace& raw_;
};

// What a controlled process wrote about its schedule.
class ControlReader {
 public:
  ControlReader(const ScheduleTables& schedule, Known& known)
      : schedule_(schedule), known_(known) {}

  // None: no process was controlled, and none refused it.
  std::optional<RawControl> operator()() {
    const ControlReport& control = schedule_.control[0];
    if (control.state.load() == 0) return std::nullopt;
    RawControl read;
    read.refused = control.state.load() == 2;
    read.left = control.left.load() != 0;
    read.reason = bounded(control.reason);
    read.digest = control.digest.load();
    read.switches = control.switches.load();
    read.virtual_ns = control.virtual_ns.load();
    read.points_in_all = control.points.load();
    const size_t known = std::min<uint64_t>(read.points_in_all, schedule_.points.count);
    for (size_t i = 0; i < known; ++i) {
      auto point = point_of(schedule_.points[i]);
      if (!point) break;  // what comes after it would have another number
      read.points.push_back(std::move(*point));
    }
    const size_t stuck = std::min(control.deadlocks.load(), schedule_.deadlocked.count);
    for (size_t i = 0; i < stuck; ++i) add_stuck(schedule_.deadlocked[i], read);
    for (uint32_t i = 0; i < schedule_.access_states.count; ++i) {
      const uint32_t seen = schedule_.access_states[i].load();
      if ((seen & access_is_shared) != 0) read.shared_accesses.push_back(i);
      if ((seen & access_was_hot) != 0) read.hot_accesses.push_back(i);
      if ((seen & (access_is_shared | access_is_guarded)) == access_is_guarded)
        ++read.guarded_accesses;
    }
    return read;
  }

 private:
  // None when there was no room for who was enabled, or the test has written over it.
  std::optional<RawPoint> point_of(const ScheduledPoint& point) {
    const auto& enabled = schedule_.enabled;
    if (point.first_enabled > enabled.count ||
        point.enabled_count > enabled.count - point.first_enabled)
      return std::nullopt;
    RawPoint read{point.object,      point.thread, site_of(point.site),
                  point.writes != 0, point.chosen, {}};
    read.time_us = point.time_us;
    if (schedule_.schedule[0].watches_races != 0) {
      if (image_of(point.place) != named_code) read.place = known_.address(point.place);
      read.stack = point.stack == none
                       ? no_index
                       : known_.checked(known_.stacks, point.stack, "switch points name no stack");
    }
    for (size_t i = 0; i < point.enabled_count; ++i) {
      const uint16_t one = enabled[point.first_enabled + i];
      read.enabled.push_back(one & ~enabled_is_ready);
      if ((one & enabled_is_ready) != 0) read.ready.push_back(read.enabled.back());
    }
    const bool is_right = std::ranges::is_sorted(read.enabled) &&
                          point.thread < most_scheduled_threads &&
                          std::ranges::binary_search(read.enabled, read.chosen);
    if (!is_right) known_.doubt("switch points make no sense");
    return is_right ? std::optional(read) : std::nullopt;
  }

  void add_stuck(const StuckThread& stuck, RawControl& control) {
    if (stuck.thread >= most_scheduled_threads)
      return known_.doubt("threads in a deadlock are none");
    control.deadlock.push_back({stuck.thread, site_of(stuck.site), stuck.object,
                                stuck.held_by < most_scheduled_threads ? stuck.held_by : no_index});
  }

  uint32_t site_of(uint32_t site) {
    return site == none ? no_index
                        : known_.checked(known_.sites, site, "switch points name no site");
  }

  const ScheduleTables& schedule_;
  Known& known_;
};

class Reader {
 public:
  Reader(const std::byte* memory, const MemoryShape& shape, const Tables& report,
         const ScheduleTables* schedule)
      : memory_(memory), shape_(shape), report_(report), schedule_(schedule) {}

  RawTrace operator()() {
    check_header();
    read_images();
    read_names();
    read_processes();
    read_stacks();
    read_threads();
    read_sites();
    read_tallies();
    CallReader(report_, shape_.read_ns, known_, raw_)();
    read_rules();
    read_failures();
    read_probe_hits();
    read_drops();
    if (schedule_ != nullptr) raw_.control = ControlReader(*schedule_, known_)();
    std::ranges::copy(known_.problems(), std::back_inserter(raw_.problems));
    return std::move(raw_);
  }

 private:
  void check_header() {
    if (::memcmp(memory_, &shape_.header, sizeof(Header)) != 0)
      raw_.problems.push_back("the test has written over the head of the agent's memory");
  }

  void read_images() {
    for (size_t i = 0; i < used(report_.images); ++i) {
      const protocol::Image& image = report_.images[i];
      if (image.state.load() != complete) {
        known_.doubt("images were not written to the end");
        continue;
      }
      known_.images.set(i, raw_.images.size());
      raw_.images.push_back({bounded(image.path),
                             bytes_of(image.build_id, image.build_id_size, sizeof image.build_id),
                             image.is_project != 0});
    }
  }

  // The same name may have been given several times: by several processes, or unsuccessfully.
  void read_names() {
    std::map<RawName, uint32_t> known;
    for (size_t i = 0; i < used(report_.names); ++i) {
      const CodeName& name = report_.names[i];
      RawName read{bounded(name.function), bounded(name.file),
                   static_cast<int>(std::min<uint32_t>(name.line, INT32_MAX))};
      if (name.state.load() != complete || (read.function.empty() && read.file.empty())) {
        known_.doubt("names were not written to the end");
        continue;
      }
      const auto number = static_cast<uint32_t>(raw_.names.size());
      const auto [found, is_new] = known.try_emplace(read, number);
      if (is_new) raw_.names.push_back(std::move(read));
      known_.names.set(i, found->second);
    }
  }

  void read_processes() {
    for (size_t i = 0; i < used(report_.processes); ++i) {
      const Process& process = report_.processes[i];
      if (process.state.load() != complete) {
        known_.doubt("processes were not written to the end");
        continue;
      }
      known_.processes.set(i, raw_.processes.size());
      RawProcess read;
      read.pid = process.pid;
      // From an earlier process only: the chain to the first one must end.
      read.parent = process.parent < i ? known_.processes[process.parent] : no_index;
      read.executable =
          known_.checked(known_.images, process.executable, "processes name no image");
      read.started_ns = known_.time(process.started_ns);
      read.degraded = process.degraded.load();
      if (process.agent <= AgentKind::python)
        read.agent = process.agent;
      else
        known_.doubt("processes have an agent of no known kind");
      read.name = bounded(process.name);
      raw_.processes.push_back(std::move(read));
    }
  }

  void read_stacks() {
    for (size_t i = 0; i < report_.stacks.count; ++i) {
      const Stack& stack = report_.stacks[i];
      if (stack.hash.load() == 0 || stack.complete.load() == 0) continue;
      const uint32_t room = report_.frames.count;
      if (stack.count > deepest_stack || stack.first > room || stack.count > room - stack.first) {
        known_.doubt("stacks lie outside of their memory");
        continue;
      }
      known_.stacks.set(i, raw_.stacks.size());
      std::vector<RawAddress>& frames = raw_.stacks.emplace_back();
      for (size_t at = stack.first; at < stack.first + stack.count; ++at)
        frames.push_back(known_.address(report_.frames[at]));
    }
  }

  void read_threads() {
    for (size_t i = 0; i < used(report_.threads); ++i) {
      const Thread& thread = report_.threads[i];
      const uint32_t state = thread.state.load();
      const uint32_t process = known_.processes[thread.process];
      if ((state != complete && state != ended) || process == no_index) {
        known_.doubt("threads were not written to the end");
        continue;
      }
      known_.threads.set(i, raw_.threads.size());
      raw_.threads.push_back(thread_of(thread, i, process));
      if (i < report_.titles.count) raw_.threads.back().title = bounded(report_.titles[i].text);
    }
  }

  RawThread thread_of(const Thread& thread, size_t number, uint32_t process) {
    RawThread read;
    read.process = process;
    read.tid = thread.tid;
    read.parent = thread.parent < number ? known_.threads[thread.parent] : no_index;
    read.name = thread.name;
    read.thread_class = thread.thread_class;
    read.spawn_stack = known_.checked(known_.stacks, thread.spawn_stack, "threads name no stack");
    read.ordinal = thread.ordinal;
    read.started_ns = known_.time(thread.started_ns);
    read.ended_ns = known_.time_or_never(thread.ended_ns.load());
    read.calls_dropped = thread.events_dropped.load();
    if (thread.scheduled > 0 && thread.scheduled <= most_scheduled_threads)
      read.scheduled = thread.scheduled - 1;
    return read;
  }

  void read_sites() {
    for (size_t i = 0; i < report_.sites.count; ++i) {
      const Site& site = report_.sites[i];
      if (site.key.load() == 0 || site.complete.load() == 0) continue;
      const bool is_call = site.api < static_cast<uint16_t>(Api::count);
      if (!is_call && (site.api != probe_api || site.probe >= report_.probes.count)) {
        known_.doubt("sites are of no known kind");
        continue;
      }
      known_.sites.set(i, raw_.sites.size());
      raw_.sites.push_back(
          {known_.address(site.address), site.api, is_call ? no_index : site.probe});
      add_tally(no_index, static_cast<uint32_t>(i), site.visits.load(), site.waited_ns.load());
    }
  }

  void add_tally(uint32_t thread, uint32_t site, uint64_t visits, uint64_t waited_ns) {
    if (visits == 0) return;
    const uint32_t known = known_.checked(known_.sites, site, "counts name no site");
    if (known != no_index) raw_.tallies.push_back({thread, known, visits, waited_ns});
  }

  void read_tallies() {
    for (const TallyTable& table : report_.tallies) {
      const uint32_t owner = table.thread.load();
      if (owner == 0) continue;
      const uint32_t thread =
          known_.checked(known_.threads, owner - 1, "tables of counts name no thread");
      if (thread == no_index) continue;
      for (const Tally& tally : table.tallies)
        if (tally.key != 0)
          add_tally(thread, tally.site, tally.visits.load(), tally.waited_ns.load());
    }
    for (size_t i = 0; i < used(report_.past_tallies); ++i) {
      const PastTally& past = report_.past_tallies[i];
      const uint32_t owner = past.thread.load();
      if (owner == 0) continue;  // was not written to the end
      add_tally(known_.checked(known_.threads, owner - 1, "counts name no thread"), past.site,
                past.visits, past.waited_ns);
    }
  }

  void read_rules() {
    for (const RuleState& state : report_.rule_states)
      raw_.rules.push_back({state.visits.load(), state.fired.load(), state.added_ns.load(),
                            state.let_go.load(), state.impossible.load()});
  }

  void read_failures() {
    for (size_t i = 0; i < used(report_.failures); ++i) {
      const protocol::Failure& failure = report_.failures[i];
      if (failure.committed.load() == 0) {
        known_.doubt("failures were not written to the end");
        continue;
      }
      if (failure.kind > protocol::FailureKind::signal) {
        known_.doubt("failures are of no known kind");
        continue;
      }
      raw_.failures.push_back(failure_of(failure));
    }
  }

  RawFailure failure_of(const protocol::Failure& failure) {
    RawFailure read;
    read.kind = failure.kind;
    read.thread = known_.checked(known_.threads, failure.thread, "failures name no thread");
    read.signal = failure.signal;
    read.at_ns = known_.time(failure.at_ns);
    read.fault_address = failure.fault_address;
    read.line = failure.line;
    for (size_t i = 0; i < std::min<size_t>(failure.frame_count, deepest_stack); ++i)
      read.frames.push_back(known_.address(failure.frames[i]));
    read.file = bounded(failure.file);
    read.message = bounded(failure.message);
    read.type = bounded(failure.type);
    return read;
  }

  void read_probe_hits() {
    for (const Shared<uint32_t>& hits : report_.probe_hits) raw_.probe_hits.push_back(hits.load());
  }

  void read_drops() {
    for (const auto& [kind, what] : drop_names) {
      uint64_t count = report_.dropped[kind].load();
      if (kind == dropped_events) {
        uint64_t of_threads = 0;
        for (const RawThread& thread : raw_.threads) of_threads += thread.calls_dropped;
        count = std::max(count, of_threads);
      }
      if (count > 0) raw_.drops.push_back({what, count});
    }
  }

  const std::byte* const memory_;
  const MemoryShape& shape_;
  const Tables& report_;
  const ScheduleTables* const schedule_;  // nullptr: the plan had none
  RawTrace raw_;
  Known known_{shape_, report_};
};

// A controlled run sees time pass that nobody has waited for.
MemoryShape with_virtual_time(MemoryShape shape, const ScheduleTables& schedule) {
  constexpr uint64_t most = uint64_t{1} << 60;
  shape.read_ns = std::max(shape.read_ns, shape.made_ns);
  shape.read_ns += std::min(schedule.control[0].virtual_ns.load(), most);
  return shape;
}

}  // namespace

RawTrace read_raw_trace(std::span<const std::byte> memory, const MemoryShape& shape) {
  // Nothing is written: the tables are those that an agent would write.
  char* base = const_cast<char*>(reinterpret_cast<const char*>(memory.data()));
  Tables report;
  ScheduleTables schedule;
  if (memory.size() >= shape.header.size && find_tables(base, shape.header, report)) {
    const bool has_schedule = find_tables(base, shape.header, schedule);
    const MemoryShape seen = has_schedule ? with_virtual_time(shape, schedule) : shape;
    return Reader(memory.data(), seen, report, has_schedule ? &schedule : nullptr)();
  }
  RawTrace nothing;
  nothing.problems.push_back("the agent's memory is too small to be one");
  return nothing;
}

}  // namespace unflake
