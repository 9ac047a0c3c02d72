#include "trace/translation.h"

#include <algorithm>
#include <chrono>

#include "util/paths.h"

namespace unflake {
namespace {

using namespace protocol;

// A name says all about its code, in every run; its number says nothing.
uint64_t address_in_image(const RawAddress& address) {
  return address.name == no_index ? address.offset : 0;
}

}  // namespace

// Code that is not in an image is the project's when its file is.
RaisedCode::RaisedCode(const RawTrace& raw, CodeMap& code, TestMemory& memory)
    : raw_(raw), code_(code), memory_(memory), callers_(raw.stacks.size()) {
  for (const RawName& name : raw_.names) {
    const bool is_project = code_.policy().is_project_file(name.file);
    if (is_project) memory_.sites.files().add({name.file});
    named_.push_back(
        {{Frame{name.function, name.file, name.line, 0, false}}, is_project ? 0u : 1u});
  }
}

const NamedCode* RaisedCode::place_of(const RawAddress& address, bool exact) {
  if (address.name != no_index) return &named_[address.name];
  if (address.image == no_index) return nullptr;
  const TracedImage& image = raw_.images[address.image];
  return &(exact ? code_.at(image, address.offset) : code_.before(image, address.offset));
}

TracedStack RaisedCode::stack_of(const std::vector<RawAddress>& frames, bool first_is_exact) {
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

std::optional<RawAddress> RaisedCode::project_caller(uint32_t stack) {
  auto& known = callers_[stack];
  if (known) return *known;
  known.emplace();
  for (const RawAddress& frame : raw_.stacks[stack]) {
    const NamedCode* place = place_of(frame);
    if (place && place->project()) return *(known = frame);
  }
  return std::nullopt;
}

TracedImage RaisedCode::image_of(const RawAddress& address) const {
  return address.image == no_index ? TracedImage() : raw_.images[address.image];
}

std::string RaisedCode::name_of(const RawAddress& address) {
  const NamedCode* place = place_of(address);
  if (!place) return "unknown";
  return to_string(memory_.sites.name_place(image_of(address), *place, address_in_image(address)));
}

const LearnedSite& RaisedCode::learn_call(const RawAddress& address, uint16_t api) {
  const TracedImage image = image_of(address);
  if (address.image != no_index)
    memory_.images.try_emplace(image.path, image);  // whoever owns it, a plan may name the site
  return memory_.sites.learn_call(image, *place_of(address), address_in_image(address), api);
}

namespace {

// What a library has inlined is where the project's code uses it.
std::string location_in(const NamedCode& place) {
  return location_of(place.project() ? *place.project() : place.frames.front());
}

}  // namespace

// In the order of addresses, which is the order of their numbers.
RaisedSites::RaisedSites(const RawTrace& raw, const LoweredPlan& plan, RaisedCode& code,
                         TestMemory& memory)
    : raw_(raw), plan_(plan), code_(code), memory_(memory) {
  for (const auto& [address, api] : calls()) learn_call(address, api);
}

// A site of the agent that is not project code is named by the stacks of its calls, if it has any.
std::set<std::pair<RawAddress, uint16_t>> RaisedSites::calls() {
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
    const NamedCode* place = code_.place_of(site.address);
    if (site.probe == no_index && (!named[i] || (place && place->project())))
      calls.emplace(site.address, site.api);
  }
  return calls;
}

// Where a call was made: as its own stack says, or else as the agent attributed it.
RawAddress RaisedSites::caller_of(uint32_t site, uint32_t stack) {
  const auto seen = stack == no_index ? std::nullopt : code_.project_caller(stack);
  return seen.value_or(raw_.sites[site].address);
}

void RaisedSites::learn_call(const RawAddress& address, uint16_t api) {
  const NamedCode* place = code_.place_of(address);
  if (!place) return;
  TracedSite site{code_.learn_call(address, api).name,
                  api_facts[api].group_name,
                  "",
                  address.image,
                  address.offset,
                  api};
  if (!place->frames.empty()) site.location = location_in(*place);
  calls_[{address, api}] = add(site);
}

uint32_t RaisedSites::add(const TracedSite& site) {
  const auto [known, is_new] =
      numbers_.try_emplace(to_string(site.name), static_cast<uint32_t>(sites_.size()));
  if (is_new) sites_.push_back(site);
  return known->second;
}

uint32_t RaisedSites::number_of(uint32_t site, uint32_t stack) {
  const RawSite& raw = raw_.sites[site];
  if (raw.probe != no_index) return probe_site(raw);
  const auto found = calls_.find({caller_of(site, stack), raw.api});
  return found == calls_.end() ? no_index : found->second;
}

uint32_t RaisedSites::probe_site(const RawSite& raw) {
  if (raw.probe >= plan_.probe_names.size() || plan_.probe_names[raw.probe] == SiteName())
    return no_index;
  TracedSite site{as_seen_from_test(plan_.probe_names[raw.probe]),
                  "probe",
                  "",
                  raw.address.image,
                  raw.address.offset,
                  probe_api};
  const NamedCode* place = code_.place_of(raw.address, true);
  if (place && !place->frames.empty()) site.location = location_in(*place);
  return add(site);
}

uint32_t RaisedSites::number_of(const SiteName& access) const {
  const auto found = numbers_.find(to_string(as_seen_from_test(access)));
  return found == numbers_.end() ? no_index : found->second;
}

SiteName RaisedSites::as_seen_from_test(SiteName name) const {
  if (name.image == base_name(memory_.sites.own_executable())) name.image.clear();
  return name;
}

// A count of the agent belongs to one site, unless its calls show that the agent took several
// callers for one: then it is divided as the calls were.
std::vector<TracedVisits> VisitCounts::of(const std::vector<RawTally>& tallies) {
  for (const RawTally& tally : tallies) {
    const auto seen = seen_.find({tally.thread, tally.site});
    if (seen != seen_.end()) {
      divide(tally, seen->second);
      continue;
    }
    const uint32_t site = sites_.number_of(tally.site, no_index);
    if (site != no_index) add(tally.thread, site, tally.visits, tally.waited_ns);
  }
  std::vector<TracedVisits> all;
  for (const auto& [key, visits] : visits_) all.push_back(visits);
  return all;
}

void VisitCounts::divide(const RawTally& tally, const std::map<uint32_t, uint64_t>& calls_of) {
  uint64_t calls_left = 0, visits_left = tally.visits, waited_left = tally.waited_ns;
  for (const auto& [site, count] : calls_of) calls_left += count;
  for (const auto& [site, count] : calls_of) {
    const double part = static_cast<double>(count) / static_cast<double>(calls_left);
    const auto share = [part](uint64_t& left) {
      const auto own = part < 1 ? static_cast<uint64_t>(static_cast<double>(left) * part) : left;
      return left -= own, own;
    };
    const uint64_t visits = share(visits_left);
    add(tally.thread, site, visits, share(waited_left));
    calls_left -= count;
  }
}

void VisitCounts::add(uint32_t thread, uint32_t site, uint64_t count, uint64_t waited_ns) {
  TracedVisits& entry = visits_[{thread, site}];
  entry.thread = thread;
  entry.site = site;
  entry.visits += count;
  entry.waited += to_duration(waited_ns);
}

Duration to_duration(uint64_t ns) {
  return std::chrono::duration_cast<Duration>(
      std::chrono::nanoseconds(std::min<uint64_t>(ns, INT64_MAX)));
}

}  // namespace unflake
