#include "trace/translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "symbols/image.h"
#include "symbols/probe_plan.h"
#include "trace/code_map.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace protocol;
using namespace std::chrono_literals;

// How long a process may stay alive for the sake of a thread that a delay made late.
constexpr std::chrono::nanoseconds exit_grace = 1s;

constexpr Duration forever = std::chrono::years(100);  // and no overflow

uint64_t to_ns(Duration duration) {
  const std::chrono::nanoseconds ns = std::clamp(duration, Duration::zero(), forever);
  return static_cast<uint64_t>(ns.count());
}

Error about(const Intervention& what, std::string problem, std::string next) {
  return usage_error(std::move(problem), to_string(what.site), std::move(next));
}

// By name, so that neither side's order matters; a forgotten one does not compile.
protocol::Action lowered(Intervention::Action action) {
  using From = Intervention::Action;
  switch (action) {
    case From::delay:
      return protocol::Action::delay;
    case From::hold:
      return protocol::Action::hold;
    case From::replace_time:
      return protocol::Action::replace_time;
    case From::watch:
      return protocol::Action::watch;
    case From::scale_time:
      return protocol::Action::scale_time;
  }
  std::abort();
}
protocol::Position lowered(Intervention::Position position) {
  using From = Intervention::Position;
  switch (position) {
    case From::before:
      return protocol::Position::before;
    case From::after:
      return protocol::Position::after;
    case From::start:
      return protocol::Position::start;
  }
  std::abort();
}
protocol::Threads lowered(Intervention::Threads threads) {
  using From = Intervention::Threads;
  switch (threads) {
    case From::any:
      return protocol::Threads::any;
    case From::named:
      return protocol::Threads::named;
    case From::in_class:
      return protocol::Threads::in_class;
  }
  std::abort();
}
protocol::Visits lowered(Intervention::Visits visits) {
  using From = Intervention::Visits;
  switch (visits) {
    case From::every:
      return protocol::Visits::every;
    case From::only_nth:
      return protocol::Visits::only_nth;
    case From::from_nth:
      return protocol::Visits::from_nth;
    case From::halving:
      return protocol::Visits::halving;
  }
  std::abort();
}

// FUNCTION+0x3c: one instruction.
bool is_after_instruction(const Intervention& what) {
  return is_instruction(what.site) && what.position == Intervention::Position::after;
}

// The end of main, or a call of exit().
bool is_exit(const SiteName& site) {
  return site.api.empty() && site.file.empty() && site.offset == 0 && site.function == "exit";
}

bool goes_elsewhere(ProbeKind kind) {
  return kind == ProbeKind::jump || kind == ProbeKind::jump_if || kind == ProbeKind::ret;
}

// Why this cannot be done to this kind of site; nothing when it can.
std::optional<Error> why_impossible(const Intervention& what, const unflake::Plan& plan) {
  using Action = Intervention::Action;
  using Position = Intervention::Position;
  const ApiFacts* api = find_timing_api(what.site.api);
  if (what.position != Position::before && !api && !is_after_instruction(what))
    return about(what, "a line or a function has no other side",
                 "leave the position out, or name a call of a timing API");
  if (what.position == Position::start && api != nullptr && api->edge != Edge::creates &&
      api->edge != Edge::forks)
    return about(what, "only the creation of a thread or a process has a start",
                 "name a site of pthread_create or fork");
  if (changes_time(what) && (!api || !(api->traits & api_timed)))
    return about(what, "this call takes no time value", "name a sleep or a wait with a time-out");
  if (what.action == Action::hold && (!what.until || *what.until >= plan.interventions.size()))
    return about(what, "a hold needs another site to wait for", "");
  if (what.anchor && *what.anchor >= plan.interventions.size())
    return about(what, "the anchor of this intervention is not in the plan", "");
  return std::nullopt;
}

SamplerKind lower(unflake::Sampler sampler) {
  switch (sampler) {
    case unflake::Sampler::stay:
      return SamplerKind::stay;
    case unflake::Sampler::random_walk:
      return SamplerKind::random_walk;
    case unflake::Sampler::pct:
      return SamplerKind::pct;
    case unflake::Sampler::pos:
      return SamplerKind::pos;
    case unflake::Sampler::surw:
      return SamplerKind::surw;
  }
  return SamplerKind::stay;
}

static_assert(visits_of_hot_access == hot_after && exchanges_at_hot_access == visits_when_hot);

LoweredSchedule lower_schedule(const Schedule& schedule) {
  LoweredSchedule lowered;
  const auto stall = std::chrono::nanoseconds(schedule.stall).count();
  lowered.plan = {lower(schedule.sampler),
                  static_cast<uint32_t>(std::clamp<int>(schedule.depth, 1, deepest_pct)),
                  schedule.seed,
                  schedule.length,
                  static_cast<uint64_t>(std::max<int64_t>(0, stall)),
                  schedule.find_accesses,
                  schedule.watch_races};
  for (const Decision& decision : schedule.decisions)
    lowered.decisions.push_back({decision.point, decision.thread, 0});
  std::ranges::stable_sort(lowered.decisions, {}, &PlannedDecision::point);
  lowered.selected = schedule.selected;
  lowered.remaining = schedule.remaining;
  return lowered;
}

class Lowerer {
 public:
  Lowerer(const unflake::Plan& plan, CodeMap& code, const TestMemory& memory)
      : plan_(plan), code_(code), memory_(memory) {}

  Result<LoweredPlan> operator()() {
    add_images();
    if (auto done = set_flags(); !done) return done.error();
    for (const Intervention& what : plan_.interventions)
      if (auto error = why_impossible(what, plan_)) return *error;
    if (auto done = place_interventions(); !done) return done.error();
    number_rules();
    for (const auto& [name, members] : groups_)
      if (auto done = add_group(members); !done) return done.error();
    for (const std::string& function : plan_.extra_functions)
      if (auto done = add_extra_function(function); !done) return done.error();
    if (plan_.failures) add_reporters();
    if (plan_.functions || plan_.callees || !plan_.library_functions.empty()) add_functions();
    if (plan_.schedule) add_schedule(*plan_.schedule);
    order();
    return std::move(lowered_);
  }

 private:
  void add_images() {
    for (const auto& [path, image] : memory_.images) {
      images_.push_back(&image);
      lowered_.images.push_back({path, image.build_id, image.is_project, {}});
      if (image.is_project) lowered_.images.back().skips = code_.skip_ranges(image);
    }
    for (const std::string& folder : code_.policy().system_prefixes())
      lowered_.system_prefixes.push_back(folder.ends_with('/') ? folder : folder + "/");
  }

  Result<void> set_flags() {
    const auto set = [&](bool wanted, uint32_t flag) { lowered_.flags |= wanted ? flag : 0; };
    set(plan_.calls, record_events);
    set(plan_.calls && plan_.stacks, record_stacks);
    set(plan_.hold_exit, hold_exit);
    set(plan_.system_calls, include_system);
    set(plan_.failures, capture_failures);
    lowered_.hold_exit_ns = static_cast<uint64_t>(exit_grace.count());
    lowered_.groups = ~uint32_t{0};
    for (const std::string& name : plan_.groups_off) {
      const auto group = timing_group(name);
      if (!group) return group.error();
      lowered_.groups &= ~(uint32_t{1} << static_cast<uint32_t>(*group));
    }
    return {};
  }

  Result<void> place_interventions() {
    for (const Intervention& what : plan_.interventions) {
      places_.push_back(what.site);
      if (!is_after_instruction(what)) continue;
      if (auto done = move_behind(places_.back()); !done) return done.error();
    }
    return {};
  }

  // A thread has passed an instruction when it is about to execute the next one.
  Result<void> move_behind(SiteName& site) {
    for (size_t i = 0; i < images_.size(); ++i) {
      const bool asked_for = site.image.empty() || base_name(images_[i]->path) == site.image;
      const auto image = asked_for ? code_.image(*images_[i]) : nullptr;
      if (!image) continue;
      for (const Function* function : find_functions(*image, site.function).functions) {
        const uint64_t address = function->start + site.offset;
        const auto all = instruction_addresses(*image, *function);
        const auto next = std::ranges::upper_bound(all, address);
        const ProbePlan at = plan_probes(*image, std::vector{address}, {0, 0});
        if (next == all.end() || at.probes.empty()) continue;
        if (goes_elsewhere(at.probes.front().kind))
          return usage_error("where this instruction goes on is not known", to_string(site),
                             "leave the position out, or name the instruction that comes next");
        site.offset = *next - function->start;
        return {};
      }
    }
    return unknown_site(site, {});
  }

  // Interventions at one site are adjacent.
  void number_rules() {
    for (size_t i = 0; i < plan_.interventions.size(); ++i)
      groups_[to_string(places_[i])].push_back(i);
    lowered_.rule_of.resize(plan_.interventions.size());
    uint32_t next = 0;
    for (const auto& [name, members] : groups_)
      for (const size_t member : members) lowered_.rule_of[member] = next++;
  }

  Result<void> add_group(const std::vector<size_t>& members) {
    const SiteName& site = places_[members.front()];
    const auto first = static_cast<uint32_t>(lowered_.rules.size());
    for (const size_t member : members) {
      auto rule = rule_for(plan_.interventions[member]);
      if (!rule) return rule.error();
      lowered_.rules.push_back(*rule);
    }
    const auto count = static_cast<uint32_t>(members.size());
    if (is_exit(site)) return add_exit(site, exit_api, first, count);
    if (site == end_of_thread()) return add_exit(site, thread_end_api, first, count);
    if (!site.api.empty()) return add_call(site, first, count);
    const bool is_watched = std::ranges::all_of(members, [&](size_t member) {
      return plan_.interventions[member].action == Intervention::Action::watch;
    });
    return add_probed_site(site, first, count, is_watched);
  }

  Result<Rule> rule_for(const Intervention& what) {
    Rule rule{};
    rule.thread = what.threads == Intervention::Threads::in_class ? what.thread.thread_class
                                                                  : what.thread.name;
    rule.duration_ns = to_ns(what.duration);
    rule.count = what.count;
    rule.nth = std::max<uint64_t>(1, what.nth);
    const auto executable = executable_for(what);
    if (!executable) return executable.error();
    rule.executable = *executable;
    rule.anchor = what.anchor ? lowered_.rule_of[*what.anchor] : none;
    rule.other = what.until ? lowered_.rule_of[*what.until] : none;
    rule.action = lowered(what.action);
    rule.position =
        is_after_instruction(what) ? protocol::Position::before : lowered(what.position);
    rule.threads = lowered(what.threads);
    rule.visits = lowered(what.visits);
    return rule;
  }

  // The first threads of all programs have the same hash; the name `main` means the test's own.
  Result<uint32_t> executable_for(const Intervention& what) {
    const bool is_main =
        what.threads == Intervention::Threads::named && what.thread.name == main_thread;
    for (size_t i = 0; i < images_.size(); ++i) {
      const std::string& path = images_[i]->path;
      const bool wanted = what.executable.empty()
                              ? is_main && path == memory_.sites.own_executable()
                              : base_name(path) == what.executable;
      if (wanted) return static_cast<uint32_t>(i);
    }
    if (what.executable.empty()) return none;
    return about(what, fmt::format("no run has shown an executable {}", what.executable),
                 "`unflake trace` shows the processes of a test");
  }

  Result<void> add_exit(const SiteName& name, uint16_t api, uint32_t first_rule,
                        uint32_t rule_count) {
    const std::string& own = memory_.sites.own_executable();
    for (uint32_t i = 0; i < images_.size(); ++i)
      if (name.image.empty() ? images_[i]->path == own
                             : base_name(images_[i]->path) == name.image) {
        lowered_.sites.push_back({0, i, api, 0, first_rule, rule_count});
        return {};
      }
    return usage_error("no run has shown the program that this is the exit of", to_string(name),
                       "`unflake trace` shows the processes of a test");
  }

  Result<void> add_call(const SiteName& name, uint32_t first_rule, uint32_t rule_count) {
    const LearnedSite* site = memory_.sites.find(name);
    if (!site) return unknown_site(name, memory_.sites.names());
    if (std::ranges::all_of(site->addresses, &std::string::empty, &CodeAddress::image_path))
      return usage_error("no agent can act there yet: this code is in no program or library file",
                         to_string(name), "name a site of native code");
    for (const CodeAddress& address : site->addresses) {
      const auto image = std::ranges::find_if(
          images_, [&](const TracedImage* one) { return one->path == address.image_path; });
      if (image == images_.end()) continue;
      lowered_.sites.push_back({address.address, static_cast<uint32_t>(image - images_.begin()),
                                site->api, 0, first_rule, rule_count});
    }
    return {};
  }

  // Where only a watch wants to be, another line that begins there as well may have the place: one
  // of its copies is enough.
  Result<void> add_probed_site(const SiteName& name, uint32_t first_rule, uint32_t rule_count,
                               bool is_watched = false) {
    std::vector<std::string> similar;
    size_t found = 0;
    std::string_view why_not;
    for (uint32_t i = 0; i < images_.size(); ++i) {
      const bool asked_for = name.image.empty() || base_name(images_[i]->path) == name.image;
      const auto image = asked_for ? code_.image(*images_[i]) : nullptr;
      if (!image) continue;
      const std::vector<uint64_t> addresses = addresses_of(*image, name, similar);
      ProbePlan planned = plan_probes(*image, addresses, {i, 0});
      if (is_watched) leave_free(planned.probes);
      for (const Probe& probe : planned.probes)
        if (auto added = add_probe(probe, name, first_rule, rule_count); !added)
          return added.error();
      found += planned.probes.size();
      if (!planned.unprobeable.empty()) why_not = planned.unprobeable.front().reason;
    }
    if (found > 0) return {};
    if (!why_not.empty())
      return usage_error(fmt::format("no probe can be put there: {}", why_not), to_string(name),
                         "name a line or a function near it");
    return unknown_site(name, similar);
  }

  bool is_taken(const Probe& probe) const {
    return std::ranges::count(lowered_.probes, probe.address, &Probe::address) > 0;
  }

  void leave_free(std::vector<Probe>& probes) const {
    const auto free =
        std::ranges::remove_if(probes, [&](const Probe& one) { return is_taken(one); });
    if (free.begin() != probes.begin()) probes.erase(free.begin(), free.end());
  }

  Result<void> add_probe(Probe probe, const SiteName& name, uint32_t first_rule,
                         uint32_t rule_count) {
    const auto same = std::ranges::find(lowered_.probes, probe.address, &Probe::address);
    if (same != lowered_.probes.end())
      return usage_error(
          fmt::format(
              "{} and {} are the same instruction", to_string(name),
              to_string(lowered_.probe_names[static_cast<size_t>(same - lowered_.probes.begin())])),
          "", "use one of the two names for both");
    probe.site = static_cast<uint32_t>(lowered_.sites.size());
    lowered_.sites.push_back(
        {offset_of(probe.address), image_of(probe.address), probe_api, 0, first_rule, rule_count});
    lowered_.probes.push_back(probe);
    lowered_.probe_names.push_back(name);
    return {};
  }

  Result<void> add_extra_function(const std::string& function) {
    SiteName name;
    name.function = function;
    if (groups_.contains(to_string(name))) return {};
    return add_probed_site(name, 0, 0);
  }

  void add_reporters() {
    for (uint32_t i = 0; i < images_.size(); ++i) {
      const auto image = code_.image(*images_[i]);
      if (!image) continue;
      for (const AssertionReporter& reporter : code_.reporters(*images_[i])) {
        ProbePlan planned =
            plan_entries(*image, {&reporter.function, 1}, {i, probe_reports_failure});
        for (Probe& probe : planned.probes) probe.sign = reporter.sign;
        add_silent_probes(planned.probes, i);
      }
    }
  }

  void add_functions() {
    const FunctionsWanted wanted{plan_.functions, plan_.callees, plan_.library_functions};
    for (uint32_t i = 0; i < images_.size(); ++i) {
      if (!images_[i]->is_project) continue;
      const TracedEntries& entries = code_.entries(*images_[i], wanted);
      add_silent_probes(entries.probes, i);
      for (const auto& [reason, count] : entries.unprobeable) lowered_.unprobeable[reason] += count;
    }
  }

  void add_schedule(const Schedule& schedule) {
    lowered_.schedule = lower_schedule(schedule);
    if (schedule.accesses.empty() && !schedule.find_accesses) return;
    std::set<std::string> wanted, hot;
    for (const SiteName& access : schedule.accesses) wanted.insert(to_string(access));
    for (const SiteName& access : schedule.hot_accesses) hot.insert(to_string(access));
    for (uint32_t i = 0; i < images_.size(); ++i) {
      const auto image = images_[i]->is_project ? code_.image(*images_[i]) : nullptr;
      if (!image || !why_never_probed(images_[i]->path).empty()) continue;
      add_accesses(i, schedule.find_accesses, wanted, hot);
    }
  }

  // Which image is the test's own shows only its first run; it may be left out of a name.
  bool is_wanted(const ProbedAccess& access, const std::string& image,
                 const std::set<std::string>& wanted) const {
    if (wanted.contains(image + "!" + access.text)) return true;
    if (!wanted.contains(access.text)) return false;
    const std::string own = base_name(memory_.sites.own_executable());
    return own.empty() || own == image;
  }

  void add_accesses(uint32_t number, bool finds_all, const std::set<std::string>& wanted,
                    const std::set<std::string>& hot) {
    const std::string image = base_name(images_[number]->path);
    for (const ProbedAccess& access : code_.accesses(*images_[number])) {
      const bool is_known = is_wanted(access, image, wanted);
      if (!finds_all && !is_known) continue;
      Probe probe = access.probe;
      probe.address = make_address(number, offset_of(probe.address));
      if (is_probed(probe.address)) continue;
      probe.target = static_cast<int32_t>(lowered_.schedule->accesses.size());
      SiteName name = access.name;
      name.image = image;
      lowered_.schedule->accesses.push_back(access.access);
      uint8_t& flags = lowered_.schedule->accesses.back().flags;
      if (is_known) flags |= access_is_known;
      if (is_wanted(access, image, hot)) flags |= access_is_hot;
      lowered_.schedule->access_names.push_back(name);
      lowered_.probes.push_back(probe);
      lowered_.probe_names.push_back(std::move(name));
      probed_.insert(probe.address);
    }
  }

  // The plan may have a probe there already.
  bool is_probed(Address address) {
    if (probed_.empty())
      for (const Probe& probe : lowered_.probes) probed_.insert(probe.address);
    return probed_.contains(address);
  }

  // Probes that are no sites. Where there is one already, it does both.
  void add_silent_probes(const std::vector<Probe>& probes, uint32_t image) {
    std::map<Address, size_t> taken;
    for (size_t i = 0; i < lowered_.probes.size(); ++i)
      if (image_of(lowered_.probes[i].address) == image) taken[lowered_.probes[i].address] = i;
    for (Probe probe : probes) {
      probe.address = make_address(image, offset_of(probe.address));
      const auto same = taken.find(probe.address);
      if (same != taken.end()) {
        lowered_.probes[same->second].flags |= probe.flags & probe_reports_failure;
        if (probe.flags & probe_reports_failure) lowered_.probes[same->second].sign = probe.sign;
        continue;
      }
      lowered_.probes.push_back(probe);
      lowered_.probe_names.emplace_back();
    }
  }

  // As the agent wants to find them: sites by place, probes by address.
  void order() {
    std::vector<uint32_t> by_place(lowered_.sites.size());
    std::iota(by_place.begin(), by_place.end(), 0u);
    std::ranges::sort(by_place, {}, [&](uint32_t i) {
      const PlanSite& site = lowered_.sites[i];
      return std::tuple(site.image, site.offset, site.api);
    });
    std::vector<PlanSite> sites;
    std::vector<uint32_t> new_number(by_place.size());
    for (const uint32_t old : by_place) {
      new_number[old] = static_cast<uint32_t>(sites.size());
      sites.push_back(lowered_.sites[old]);
    }
    lowered_.sites = std::move(sites);
    order_probes(new_number);
  }

  void order_probes(const std::vector<uint32_t>& new_number) {
    for (Probe& probe : lowered_.probes)
      if (probe.site != none) probe.site = new_number[probe.site];
    const auto address = [&](uint32_t i) { return lowered_.probes[i].address; };
    std::vector<uint32_t> order(lowered_.probes.size());
    std::iota(order.begin(), order.end(), 0u);
    if (std::ranges::is_sorted(order, {}, address)) return;
    std::ranges::sort(order, {}, address);
    std::vector<Probe> probes;
    std::vector<SiteName> names;
    for (const uint32_t i : order) {
      probes.push_back(lowered_.probes[i]);
      names.push_back(std::move(lowered_.probe_names[i]));
    }
    lowered_.probes = std::move(probes);
    lowered_.probe_names = std::move(names);
  }

  const unflake::Plan& plan_;
  CodeMap& code_;
  const TestMemory& memory_;
  LoweredPlan lowered_;
  std::set<Address> probed_;                           // filled when accesses are added
  std::vector<const TracedImage*> images_;             // as in lowered_.images
  std::map<std::string, std::vector<size_t>> groups_;  // interventions by site
  std::vector<SiteName> places_;                       // of interventions, in the code
};

}  // namespace

SiteName end_of_thread() {
  SiteName site;
  site.function = "thread end";
  return site;
}

Result<LoweredPlan> lower(const unflake::Plan& plan, CodeMap& code, const TestMemory& memory) {
  return Lowerer(plan, code, memory)();
}

}  // namespace unflake
