#include "cli/balance_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "app/project.h"
#include "patch/literals/time_literal.h"
#include "util/files.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

std::string file_of(const TimeValue& value, const Project& project) {
  const std::string found = find_source(value.file, project.root);
  return found.empty() ? find_source(value.site.file, project.root) : found;
}

std::string line_of(const std::string& file, int number) {
  std::ifstream in(file);
  std::string line;
  for (int i = 0; i < number && std::getline(in, line); ++i) {
  }
  return in ? std::string(trim(line)) : "";
}

// Why a new value is not written into the source; empty: it is. A wait for something that
// must not happen is there for its length.
std::string why_it_stays(const BalancedValue& value, const SourceOptions& options) {
  if (value.is_unneeded && value.value.is_never_when_zero())
    return "0 means never here: write a short time";
  const bool is_for_its_length = value.may_weaken() || value.is_unneeded;
  if (options.were_asked_for || !is_for_its_length || !value.value.could_end_early) return "";
  return fmt::format(
      "{}, and a shorter one may test less; --site {} edits it",
      value.may_weaken() ? "nothing ended this wait early" : "not every wait here ended early",
      to_string(value.value.site));
}

void find_edit(BalancedValue& balanced, ValueInSource& source, const std::string& folder) {
  const TimeValue& value = balanced.value;
  if (!value.is_constant()) {
    source.why_not = value.callers.empty() ? "the value is computed at run time"
                                           : "the callers choose the value";
    return;
  }
  const WantedLiteral wanted{source.file, source.line, value.site.api, value.most};
  auto edit = edit_time_literal(wanted, balanced.proposed, folder);
  // A parameter of whole milliseconds does not take finer ones.
  if (!edit) {
    const auto whole = std::chrono::ceil<std::chrono::milliseconds>(balanced.proposed);
    if (auto coarser = edit_time_literal(wanted, whole, folder)) edit = std::move(coarser);
  }
  if (!edit) {
    source.why_not = edit.error().what;
    return;
  }
  source.file = edit->file;
  source.line = edit->line;
  source.text = line_of(edit->file, edit->line);
  source.old_text = edit->old_text;
  source.new_text = edit->new_text;
  source.offset = edit->offset;
  source.caution = edit->caution;
}

using FileEdits = std::map<std::string, std::vector<SourceEdit>>;

// A test that is run from elsewhere has its sources in another project.
std::string folder_of(const FileEdits& files, const Project& project) {
  const bool are_elsewhere = std::ranges::all_of(
      files, [&](const auto& entry) { return path_below(entry.first, project.root).empty(); });
  return are_elsewhere && !files.empty()
             ? project_root_of(fs::path(files.begin()->first).parent_path().string())
             : project.root;
}

}  // namespace

void add_sources(BalanceReport& report, const Project& project, const SourceOptions& options) {
  for (BalancedValue& value : report.values) {
    ValueInSource source;
    if (value.is_changed()) source.why_not = why_it_stays(value, options);
    const bool is_edited = value.is_changed() && source.why_not.empty();
    source.file = file_of(value.value, project);
    source.line = value.value.site.line;
    if (source.line <= 0) continue;
    if (source.file.empty()) {
      if (!is_edited) continue;
      source.file = value.value.file.empty() ? value.value.site.file : value.value.file;
      source.why_not = "this source was not found; run this in the folder of the project";
      value.source = std::move(source);
      continue;
    }
    source.text = line_of(source.file, source.line);
    if (is_edited) find_edit(value, source, options.compile_commands_folder);
    source.file = path_from_here(source.file);
    value.source = std::move(source);
  }
}

void leave_out_shared_edits(const std::vector<BalanceReport*>& reports) {
  std::map<std::string, const BalanceReport*> kept;  // by site, a test that was not given less time
  for (const BalanceReport* report : reports)
    for (const BalancedValue& value : report->values)
      if (!value.is_changed() || value.is_left_for_its_length())
        kept.emplace(to_string(value.value.site), report);
  for (BalanceReport* report : reports)
    for (BalancedValue& value : report->values) {
      const auto other = kept.find(to_string(value.value.site));
      if (!value.source || !value.source->can_be_edited() || other == kept.end() ||
          value.change != BalancedValue::Change::shorten)
        continue;
      value.source->why_not =
          to_string(other->second->test) + " passes it too, and was not shown to do with less";
    }
}

// Tests may share a value: then it becomes the longest that one of them needs.
Patch patch_of(const std::vector<const BalanceReport*>& reports, const Project& project) {
  std::map<std::pair<std::string, size_t>, const BalancedValue*> edits;
  for (const BalanceReport* report : reports)
    for (const BalancedValue& value : report->values) {
      if (!value.source || !value.source->can_be_edited()) continue;
      const BalancedValue*& kept = edits[{value.source->file, value.source->offset}];
      if (!kept || kept->proposed < value.proposed) kept = &value;
    }
  FileEdits files;
  for (const auto& [place, value] : edits) {
    const std::string file = fs::absolute(place.first).string();
    files[file].push_back({file, value->source->line, place.second, value->source->old_text,
                           value->source->new_text, value->source->caution});
  }
  Patch patch;
  patch.folder = folder_of(files, project);
  for (const auto& [file, changes] : files) {
    const auto diff = unified_diff(changes, patch.folder);
    if (diff)
      patch.text += *diff;
    else
      patch.left_out.push_back(diff.error());
  }
  return patch;
}

namespace {

constexpr double most_scale = 100;

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

}  // namespace

Result<double> parse_share(const std::string& text, const std::string& option, double most) {
  const bool is_percent = text.ends_with('%');
  const auto number = number_in(trim(is_percent ? text.substr(0, text.size() - 1) : text));
  const double share = number ? (is_percent ? *number / 100 : *number) : 0;
  if (share > most && share < 1)
    return usage_error("this is too much", option + " " + printable(text),
                       fmt::format("give at most {:g}%", most * 100));
  if (share > 0 && share < 1) return share;
  return usage_error("this is not a share between 0 and 100 %", option + " " + printable(text),
                     "write a percentage, as in 0.1%");
}

Result<std::vector<LoadLevel>> parse_loads(const std::string& text) {
  constexpr std::pair<std::string_view, LoadLevel> words[] = {
      {"idle", LoadLevel::idle}, {"busy", LoadLevel::busy}, {"one-core", LoadLevel::one_core}};
  std::vector<LoadLevel> loads{LoadLevel::idle};
  for (const std::string& word : split(text, ',')) {
    const auto known =
        std::ranges::find(words, trim(word), &std::pair<std::string_view, LoadLevel>::first);
    if (known == std::end(words))
      return usage_error("there is no load '" + printable(word) + "'", "--load",
                         "take some of idle, busy, one-core");
    if (std::ranges::find(loads, known->second) == loads.end()) loads.push_back(known->second);
  }
  return loads;
}

Result<double> parse_scale(const std::string& text) {
  const auto factor = number_in(text.ends_with('x') ? text.substr(0, text.size() - 1) : text);
  const auto there = parse_duration(text);
  if (!factor && (!there || *there <= Duration::zero()))
    return usage_error("this is neither a factor nor a time", "--scale " + printable(text),
                       "write 1.5, or the time that `unflake balance --benchmark` shows there");
  const double scale = factor ? *factor
                              : static_cast<double>(there->count()) /
                                    static_cast<double>(measure_machine_speed().median.count());
  if (scale >= 1 / most_scale && scale <= most_scale) return scale;
  return usage_error("no machine is so much slower or faster", "--scale " + printable(text),
                     fmt::format("give a factor from {:g} to {:g}", 1 / most_scale, most_scale));
}

namespace {

constexpr int rounds = 15;
constexpr int steps = 10'000'000;
constexpr int hand_overs = 1000;

void compute() {
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < steps; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
  }
  volatile uint64_t result = state;  // so that it is computed at all
  (void)result;
}

void hand_over() {
  std::mutex mutex;
  std::condition_variable changed;
  int turns = 0;
  const auto play = [&](int parity) {
    std::unique_lock lock(mutex);
    for (int i = 0; i < hand_overs; ++i) {
      changed.wait(lock, [&] { return turns % 2 == parity; });
      ++turns;
      changed.notify_one();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
}

}  // namespace

MachineSpeed measure_machine_speed() {
  using Clock = std::chrono::steady_clock;
  std::vector<Duration> times;
  for (int i = 0; i < rounds; ++i) {
    const auto began = Clock::now();
    compute();
    hand_over();
    times.push_back(std::chrono::duration_cast<Duration>(Clock::now() - began));
  }
  std::ranges::sort(times);
  return {times[rounds / 2], times.front(), times.back(), rounds};
}

}  // namespace unflake
