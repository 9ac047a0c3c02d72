#include "app/repro_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "app/project.h"
#include "explain/explanation.h"
#include "repro/relocation.h"
#include "repro/repro_json.h"
#include "run/conditions.h"
#include "search/reproduce/strategy.h"
#include "trace/program_code.h"
#include "util/files.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {

TargetRecord record_of(const Target& target, const Test& test, const Project& project) {
  TargetRecord record{target.name, target.framework, target.path, target.argv};
  if (target.framework == Framework::command) record.name = to_string(test.id);
  if (const std::string below = path_below(target.path, project.root); !below.empty())
    record.path = below;
  return record;
}

namespace {

namespace fs = std::filesystem;

constexpr size_t longest_name = 120;
constexpr const char* ending = ".json";

// A name without special meaning to any shell, file system or archive.
std::string safe_name(std::string name) {
  name = name.substr(0, longest_name);
  const auto is_safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  std::ranges::replace_if(
      name, [&](char c) { return !is_safe(c); }, '_');
  if (name.starts_with('.') || name.starts_with('-')) name[0] = '_';
  return name;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

bool are_of_one_failure(const Repro& known, const Repro& repro) {
  return known.test == repro.test && known.signature == repro.signature;
}

// Different tests can have the same safe name, and signatures the same first digits.
template <class IsOf>
std::string path_for(const std::string& folder, const Repro& repro, IsOf is_of) {
  const std::string name = safe_name(to_string(repro.test));
  const auto path = [&](const std::string& rest) {
    return folder + "/" + name + "-" + rest + ending;
  };
  std::string chosen = path(repro.signature.substr(0, 8));
  for (int number = 1; exists(chosen) && !is_of(chosen); ++number)
    chosen = path(number == 1 ? repro.signature : fmt::format("{}-{}", repro.signature, number));
  return chosen;
}

// What was measured is worth more than the same failure without; but code that was changed since
// may not be what was measured.
bool says_more(const Repro& known, const Repro& repro) {
  const auto is_measured = [](const Repro& one) {
    return one.slack && one.slack->passes > Duration::zero();
  };
  return is_measured(known) && !is_measured(repro) && known.commit == repro.commit &&
         known.passes_under_plan == repro.passes_under_plan;
}

Error cannot_read(const std::string& path, int error) {
  return usage_error(fmt::format("cannot read the file: {}", std::strerror(error)), printable(path),
                     "name a file that unflake has written");
}

// No more of it than a file of ours may have, and a byte by which it shows.
Result<std::string> bounded_text(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return cannot_read(path, errno);
  std::string text(largest_repro + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(path, errno);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

Result<Fix> read_fix(const std::string& path) {
  const auto text = bounded_text(path);
  if (!text) return text.error();
  return parse_fix(*text, printable(path));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (at->path().extension() == ending) names.push_back(at->path().stem().string());
  std::ranges::sort(names);
  return names;
}

// The only one whose failure has a signature that begins like this; empty: there is none, or
// several.
std::string with_signature(const Project& project, const std::string& word) {
  constexpr size_t digits_in_name = 8;
  if (word.size() < digits_in_name ||
      !is_signature(word + std::string(16 - std::min<size_t>(16, word.size()), '0')))
    return "";
  std::string only;
  for (const std::string& name : names_in(project.path("repro"))) {
    const std::string path = project.path("repro/" + name + ending);
    if (name.find("-" + word.substr(0, digits_in_name)) == std::string::npos) continue;
    const auto repro = load_repro(path);
    if (!repro || !repro->signature.starts_with(word)) continue;
    if (!only.empty()) return "";
    only = path;
  }
  return only;
}

// The only one of this test; empty: there is none, or several.
std::string of_test(const Project& project, const std::string& word) {
  const std::string beginning = safe_name(word) + "-";
  std::string only;
  for (const std::string& name : names_in(project.path("repro"))) {
    if (!name.starts_with(beginning) ||
        name.find_first_not_of("0123456789abcdef-", beginning.size()) != std::string::npos)
      continue;
    if (!only.empty()) return "";
    only = project.path("repro/" + name + ending);
  }
  return only;
}

Error no_such_repro(const Project& project, const std::string& word) {
  const std::vector<std::string> names = names_in(project.path("repro"));
  std::vector<std::string> similar = nearest(word.substr(0, 500), names, 3);
  if (similar.empty())
    similar.assign(names.begin(),
                   names.begin() + static_cast<ptrdiff_t>(std::min<size_t>(3, names.size())));
  return usage_error(fmt::format("there is no repro '{}'", printable(shorten(word, 200))),
                     project.path("repro"),
                     similar.empty() ? "`unflake reproduce` writes one"
                                     : "did you mean " + printable(join(similar, ", or ")) + "?");
}

}  // namespace

Result<SavedRepro> save_repro(const Project& project, const Repro& repro) {
  make_folder(project);
  const std::string path = path_for(project.path("repro"), repro, [&](const std::string& other) {
    const auto known = load_repro(other);
    return known && are_of_one_failure(*known, repro);
  });
  if (const auto known = load_repro(path); known && says_more(*known, repro))
    return SavedRepro{path, true};
  if (const auto ready = prepare_output_file(path); !ready) return ready.error();
  if (const auto written = replace_file(path, repro_json(repro)); !written) return written.error();
  return SavedRepro{path};
}

Result<void> check_repro_folder(const Project& project) {
  fs::path folder = project.path("repro");
  while (!exists(folder) && folder.has_relative_path()) folder = folder.parent_path();
  std::error_code ignored;
  const bool is_folder = fs::is_directory(folder, ignored);
  if (is_folder && ::access(folder.c_str(), W_OK) == 0) return {};
  return usage_error(
      fmt::format("a repro could not be written to {}: {}", printable(project.path("repro")),
                  std::strerror(is_folder ? errno : ENOTDIR)),
      printable(folder.string()),
      "make the folder writable, or write the repro elsewhere with --out FILE");
}

Result<std::string> find_repro(const Project& project, const std::string& word) {
  if (exists(word)) return word;
  if (word.find('/') == std::string::npos)
    for (const std::string& name : {word, word + ending})
      if (const std::string path = project.path("repro/" + name); !word.empty() && exists(path))
        return path;
  for (const auto find : {with_signature, of_test})
    if (const std::string path = find(project, word); !path.empty()) return path;
  return no_such_repro(project, word);
}

Result<Repro> load_repro(const std::string& path) {
  const auto text = bounded_text(path);
  if (!text) return text.error();
  return parse_repro(*text, printable(path));
}

Result<std::string> save_fix(const Project& project, const Fix& fix) {
  make_folder(project);
  const std::string path =
      path_for(project.path("fixes"), fix.repro, [&](const std::string& other) {
        const auto known = read_fix(other);
        return known && are_of_one_failure(known->repro, fix.repro);
      });
  if (const auto ready = prepare_output_file(path); !ready) return ready.error();
  if (const auto written = replace_file(path, fix_json(fix)); !written) return written.error();
  return path;
}

Result<Fix> load_fix(const Project& project, const std::string& word) {
  if (word.find('/') == std::string::npos && !exists(word))
    for (const std::string& name : {word, word + ending})
      if (const std::string path = project.path("fixes/" + name); !word.empty() && exists(path))
        return read_fix(path);
  return read_fix(word);
}

Result<FoundRepro> find_named_repro(const std::string& word) {
  auto project = find_project();
  if (!project) return project.error();
  auto path = find_repro(*project, word);
  if (!path) return path.error();
  auto repro = load_repro(*path);
  if (!repro) return repro.error();
  return FoundRepro{std::move(*project), std::move(*path), std::move(*repro)};
}

std::vector<Repro> load_all_repros(const Project& project) {
  std::vector<Repro> repros;
  const std::string folder = project.path("repro");
  for (const std::string& name : names_in(folder))
    if (auto repro = load_repro(folder + "/" + name + ending)) repros.push_back(std::move(*repro));
  return repros;
}

std::map<TestId, std::string> categories_of_repros(const Project& project) {
  std::map<TestId, std::string> categories;
  for (const Repro& repro : load_all_repros(project)) {
    const RootCauseKind kind = explain(repro, nullptr, nullptr).causes.front().kind;
    std::string& category = categories[repro.test];
    if (kind != RootCauseKind::unknown) category = to_string(kind);
  }
  return categories;
}

namespace {

using namespace std::chrono_literals;

constexpr Duration probe_time = 60ms;  // under each of the conditions

// A hunt counts hits; a repro counts failures.
Count failures_of(const Found& found, const Count& hits) {
  return found.passes_under_plan ? Count{hits.runs - hits.hits, hits.runs} : hits;
}

}  // namespace

Repro repro_of(const Found& found, OneTest& one, uint64_t seed) {
  Repro repro;
  repro.test = one.test().id;
  const TargetRecord target = record_of(one.target(), one.test(), one.project());
  repro.framework = target.framework;
  repro.target_path = target.path;
  repro.target_argv = target.argv;
  repro.outcome = found.outcome.kind;
  if (!found.outcome.failures.empty()) repro.failure = found.outcome.failures.front();
  repro.signature = found.outcome.signature;
  repro.plan = found.trial.plan;
  repro.digest = found.digest;
  repro.not_repeatable = found.not_repeatable;
  repro.conditions = found.trial.conditions;
  repro.passes_under_plan = found.passes_under_plan;
  repro.with_plan = failures_of(found, found.with_plan);
  repro.without_plan = failures_of(found, found.without_plan);
  repro.under_control = found.under_control;
  repro.candidates = found.candidates;
  repro.slack = found.slack;
  repro.doses = found.doses;
  for (Dose& dose : repro.doses) dose.failures = failures_of(found, dose.failures);
  repro.plausibility = found.plausibility;
  repro.machine_lateness = found.machine_lateness;
  repro.was_seen = found.was_seen;
  repro.timeout = found.timeout;
  repro.strategy = found.strategy;
  repro.reason = found.trial.why;
  repro.seed = seed;
  repro.search_runs = found.search_runs;
  const Surroundings surroundings = survey(one.project(), one.launcher());
  repro.commit = surroundings.commit;
  repro.machine = surroundings.machine;
  repro.unflake_version = surroundings.unflake_version;
  repro.found = std::chrono::system_clock::now();
  return repro;
}

void describe(Repro& repro, const Profile& profile, const OneTest& one) {
  if (profile.model() == nullptr) return;
  Trace seen = *profile.model()->trace;
  for (const ExperimentResult& run : profile.runs)
    if (run.trace) add_names(seen, *run.trace);
  describe_sites(repro, seen, program_code(seen, one.project_code()));
}

std::optional<MachineLateness> machine_lateness() {
  const auto plain = probe_lateness({}, probe_time);
  if (!plain) return std::nullopt;
  MachineLateness seen{*plain, *plain};
  for (const Conditions& conditions : scarce_conditions())
    if (const auto late = probe_lateness(conditions, probe_time))
      seen.scarce = std::max(seen.scarce, *late);
  return seen;
}

}  // namespace unflake
