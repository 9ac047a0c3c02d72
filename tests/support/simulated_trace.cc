#include "support/simulated_trace.h"

#include <algorithm>

#include "protocol/agent_protocol.h"

namespace unflake::simulated {
namespace {

TracedStack one_frame(const SiteName& site) {
  const Frame frame{site.function, "/project/" + site.file, site.line, 0, false};
  return {{TracedFrame{0, static_cast<uint64_t>(site.line), {frame}}}};
}

TracedSite describe(const SiteName& site) {
  const bool is_probe = site.api.empty();
  const auto fact = std::ranges::find(protocol::api_facts, site.api,
                                      [](const auto& api) { return std::string(api.name); });
  const auto api = is_probe ? 0 : fact - std::begin(protocol::api_facts);
  return {site,
          is_probe ? "probe" : fact->group_name,
          to_string(line_of(site)),
          0,
          0,
          static_cast<uint16_t>(api)};
}

}  // namespace

SiteName line_of(const SiteName& site) {
  SiteName line = site;
  line.api.clear();
  return line;
}

TraceWriter::TraceWriter(const Program& program, const Plan& plan)
    : program_(program), plan_(plan) {
  trace_.images.push_back({"/project/" + program.name, program.name, true});
  trace_.processes.push_back({1, no_index, 0, program.name, {}, {}});
  trace_.interventions.resize(plan.interventions.size());
}

uint32_t TraceWriter::site_number(const SiteName& site) {
  const auto [known, is_new] = sites_.try_emplace(to_string(site), no_index);
  if (!is_new) return known->second;
  TracedSite added = describe(site);
  if (std::ranges::count(plan_.groups_off, added.group)) return no_index;
  known->second = static_cast<uint32_t>(trace_.sites.size());
  trace_.sites.push_back(std::move(added));
  return known->second;
}

uint32_t TraceWriter::stack_at(const SiteName& site) {
  const auto [known, is_new] =
      stacks_.try_emplace(to_string(line_of(site)), static_cast<uint32_t>(trace_.stacks.size()));
  if (is_new) trace_.stacks.push_back(one_frame(site));
  return known->second;
}

uint32_t TraceWriter::add_thread(const ThreadName& name, uint32_t parent,
                                 const SiteName& created_at, Duration now) {
  const auto number = static_cast<uint32_t>(trace_.threads.size());
  const uint32_t stack = created_at.line > 0 ? stack_at(created_at) : no_index;
  trace_.threads.push_back({0, 1 + static_cast<int>(number), parent, name, stack, now, {}, 0});
  return number;
}

void TraceWriter::add_failure(uint32_t thread, const Step& check, Duration now) {
  if (!plan_.failures) return;
  TracedFailure failure;
  failure.kind = check.is_fatal ? "signal" : "assertion";
  failure.thread = thread;
  failure.signal = check.is_fatal ? 11 : 0;
  failure.at = now;
  failure.file = "/project/" + check.site.file;
  failure.line = check.site.line;
  failure.stack = one_frame(check.site);
  trace_.failures.push_back(std::move(failure));
}

TracedCall TraceWriter::call_at(uint32_t thread, uint32_t site, Duration when) {
  TracedCall call;
  call.enter = call.exit = when;
  call.thread = thread;
  call.site = site;
  if (plan_.stacks && site != no_index) call.stack = stack_at(trace_.sites[site].name);
  return call;
}

void TraceWriter::add_calls(std::vector<TracedCall> calls) {
  if (!plan_.calls) return;
  std::ranges::stable_sort(calls, {}, &TracedCall::enter);
  trace_.calls.insert(trace_.calls.end(), calls.begin(), calls.end());
}

void TraceWriter::add_visits(uint32_t thread, const std::map<uint32_t, uint64_t>& visits,
                             const std::vector<TracedCall>& calls) {
  std::map<uint32_t, Duration> waited;
  for (const TracedCall& call : calls)
    if (!call.is_intervention) waited[call.site] += call.exit - call.enter;
  for (const auto& [site, count] : visits)
    trace_.visits.push_back({thread, site, count, waited[site]});
}

// A function's lines are those of all steps that belong to it.
void TraceWriter::add_functions() {
  std::map<std::string, TracedFunction> functions;
  for (const Script& script : program_.scripts)
    for (const Step& step : script.steps()) {
      if (!entered_.contains(step.function)) continue;
      TracedFunction& function = functions[step.function];
      function.image = 0;
      function.name = step.function;
      if (step.site.line == 0) continue;
      function.file = step.site.file;
      function.lines.push_back(step.site.line);
    }
  for (auto& [name, function] : functions) {
    std::ranges::sort(function.lines);
    const auto repeated = std::ranges::unique(function.lines);
    function.lines.erase(repeated.begin(), repeated.end());
    trace_.functions.push_back(std::move(function));
  }
}

std::shared_ptr<const Trace> TraceWriter::finish() {
  if (plan_.functions) add_functions();
  return std::make_shared<Trace>(std::move(trace_));
}

}  // namespace unflake::simulated
