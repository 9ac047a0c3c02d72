#include "trace/translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "symbols/image.h"
#include "trace/code_map.h"
#include "trace/names.h"
#include "trace/roles.h"
#include "util/paths.h"
#include "util/text.h"

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

// One file may be known by several paths: the loader's, and where a link leads.
void use_known_paths(std::vector<TracedImage>& images, const TestMemory& memory) {
  for (TracedImage& image : images)
    for (const auto& [path, known] : memory.images)
      if (!image.build_id.empty() && known.build_id == image.build_id) image.path = path;
}

// Standard libraries do it in functions of their own, which may have been inlined.
bool is_atomic_code(const NamedCode& place) {
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

// A run under a schedule: its switch points, and what it showed of memory.
class ControlRaiser {
 public:
  ControlRaiser(const RawTrace& raw, const LoweredSchedule& schedule, CodeMap& code,
                RaisedCode& places, RaisedSites& sites)
      : raw_(raw), schedule_(schedule), code_(code), places_(places), sites_(sites) {}

  ControlledRun operator()(const RawControl& raw) {
    ControlledRun run;
    run.digest = raw.digest;
    run.points_in_all = raw.points_in_all;
    run.switches = raw.switches;
    run.virtual_time = to_duration(raw.virtual_ns);
    run.threads = scheduled_threads();
    if (raw.refused || raw.left) run.not_repeatable = raw.reason;
    for (const RawPoint& point : raw.points)
      run.points.push_back({point.thread, site_of_step(point.site), point.object, point.writes,
                            point.enabled, point.chosen, point.stack, point.ready,
                            std::chrono::microseconds(point.time_us)});
    for (const RawStuckThread& stuck : raw.deadlock)
      run.deadlock.push_back(
          {stuck.thread, site_of_step(stuck.site), stuck.object,
           stuck.held_by == no_index ? std::nullopt : std::optional(stuck.held_by)});
    run.shared_accesses = names_of_accesses(raw.shared_accesses);
    run.guarded_accesses = raw.guarded_accesses;
    std::vector<uint32_t> hot;
    std::ranges::set_intersection(raw.shared_accesses, raw.hot_accesses, std::back_inserter(hot));
    run.hot_accesses = names_of_accesses(hot);
    if (schedule_.plan.watches_races != 0) {
      add_instructions(run);
      add_variables(raw, run);
    }
    return run;
  }

 private:
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

  uint32_t site_of_step(uint32_t site) {
    return site == no_index ? no_index : sites_.number_of(site, no_index);
  }

  void add_instructions(ControlledRun& run) {
    for (size_t i = 0; i < schedule_.accesses.size(); ++i) {
      const uint32_t site = sites_.number_of(schedule_.access_names[i]);
      if (site == no_index) continue;
      const TracedSite& traced = sites_.all()[site];
      const PlanAccess& access = schedule_.accesses[i];
      const NamedCode* place = places_.place_of({traced.image, traced.address}, true);
      run.instructions.push_back(
          {site, access.size, (access.flags & access_reads) != 0,
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
      if (access < schedule_.access_names.size())
        names.push_back(sites_.as_seen_from_test(schedule_.access_names[access]));
    return names;
  }

  const RawTrace& raw_;
  const LoweredSchedule& schedule_;
  CodeMap& code_;
  RaisedCode& places_;
  RaisedSites& sites_;
};

class Raiser {
 public:
  Raiser(const RawTrace& raw, const LoweredPlan& plan, CodeMap& code, TestMemory& memory)
      : raw_(raw), plan_(plan), code_(code), memory_(memory) {}

  Trace operator()() {
    find_origin();
    add_images();
    places_.emplace(raw_, code_, memory_);
    add_processes();
    add_stacks();
    add_threads();
    sites_.emplace(raw_, plan_, *places_, memory_);
    add_calls();
    add_interventions();
    add_failures();
    add_functions();
    add_control();
    trace_.sites = sites_->all();
    for (const auto& [reason, count] : plan_.unprobeable)
      trace_.problems.push_back(fmt::format("{} functions could not be traced: {}", count, reason));
    trace_.drops = raw_.drops;
    trace_.calls_left_out = raw_.calls_left_out;
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
    for (const TracedImage& image : raw_.images) {
      trace_.images.push_back({image.path, image.build_id, image.is_project});
      if (!image.is_project && !is_framework_library(base_name(image.path))) continue;
      memory_.images.insert_or_assign(image.path, image);
      if (image.is_project && memory_.named_images.insert(image.path).second)
        memory_.sites.files().add(code_.project_files(image));
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

  void add_stacks() {
    for (const auto& frames : raw_.stacks) trace_.stacks.push_back(places_->stack_of(frames));
  }

  std::string spawn_place(const RawThread& thread) {
    if (thread.spawn_stack == no_index) return thread.parent == no_index ? "" : "unknown";
    const auto& frames = raw_.stacks[thread.spawn_stack];
    const auto caller = places_->project_caller(thread.spawn_stack);
    return places_->name_of(caller ? *caller : frames.empty() ? RawAddress{} : frames.front());
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
                                thread.calls_dropped, printable(thread.title)});
    }
  }

  // A hold of the plan, from 1, by the number of its rule.
  uint64_t hold_of(uint64_t rule) const {
    const auto found = std::ranges::find(plan_.rule_of, rule - 1);
    return rule == 0 || found == plan_.rule_of.end()
               ? 0
               : static_cast<uint64_t>(found - plan_.rule_of.begin()) + 1;
  }

  void add_calls() {
    VisitCounts counts(*sites_);
    for (const RawCall& call : raw_.calls) {
      TracedCall added;
      added.enter = since_start(call.enter_ns);
      added.exit = since_start(call.exit_ns);
      added.object = call.is_intervention ? hold_of(call.object) : call.object;
      added.value = call.value;
      added.thread = call.thread;
      added.site = sites_->number_of(call.site, call.stack);
      added.stack = call.stack;
      added.result = call.result;
      added.timed_out = call.flags & event_timed_out;
      added.delayed = call.flags & event_delayed;
      added.replaced = call.flags & event_replaced;
      added.unfinished = call.flags & event_unfinished;
      added.is_intervention = call.is_intervention;
      if (added.site == no_index) continue;
      trace_.calls.push_back(added);
      if (!call.is_intervention) counts.see(call.thread, call.site, added.site);
    }
    trace_.visits = counts.of(raw_.tallies);
    const ThreadRoles roles(trace_);
    for (uint32_t i = 0; i < trace_.threads.size(); ++i) trace_.threads[i].name.role = roles.of(i);
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
      added.stack = places_->stack_of(failure.frames, interrupted);
      if (added.file.empty()) locate(added, failure.frames, interrupted);
      trace_.failures.push_back(std::move(added));
    }
  }

  // Where the message does not tell the place, the first project frame does.
  void locate(TracedFailure& failure, const std::vector<RawAddress>& frames, bool interrupted) {
    for (size_t i = 0; i < frames.size(); ++i) {
      const NamedCode* place = places_->place_of(frames[i], interrupted && i == 0);
      const Frame* frame = place ? place->project() : nullptr;
      if (!frame || frame->file.empty()) continue;
      failure.file = frame->file;
      failure.line = frame->line;
      return;
    }
  }

  void add_control() {
    if (!plan_.schedule) return;
    RawControl nothing;
    nothing.refused = true;
    nothing.reason = "the agent was not in its first process";
    const RawControl& raw = raw_.control ? *raw_.control : nothing;
    if (raw.refused) trace_.problems.push_back("the run was not controlled: " + raw.reason);
    trace_.controlled = ControlRaiser(raw_, *plan_.schedule, code_, *places_, *sites_)(raw);
  }

  void add_functions() {
    for (size_t i = 0; i < std::min(raw_.probe_hits.size(), plan_.probes.size()); ++i) {
      const Probe& probe = plan_.probes[i];
      if (!(probe.flags & (probe_one_shot | probe_of_call)) || raw_.probe_hits[i] == 0) continue;
      const std::string& path = plan_.images[protocol::image_of(probe.address)].path;
      const auto image = std::ranges::find(raw_.images, path, &TracedImage::path);
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
  void add_lines(TracedFunction& function, const TracedImage& raw) {
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
  uint64_t origin_ = 0;
  std::optional<RaisedCode> places_;
  std::optional<RaisedSites> sites_;
};

}  // namespace

Trace raise(RawTrace report, const LoweredPlan& plan, CodeMap& code, TestMemory& memory) {
  use_known_paths(report.images, memory);
  return Raiser(report, plan, code, memory)();
}

}  // namespace unflake
