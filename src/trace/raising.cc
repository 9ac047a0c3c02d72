#include "trace/raising.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "symbols/names.h"
#include "trace/code_map.h"
#include "trace/names.h"
#include "util/paths.h"

namespace unflake {
namespace {

using namespace protocol;

constexpr std::pair<uint32_t, const char*> degraded_words[] = {
    {no_probe_memory, "there was no memory for probes near the code"},
    {probe_mismatch, "some probes were left out: the code is not the one they were made for"},
    {sigtrap_taken, "the program uses SIGTRAP itself, so probes were left out"},
    {no_thread_memory, "some threads had no room of their own; their counts are in no thread"},
};

constexpr size_t most_lines_of_a_function = 300;

const char* word_for(protocol::FailureKind kind) {
  using Kind = protocol::FailureKind;
  switch (kind) {
    case Kind::assertion:
      return "assertion";
    case Kind::assert_macro:
      return "assert";
    case Kind::abort:
      return "abort";
    case Kind::exception:
      return "exception";
    case Kind::thrown_before:
      return "thrown before";
    case Kind::signal:
      return "signal";
  }
  return "";
}

const char* word_for(AgentKind kind) {
  switch (kind) {
    case AgentKind::native:
      return "native";
    case AgentKind::jvm:
      return "jvm";
    case AgentKind::python:
      return "python";
  }
  return "";
}

// A type as std::type_info has it, which mangled names contain.
std::string type_name(const std::string& mangled) {
  constexpr std::string_view prefix = "typeinfo name for ";
  const std::string name = demangle(("_ZTS" + mangled).c_str());
  return name.starts_with(prefix) ? name.substr(prefix.size()) : mangled;
}

Duration to_duration(uint64_t ns) {
  return std::chrono::duration_cast<Duration>(
      std::chrono::nanoseconds(std::min<uint64_t>(ns, INT64_MAX)));
}

// One file may be known by several paths: the loader's, and where a link leads.
void use_known_paths(std::vector<RawImage>& images, const TestMemory& memory) {
  for (RawImage& image : images)
    for (const auto& [path, known] : memory.images)
      if (!image.build_id.empty() && known.build_id == image.build_id) image.path = path;
}

class Raiser {
 public:
  Raiser(const RawTrace& raw, const LoweredPlan& plan, CodeMap& code, TestMemory& memory)
      : raw_(raw), plan_(plan), code_(code), memory_(memory) {}

  Trace operator()() {
    find_origin();
    add_images();
    add_names();
    add_processes();
    add_stacks();
    add_threads();
    learn_calls();
    add_calls();
    add_visits();
    add_interventions();
    add_failures();
    add_functions();
    add_control();
    for (const auto& [reason, count] : plan_.unprobeable)
      trace_.problems.push_back(fmt::format("{} functions could not be traced: {}", count, reason));
    trace_.drops = raw_.drops;
    trace_.code_notes = code_.notes(raw_.images);
    trace_.problems.insert(trace_.problems.end(), raw_.problems.begin(), raw_.problems.end());
    trace_.problems.insert(trace_.problems.end(), code_.problems().begin(), code_.problems().end());
    return std::move(trace_);
  }

 private:
  Duration since_start(uint64_t ns) const { return to_duration(ns - std::min(ns, origin_)); }

  void find_origin() {
    origin_ = UINT64_MAX;
    for (const RawProcess& process : raw_.processes)
      origin_ = std::min(origin_, process.started_ns);
    for (const RawThread& thread : raw_.threads) origin_ = std::min(origin_, thread.started_ns);
    if (origin_ == UINT64_MAX) origin_ = 0;
  }

  void add_images() {
    for (const RawImage& image : raw_.images) {
      trace_.images.push_back({image.path, image.build_id, image.is_project});
      if (!image.is_project && !is_framework_library(base_name(image.path))) continue;
      memory_.images.insert_or_assign(image.path, image);
      if (image.is_project && memory_.named_images.insert(image.path).second)
        memory_.sites.files().add(code_.project_files(image));
    }
  }

  // Code that is not in an image is the project's when its file is.
  void add_names() {
    for (const RawName& name : raw_.names) {
      const bool is_project = code_.policy().is_project_file(name.file);
      if (is_project) memory_.sites.files().add({name.file});
      named_.push_back(
          {{Frame{name.function, name.file, name.line, 0, false}}, is_project ? 0u : 1u});
    }
  }

  void add_processes() {
    for (const RawProcess& process : raw_.processes) {
      TracedProcess added{static_cast<int>(process.pid),
                          process.parent,
                          process.executable,
                          process.name,
                          since_start(process.started_ns),
                          {},
                          word_for(process.agent)};
      for (const auto& [bit, words] : degraded_words)
        if (process.degraded & bit) added.degraded.emplace_back(words);
      trace_.processes.push_back(std::move(added));
    }
    if (trace_.processes.empty()) {
      trace_.problems.push_back("the agent was not loaded into any process of this run");
      return;
    }
    const uint32_t first = trace_.processes.front().executable;
    if (memory_.sites.own_executable().empty() && first != no_index)
      memory_.sites.set_own_executable(raw_.images[first].path);
  }

  // Addresses in a stack are return addresses, except one that a signal or a probe interrupted.
  const NamedCode* place_of(const RawAddress& address, bool exact = false) {
    if (address.name != no_index) return &named_[address.name];
    if (address.image == no_index) return nullptr;
    const RawImage& image = raw_.images[address.image];
    return &(exact ? code_.at(image, address.offset) : code_.before(image, address.offset));
  }

  TracedStack stack_of(const std::vector<RawAddress>& frames, bool first_is_exact = false) {
    TracedStack stack;
    for (size_t i = 0; i < frames.size(); ++i) {
      const NamedCode* place = place_of(frames[i], first_is_exact && i == 0);
      stack.frames.push_back(
          {frames[i].image, frames[i].offset, place ? place->frames : std::vector<Frame>()});
      if (place && place->project())
        stack.frames.back().first_project = static_cast<uint32_t>(place->first_project);
    }
    return stack;
  }

  // The first frame of a stack that is project code.
  std::optional<RawAddress> project_caller(const std::vector<RawAddress>& frames) {
    for (const RawAddress& frame : frames)
      if (const NamedCode* place = place_of(frame); place && place->project()) return frame;
    return std::nullopt;
  }

  void add_stacks() {
    for (const auto& frames : raw_.stacks) {
      trace_.stacks.push_back(stack_of(frames));
      callers_.push_back(project_caller(frames));
    }
  }

  std::string spawn_place(const RawThread& thread) {
    if (thread.spawn_stack == no_index) return thread.parent == no_index ? "" : "unknown";
    const auto& frames = raw_.stacks[thread.spawn_stack];
    const auto caller = callers_[thread.spawn_stack];
    const RawAddress address = caller ? *caller : frames.empty() ? RawAddress{} : frames.front();
    const NamedCode* place = place_of(address);
    if (!place) return "unknown";
    return to_string(
        memory_.sites.name_place(image_of(address), *place, address_in_image(address)));
  }

  // A name says all about its code, in every run; its number says nothing.
  RawImage image_of(const RawAddress& address) const {
    return address.image == no_index ? RawImage() : raw_.images[address.image];
  }
  static uint64_t address_in_image(const RawAddress& address) {
    return address.name == no_index ? address.offset : 0;
  }

  std::string foreign_program(const RawThread& thread) const {
    const uint32_t executable = raw_.processes[thread.process].executable;
    if (executable == no_index) return "";
    const std::string& path = raw_.images[executable].path;
    return path == memory_.sites.own_executable() ? "" : base_name(path);
  }

  void add_threads() {
    std::vector<Spawned> spawned;
    for (const RawThread& thread : raw_.threads)
      spawned.push_back({thread.name, thread.thread_class, foreign_program(thread),
                         spawn_place(thread), thread.ordinal});
    const std::vector<ThreadName> names = memory_.threads.name_threads(spawned);
    for (size_t i = 0; i < raw_.threads.size(); ++i) {
      const RawThread& thread = raw_.threads[i];
      const Duration ended = thread.ended_ns == 0 ? Duration{} : since_start(thread.ended_ns);
      trace_.threads.push_back({thread.process, static_cast<int>(thread.tid), thread.parent,
                                names[i], thread.spawn_stack, since_start(thread.started_ns), ended,
                                thread.calls_dropped});
    }
  }

  // Where a call was made: as its own stack says, or else as the agent attributed it.
  RawAddress caller_of(uint32_t site, uint32_t stack) const {
    const auto seen = stack == no_index ? std::nullopt : callers_[stack];
    return seen.value_or(raw_.sites[site].address);
  }

  // In the order of addresses, which is the order of their numbers. A site of the agent that is not
  // project code is named by the stacks of its calls, if it has any.
  void learn_calls() {
    std::set<std::pair<RawAddress, uint16_t>> calls;
    std::vector<bool> named(raw_.sites.size());
    for (const RawCall& call : raw_.calls) {
      const RawSite& site = raw_.sites[call.site];
      if (site.probe != no_index) continue;
      const RawAddress caller = caller_of(call.site, call.stack);
      calls.emplace(caller, site.api);
      if (caller != site.address) named[call.site] = true;
    }
    for (size_t i = 0; i < raw_.sites.size(); ++i) {
      const RawSite& site = raw_.sites[i];
      const NamedCode* place = place_of(site.address);
      if (site.probe == no_index && (!named[i] || (place && place->project())))
        calls.emplace(site.address, site.api);
    }
    for (const auto& [address, api] : calls) learn_call(address, api);
  }

  void learn_call(const RawAddress& address, uint16_t api) {
    const NamedCode* found = place_of(address);
    if (!found) return;
    const NamedCode& place = *found;
    const RawImage image = image_of(address);
    const LearnedSite& learned =
        memory_.sites.learn_call(image, place, address_in_image(address), api);
    if (address.image != no_index)
      memory_.images.try_emplace(image.path, image);  // whoever owns it, a plan may name the site
    TracedSite site{learned.name, api_facts[api].group_name, "", address.image, address.offset,
                    api};
    if (!place.frames.empty())
      site.location = location_of(place.project() ? *place.project() : place.frames.front());
    calls_[{address, api}] = number_of(site);
  }

  uint32_t number_of(const TracedSite& site) {
    const auto [known, is_new] =
        site_numbers_.try_emplace(to_string(site.name), static_cast<uint32_t>(trace_.sites.size()));
    if (is_new) trace_.sites.push_back(site);
    return known->second;
  }

  uint32_t symbolic_site(uint32_t site, uint32_t stack) {
    const RawSite& raw = raw_.sites[site];
    if (raw.probe != no_index) return probe_site(raw);
    const auto found = calls_.find({caller_of(site, stack), raw.api});
    return found == calls_.end() ? no_index : found->second;
  }

  uint32_t probe_site(const RawSite& raw) {
    if (raw.probe >= plan_.probe_names.size() || plan_.probe_names[raw.probe] == SiteName())
      return no_index;
    TracedSite site{as_seen_from_test(plan_.probe_names[raw.probe]),
                    "probe",
                    "",
                    raw.address.image,
                    raw.address.offset,
                    probe_api};
    const NamedCode* place = place_of(raw.address, true);
    if (place && !place->frames.empty()) site.location = location_of(place->frames.front());
    return number_of(site);
  }

  // A hold of the plan, from 1, by the number of its rule.
  uint64_t hold_of(uint64_t rule) const {
    const auto found = std::ranges::find(plan_.rule_of, rule - 1);
    return rule == 0 || found == plan_.rule_of.end()
               ? 0
               : static_cast<uint64_t>(found - plan_.rule_of.begin()) + 1;
  }

  void add_calls() {
    for (const RawCall& call : raw_.calls) {
      TracedCall added;
      added.enter = since_start(call.enter_ns);
      added.exit = since_start(call.exit_ns);
      added.object = call.is_intervention ? hold_of(call.object) : call.object;
      added.value = call.value;
      added.thread = call.thread;
      added.site = symbolic_site(call.site, call.stack);
      added.stack = call.stack;
      added.result = call.result;
      added.timed_out = call.flags & event_timed_out;
      added.delayed = call.flags & event_delayed;
      added.replaced = call.flags & event_replaced;
      added.unfinished = call.flags & event_unfinished;
      added.is_intervention = call.is_intervention;
      if (added.site == no_index) continue;
      trace_.calls.push_back(added);
      if (!call.is_intervention) ++seen_[{call.thread, call.site}][added.site];
    }
  }

  // A count of the agent belongs to one site, unless its calls show that the agent took several
  // callers for one: then it is divided as the calls were.
  void add_visits() {
    for (const RawTally& tally : raw_.tallies) {
      const auto seen = seen_.find({tally.thread, tally.site});
      if (seen != seen_.end()) {
        divide(tally, seen->second);
        continue;
      }
      const uint32_t site = symbolic_site(tally.site, no_index);
      if (site != no_index) add_visits(tally.thread, site, tally.visits, tally.waited_ns);
    }
    for (const auto& [key, visits] : visits_) trace_.visits.push_back(visits);
  }

  void divide(const RawTally& tally, const std::map<uint32_t, uint64_t>& calls_of) {
    uint64_t calls_left = 0, visits_left = tally.visits, waited_left = tally.waited_ns;
    for (const auto& [site, count] : calls_of) calls_left += count;
    for (const auto& [site, count] : calls_of) {
      const double part = static_cast<double>(count) / static_cast<double>(calls_left);
      const auto share = [part](uint64_t& left) {
        const auto own = part < 1 ? static_cast<uint64_t>(static_cast<double>(left) * part) : left;
        return left -= own, own;
      };
      const uint64_t visits = share(visits_left);
      add_visits(tally.thread, site, visits, share(waited_left));
      calls_left -= count;
    }
  }

  void add_visits(uint32_t thread, uint32_t site, uint64_t count, uint64_t waited_ns) {
    TracedVisits& entry = visits_[{thread, site}];
    entry.thread = thread;
    entry.site = site;
    entry.visits += count;
    entry.waited += to_duration(waited_ns);
  }

  void add_interventions() {
    for (const uint32_t rule : plan_.rule_of) {
      TracedIntervention added;
      if (rule < raw_.rules.size()) {
        const RawRule& state = raw_.rules[rule];
        added = {state.visits, state.fired, state.let_go, to_duration(state.added_ns),
                 state.impossible};
      }
      trace_.interventions.push_back(added);
    }
  }

  void add_failures() {
    for (const RawFailure& failure : raw_.failures) {
      TracedFailure added;
      added.kind = word_for(failure.kind);
      added.thread = failure.thread;
      added.signal = failure.signal;
      added.at = since_start(failure.at_ns);
      added.file = failure.file;
      added.line = static_cast<int>(std::min<uint32_t>(failure.line, INT32_MAX));
      added.message = failure.message;
      added.exception_type = type_name(failure.type);
      const bool interrupted = failure.kind == protocol::FailureKind::signal ||
                               failure.kind == protocol::FailureKind::assertion;
      added.stack = stack_of(failure.frames, interrupted);
      if (added.file.empty()) locate(added, failure.frames, interrupted);
      trace_.failures.push_back(std::move(added));
    }
  }

  // By number, as threads were created; not all of them need have room in the report.
  std::vector<uint32_t> scheduled_threads() const {
    std::vector<uint32_t> threads;
    for (size_t i = 0; i < raw_.threads.size(); ++i) {
      const uint32_t number = raw_.threads[i].scheduled;
      if (number == no_index) continue;
      if (number >= threads.size()) threads.resize(number + 1, no_index);
      threads[number] = static_cast<uint32_t>(i);
    }
    return threads;
  }

  SiteName as_seen_from_test(SiteName name) const {
    if (name.image == base_name(memory_.sites.own_executable())) name.image.clear();
    return name;
  }

  uint32_t site_of_step(uint32_t site) {
    return site == no_index ? no_index : symbolic_site(site, no_index);
  }

  // Standard libraries do it in functions of their own, which may have been inlined.
  static bool is_atomic_code(const NamedCode& place) {
    constexpr std::string_view atomic_code[] = {"std::atomic",
                                                "std::__atomic",
                                                "std::_Sp_counted_base",
                                                "__gnu_cxx::__exchange_and_add",
                                                "__gnu_cxx::__atomic_add",
                                                "std::__1::atomic",
                                                "std::__1::__atomic",
                                                "std::__1::__cxx_atomic"};
    const auto own =
        std::span(place.frames).first(std::min(place.first_project, place.frames.size()));
    return std::ranges::any_of(own, [&](const Frame& frame) {
      return std::ranges::any_of(
          atomic_code, [&](std::string_view name) { return frame.function.starts_with(name); });
    });
  }

  void add_instructions(ControlledRun& run) {
    const LoweredSchedule& schedule = *plan_.schedule;
    for (size_t i = 0; i < schedule.accesses.size(); ++i) {
      const auto site = site_numbers_.find(to_string(as_seen_from_test(schedule.access_names[i])));
      if (site == site_numbers_.end()) continue;
      const TracedSite& traced = trace_.sites[site->second];
      const PlanAccess& access = schedule.accesses[i];
      const NamedCode* place = place_of({traced.image, traced.address}, true);
      run.instructions.push_back(
          {site->second, access.size, (access.flags & access_reads) != 0,
           (access.flags & access_writes) != 0,
           (access.flags & access_is_atomic) != 0 || (place != nullptr && is_atomic_code(*place))});
    }
  }

  void add_variables(const RawControl& raw, ControlledRun& run) {
    std::map<uint64_t, RawAddress> places;
    for (const RawPoint& point : raw.points)
      if (point.stack != no_index && point.place.image != no_index)
        places[point.object] = point.place;
    for (const auto& [address, place] : places) {
      const auto image = code_.image(raw_.images[place.image]);
      const auto variable = image ? image->variable_at(place.offset) : std::nullopt;
      if (variable)
        run.variables.push_back({address, variable->name, variable->type, variable->is_atomic});
    }
  }

  std::vector<SiteName> names_of_accesses(const std::vector<uint32_t>& accesses) const {
    std::vector<SiteName> names;
    for (const uint32_t access : accesses)
      if (access < plan_.schedule->access_names.size())
        names.push_back(as_seen_from_test(plan_.schedule->access_names[access]));
    return names;
  }

  void add_control() {
    if (!plan_.schedule) return;
    ControlledRun run;
    RawControl nothing;
    nothing.refused = true;
    nothing.reason = "the agent was not in its first process";
    const RawControl& raw = raw_.control ? *raw_.control : nothing;
    run.digest = raw.digest;
    run.points_in_all = raw.points_in_all;
    run.switches = raw.switches;
    run.virtual_time = to_duration(raw.virtual_ns);
    run.threads = scheduled_threads();
    if (raw.refused || raw.left) run.not_repeatable = raw.reason;
    for (const RawPoint& point : raw.points)
      run.points.push_back({point.thread, site_of_step(point.site), point.object, point.writes,
                            point.enabled, point.chosen, point.stack});
    for (const RawStuckThread& stuck : raw.deadlock)
      run.deadlock.push_back(
          {stuck.thread, site_of_step(stuck.site), stuck.object,
           stuck.held_by == no_index ? std::nullopt : std::optional(stuck.held_by)});
    run.shared_accesses = names_of_accesses(raw.shared_accesses);
    run.guarded_accesses = raw.guarded_accesses;
    std::vector<uint32_t> hot;
    std::ranges::set_intersection(raw.shared_accesses, raw.hot_accesses, std::back_inserter(hot));
    run.hot_accesses = names_of_accesses(hot);
    if (plan_.schedule->plan.watches_races != 0) {
      add_instructions(run);
      add_variables(raw, run);
    }
    if (raw.refused) trace_.problems.push_back("the run was not controlled: " + raw.reason);
    trace_.controlled = std::move(run);
  }

  // Where the message does not tell the place, the first project frame does.
  void locate(TracedFailure& failure, const std::vector<RawAddress>& frames, bool interrupted) {
    for (size_t i = 0; i < frames.size(); ++i) {
      const NamedCode* place = place_of(frames[i], interrupted && i == 0);
      const Frame* frame = place ? place->project() : nullptr;
      if (!frame || frame->file.empty()) continue;
      failure.file = frame->file;
      failure.line = frame->line;
      return;
    }
  }

  void add_functions() {
    for (size_t i = 0; i < std::min(raw_.probe_hits.size(), plan_.probes.size()); ++i) {
      const Probe& probe = plan_.probes[i];
      if (!(probe.flags & (probe_one_shot | probe_of_call)) || raw_.probe_hits[i] == 0) continue;
      const std::string& path = plan_.images[protocol::image_of(probe.address)].path;
      const auto image = std::ranges::find(raw_.images, path, &RawImage::path);
      if (image == raw_.images.end()) continue;
      const uint64_t entry = offset_of(probe.address);
      TracedFunction function{static_cast<uint32_t>(image - raw_.images.begin()), entry,
                              code_.name_of_entry(*image, entry)};
      function.kind = code_.kind_of(*image, entry);
      if (function.kind == FunctionKind::project) add_lines(function, *image);
      trace_.functions.push_back(std::move(function));
    }
  }

  // Those of the first project file there: its own, or of what was inlined into a template of a
  // system header.
  void add_lines(TracedFunction& function, const RawImage& raw) {
    const auto image = code_.image(raw);
    if (!image) return;
    const auto known =
        std::ranges::lower_bound(image->functions(), function.address, {}, &Function::start);
    if (known == image->functions().end() || known->start != function.address) return;
    auto row = std::ranges::lower_bound(image->lines(), known->start, {}, &LineRow::address);
    std::optional<uint32_t> file;
    std::set<int> lines;
    for (; row != image->lines().end() && row->address - known->start < known->size; ++row) {
      if (row->line <= 0 || lines.size() >= most_lines_of_a_function) continue;
      if (!file && code_.policy().is_project_file(image->files()[row->file])) file = row->file;
      if (file == row->file) lines.insert(row->line);
    }
    if (!file) return;
    function.file = memory_.sites.files().short_name(image->files()[*file]);
    function.lines.assign(lines.begin(), lines.end());
  }

  const RawTrace& raw_;
  const LoweredPlan& plan_;
  CodeMap& code_;
  TestMemory& memory_;
  Trace trace_;
  std::vector<NamedCode> named_;  // as RawTrace::names
  uint64_t origin_ = 0;
  std::vector<std::optional<RawAddress>> callers_;  // per stack
  std::map<std::pair<RawAddress, uint16_t>, uint32_t> calls_;
  std::map<std::string, uint32_t> site_numbers_;
  std::map<std::pair<uint32_t, uint32_t>, TracedVisits> visits_;  // by thread and site
  // Per thread and site of the agent: how many calls belong to which site of the trace.
  std::map<std::pair<uint32_t, uint32_t>, std::map<uint32_t, uint64_t>> seen_;
};

}  // namespace

Trace raise(RawTrace report, const LoweredPlan& plan, CodeMap& code, TestMemory& memory) {
  use_known_paths(report.images, memory);
  return Raiser(report, plan, code, memory)();
}

}  // namespace unflake
