#include "trace/code_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/executed.h"
#include "symbols/image.h"
#include "symbols/probe_plan.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

using protocol::any_bit;
using protocol::argument_itself;

constexpr uint8_t bits(auto... values) {
  return static_cast<uint8_t>(((1 << values) | ...));
}

struct Reporter {
  std::string_view mangled;  // its name up to the parameters
  protocol::FailureSign sign{0, argument_itself, 0};
};

constexpr uint8_t catch_failure_bit = 0x10;          // in Catch::ResultWas::OfType
constexpr uint8_t doctest_check_or_require = 2 | 4;  // of doctest::assertType
constexpr uint8_t doctest_severity = 36;             // in doctest::MessageData
constexpr uint8_t doctest_failed = 40;               // in doctest::AssertData, a bool

constexpr Reporter reporters[] = {
    {"_ZN7testing8UnitTest17AddTestPartResultE", {2, argument_itself, bits(1, 2)}},

    {"_ZN5Catch10RunContext10reportExprE", {3 | any_bit, argument_itself, catch_failure_bit}},
    {"_ZN5Catch10RunContext13handleMessageE", {3 | any_bit, argument_itself, catch_failure_bit}},
    {"_ZN5Catch10RunContext13handleNonExprE", {3 | any_bit, argument_itself, catch_failure_bit}},
    {"_ZN5Catch10RunContext34handleUnexpectedExceptionNotThrownE"},
    {"_ZN5Catch10RunContext33handleUnexpectedInflightExceptionE"},

    {"_ZN7doctest12_GLOBAL__N_115ConsoleReporter10log_assertE", {2, doctest_failed, bits(1)}},
    {"_ZN7doctest12_GLOBAL__N_115ConsoleReporter19test_case_exceptionE"},
    {"_ZN7doctest12_GLOBAL__N_115ConsoleReporter11log_messageE",
     {2 | any_bit, doctest_severity, doctest_check_or_require}},

    {"_ZN5boost9unit_test19results_collector_t16assertion_resultE", {2, argument_itself, bits(0)}},
    {"_ZN5boost9unit_test19results_collector_t16exception_caughtE"},
};

// What a compiler split off from a function does not begin with its entry.
bool is_split_off(const Function& function) {
  return function.mangled.find('.') != std::string::npos;
}

}  // namespace

std::vector<AssertionReporter> assertion_reporters(const Image& image) {
  std::vector<AssertionReporter> found;
  for (const Function& function : image.functions())
    for (const Reporter& reporter : reporters)
      if (function.mangled.starts_with(reporter.mangled) && !is_split_off(function))
        found.push_back({function, reporter.sign});
  return found;
}

bool is_framework_library(std::string_view file_name) {
  constexpr std::array prefixes{"libgtest.", "libCatch2.", "libdoctest.",
                                "libboost_unit_test_framework."};
  return std::ranges::any_of(
      prefixes, [&](std::string_view prefix) { return file_name.starts_with(prefix); });
}

namespace {

void add_skips(const std::vector<Extent>& extents, uint32_t flag,
               std::vector<protocol::SkipRange>& skips) {
  for (const Extent& extent : extents)
    if (extent.start + extent.size <= INT32_MAX)
      skips.push_back(
          {static_cast<uint32_t>(extent.start), static_cast<uint32_t>(extent.size) | flag});
}

bool is_skipped(const std::vector<protocol::SkipRange>& skips, uint64_t address) {
  const auto next = std::ranges::upper_bound(skips, address, {}, &protocol::SkipRange::start);
  if (next == skips.begin()) return false;
  const protocol::SkipRange& range = *std::prev(next);
  return address - range.start < (range.size & ~protocol::foreign_code);
}

constexpr size_t most_sources = 3;

// "a.cc, b.cc and 2 more"
std::string some_of(std::vector<std::string> names) {
  const size_t count = names.size();
  names.resize(std::min(count, most_sources));
  const std::string first = join(names, ", ");
  return count > most_sources ? fmt::format("{} and {} more", first, count - most_sources) : first;
}

}  // namespace

// What is wrong in a system library does not concern the user.
CodeMap::Known& CodeMap::known(const TracedImage& image) {
  const auto [entry, is_new] = images_.try_emplace({image.path, image.build_id});
  if (!is_new) return entry->second;
  auto opened = open_(image.path);
  const bool other = opened && !image.build_id.empty() && (*opened)->build_id() != image.build_id;
  if (opened && !other) entry->second.image = std::move(*opened);
  if (!opened && image.is_project) problems_.push_back(to_string(opened.error()));
  if (other && image.is_project)
    problems_.push_back(
        fmt::format("{} was built again since it ran; run the command again", image.path));
  return entry->second;
}

const NamedCode& CodeMap::at(const TracedImage& image, uint64_t address) {
  Known& code = known(image);
  const auto [entry, is_new] = code.places.try_emplace(address);
  NamedCode& place = entry->second;
  if (!is_new || !code.image) return place;
  place.frames = code.image->frames_at(address);
  const Frame* first = image.is_project ? first_project_frame(place.frames, policy_) : nullptr;
  if (first && first->file.empty() && is_skipped(skip_ranges(image), address)) first = nullptr;
  place.first_project =
      first ? static_cast<size_t>(first - place.frames.data()) : place.frames.size();
  return place;
}

std::vector<std::string> CodeMap::project_files(const TracedImage& image) {
  std::vector<std::string> files;
  const Known& code = known(image);
  if (!code.image) return files;
  for (const std::string& file : code.image->files())
    if (policy_.is_project_file(file)) files.push_back(file);
  return files;
}

const std::vector<protocol::SkipRange>& CodeMap::skip_ranges(const TracedImage& image) {
  Known& code = known(image);
  if (code.skips) return *code.skips;
  code.skips.emplace();
  if (!code.image) return *code.skips;
  add_skips(unflake::skip_ranges(*code.image, policy_), 0, *code.skips);
  add_skips(foreign_ranges(*code.image, policy_), protocol::foreign_code, *code.skips);
  std::ranges::sort(*code.skips, {}, &protocol::SkipRange::start);
  return *code.skips;
}

const std::vector<AssertionReporter>& CodeMap::reporters(const TracedImage& image) {
  Known& code = known(image);
  if (!code.reporters)
    code.reporters =
        code.image ? assertion_reporters(*code.image) : std::vector<AssertionReporter>();
  return *code.reporters;
}

// Those of which at least the entry is not skipped.
namespace {

const protocol::SkipRange* range_around(const std::vector<protocol::SkipRange>& skips,
                                        uint64_t address) {
  const auto next = std::ranges::upper_bound(skips, address, {}, &protocol::SkipRange::start);
  if (next == skips.begin()) return nullptr;
  const protocol::SkipRange& range = *std::prev(next);
  return address - range.start < (range.size & ~protocol::foreign_code) ? &range : nullptr;
}

}  // namespace

namespace {

// What nearly every program calls all the time says nothing about a test, and costs a hit.
bool is_everywhere(std::string_view mangled) {
  constexpr std::array beginnings = {"__cxa_",  "_Znw",   "_Zna",   "_Zdl",    "_Zda",
                                     "_Unwind", "mem",    "str",    "__mem",   "__str",
                                     "__stack", "_ZSt9t", "malloc", "realloc", "calloc"};
  return mangled == "free" || std::ranges::any_of(beginnings, [&](std::string_view beginning) {
           return mangled.starts_with(beginning);
         });
}

bool matches_any(const std::vector<std::string>& globs, const std::string& name) {
  return std::ranges::any_of(globs,
                             [&](const std::string& glob) { return names_function(glob, name); });
}

}  // namespace

namespace {

std::vector<Function> called_functions(const std::vector<Import>& imports) {
  std::vector<Function> called;
  for (const Import& import : imports)
    if (!is_everywhere(import.name)) called.push_back({"", import.name, import.entry, 0, "", 0});
  return called;
}

void add_entries(TracedEntries& entries, const Image& image, std::span<const Function> functions,
                 uint8_t flags) {
  const ProbePlan planned = plan_entries(image, functions, {0, flags});
  entries.probes.insert(entries.probes.end(), planned.probes.begin(), planned.probes.end());
  for (const Unprobeable& place : planned.unprobeable)
    ++entries.unprobeable[std::string(place.reason)];
}

}  // namespace

// Of other code those whose names were asked for: what the standard library's templates became is
// most of many programs.
std::vector<Function> CodeMap::functions(const TracedImage& image, const FunctionsWanted& wanted) {
  std::vector<Function> found;
  const auto& skips = skip_ranges(image);
  const Known& code = known(image);
  if (!code.image) return found;
  for (const Function& function : code.image->functions()) {
    const bool is_own = range_around(skips, function.start) == nullptr;
    if (is_own ? wanted.project
               : !wanted.library.empty() && !is_split_off(function) &&
                     matches_any(wanted.library, qualified_name(function.name)))
      found.push_back(function);
  }
  return found;
}

const TracedEntries& CodeMap::entries(const TracedImage& image, const FunctionsWanted& wanted) {
  Known& code = known(image);
  if (code.entries && code.entries->first == wanted) return code.entries->second;
  TracedEntries entries;
  if (code.image && why_never_probed(image.path).empty()) {
    add_entries(entries, *code.image, functions(image, wanted), protocol::probe_one_shot);
    if (wanted.callees)
      add_entries(entries, *code.image, called_functions(imports(image)), protocol::probe_of_call);
    std::ranges::stable_sort(entries.probes, {}, &protocol::Probe::address);
  }
  code.entries.emplace(wanted, std::move(entries));
  return code.entries->second;
}

const std::vector<Import>& CodeMap::imports(const TracedImage& image) {
  Known& code = known(image);
  if (!code.imports) code.imports = code.image ? code.image->imports() : std::vector<Import>();
  return *code.imports;
}

const Import* CodeMap::import_at(const TracedImage& image, uint64_t entry) {
  const auto& all = imports(image);
  const auto found = std::ranges::lower_bound(all, entry, {}, &Import::entry);
  return found != all.end() && found->entry == entry ? &*found : nullptr;
}

FunctionKind CodeMap::kind_of(const TracedImage& image, uint64_t entry) {
  if (import_at(image, entry) != nullptr) return FunctionKind::call;
  const bool is_own = range_around(skip_ranges(image), entry) == nullptr;
  return is_own ? FunctionKind::project : FunctionKind::library;
}

std::string CodeMap::name_of_entry(const TracedImage& image, uint64_t entry) {
  if (const Import* import = import_at(image, entry))
    return qualified_name(demangle(import->name.c_str()));
  const NamedCode& place = at(image, entry);
  return place.frames.empty() ? "" : place.frames.back().function;
}

namespace {

void add_accesses(std::vector<ProbedAccess>& all, const Image& image, const Function& function) {
  std::map<uint64_t, protocol::PlanAccess> found;
  std::vector<uint64_t> addresses;
  for (const MemoryAccess& access : memory_accesses(image, function)) {
    found[access.address] = access.access;
    addresses.push_back(access.address);
  }
  if (addresses.empty()) return;
  for (const protocol::Probe& probe :
       plan_probes(image, addresses, {0, protocol::probe_accesses}).probes) {
    const auto access = found.find(protocol::offset_of(probe.address));
    if (access == found.end()) continue;
    SiteName name;
    name.function = function.mangled;
    name.offset = access->first - function.start;
    all.push_back({probe, access->second, name, to_string(name)});
  }
}

}  // namespace

const std::vector<ProbedAccess>& CodeMap::accesses(const TracedImage& image) {
  Known& code = known(image);
  if (!code.accesses) code.accesses = find_accesses(image);
  return *code.accesses;
}

// Functions may share their code.
std::vector<ProbedAccess> CodeMap::find_accesses(const TracedImage& image) {
  std::vector<ProbedAccess> accesses;
  const auto& skips = skip_ranges(image);
  const Known& code = known(image);
  if (!code.image) return accesses;
  for (const Function& function : code.image->functions()) {
    const protocol::SkipRange* range = range_around(skips, function.start);
    if (range == nullptr || (range->size & protocol::foreign_code) == 0)
      add_accesses(accesses, *code.image, function);
  }
  const auto address = [](const ProbedAccess& access) { return access.probe.address; };
  std::ranges::stable_sort(accesses, {}, address);
  const auto same = std::ranges::unique(accesses, {}, address);
  accesses.erase(same.begin(), same.end());
  return accesses;
}

std::optional<CodeNote> CodeMap::missing_debug_information(const TracedImage& raw) {
  const auto code = image(raw);
  if (!code || is_framework_library(base_name(raw.path))) return std::nullopt;
  const std::string name = base_name(raw.path);
  if (!code->has_debug_information()) {
    const std::string why = code->why_no_debug_information();
    const size_t mark = std::min(why.find("; "), why.size());
    return CodeNote{
        fmt::format("{} has no debug information ({}): its code is seen without files and lines",
                    name, why.substr(0, mark)),
        why.substr(std::min(mark + 2, why.size()))};
  }
  std::vector<std::string> sources;
  for (const BareUnit* unit : bare_project_units(*code, policy_)) sources.push_back(unit->source);
  if (sources.empty()) return std::nullopt;
  const bool is_one = sources.size() == 1;
  return CodeNote{
      fmt::format("{} in {} {} no debug information: {} code is seen without lines",
                  some_of(sources), name, is_one ? "has" : "have", is_one ? "its" : "their"),
      fmt::format("compile {} with -g, too", is_one ? "it" : "them")};
}

// Most runs of a test load the same images.
const std::vector<CodeNote>& CodeMap::notes(const std::vector<TracedImage>& images) {
  std::vector<std::string> paths;
  for (const TracedImage& image : images) paths.push_back(image.path);
  const auto [known, is_new] = notes_.try_emplace(std::move(paths));
  if (is_new) known->second = notes_about(images);
  return known->second;
}

std::vector<CodeNote> CodeMap::notes_about(const std::vector<TracedImage>& images) {
  std::vector<CodeNote> notes;
  std::vector<std::string> paths;
  for (const TracedImage& raw : images) {
    paths.push_back(raw.path);
    if (!raw.is_project) continue;
    if (auto missing = missing_debug_information(raw)) notes.push_back(std::move(*missing));
    if (const auto code = image(raw))
      paths.insert(paths.end(), code->files().begin(), code->files().end());
  }
  for (const std::string& entry : policy_.unmatched(paths))
    notes.push_back({entry + " matches no file of this program or of the project",
                     "entries are folders or globs, relative to the project's root"});
  return notes;
}

namespace {

std::vector<uint64_t> line_beginnings(const Image& image, const SiteName& site,
                                      std::vector<std::string>& similar) {
  const LineMatch match = addresses_of_line(image, site.file, site.line);
  if (match.line == site.line && !match.addresses.empty()) return match.addresses;
  if (!match.addresses.empty()) similar.push_back(fmt::format("{}:{}", site.file, match.line));
  for (const std::string& other : match.suggestions)
    similar.push_back(fmt::format("{}:{}", other, site.line));
  return {};
}

std::vector<uint64_t> function_entries(const Image& image, const SiteName& site,
                                       std::vector<std::string>& similar) {
  const FunctionMatches match = find_functions(image, site.function);
  for (const std::string& name : match.suggestions) similar.push_back(name + "()");
  std::vector<uint64_t> entries;
  for (const Function* function : match.functions) entries.push_back(function->start + site.offset);
  return entries;
}

}  // namespace

std::vector<uint64_t> addresses_of(const Image& image, const SiteName& site,
                                   std::vector<std::string>& similar) {
  if (!site.file.empty()) return line_beginnings(image, site, similar);
  if (site.function.empty()) return {site.offset};
  std::vector<uint64_t> entries = function_entries(image, site, similar);
  if (entries.empty() && site.offset > 0 && site.function == base_name(image.path()))
    return {site.offset};
  return entries;
}

Error unknown_site(const SiteName& site, const std::vector<std::string>& known) {
  std::vector<std::string> similar = nearest(to_string(site), known, 3);
  const bool is_call = !site.api.empty();
  for (const std::string& name : known)
    if (similar.size() < 3 && (!is_call || name.starts_with(site.file + ":")) &&
        std::ranges::find(similar, name) == similar.end())
      similar.push_back(name);
  return usage_error(fmt::format("there is no site {}", to_string(site)), "",
                     similar.empty() ? "`unflake trace` shows the sites of a test"
                                     : "did you mean " + join(similar, ", or ") + "?");
}

std::vector<std::string> timing_groups() {
  std::vector<std::string> names;
  for (const protocol::ApiFacts& api : protocol::api_facts)
    if (std::ranges::find(names, api.group_name) == names.end()) names.emplace_back(api.group_name);
  return names;
}

Result<protocol::Group> timing_group(const std::string& name) {
  for (const protocol::ApiFacts& api : protocol::api_facts)
    if (api.group_name == name) return api.group;
  return usage_error(fmt::format("there is no group '{}' of timing APIs", printable(name)), "",
                     "choose from " + join(timing_groups(), ", "));
}

}  // namespace unflake
