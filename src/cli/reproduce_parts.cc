#include "cli/reproduce_parts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <set>

#include "output/ci_log/ci_log.h"
#include "output/read_outcome.h"
#include "report/layout.h"
#include "report/search_text.h"
#include "report/study_pages.h"
#include "search/reproduce/strategy.h"
#include "stats/rates.h"
#include "store/store.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

// From a pipe, this many times as much as is kept.
constexpr uint64_t most_read_of_a_pipe = 64;

Error cannot_read(const std::string& path, int error) {
  return usage_error(fmt::format("the log cannot be read: {}", strerror(error)), path,
                     error == EISDIR ? "name a file in it" : "check the path");
}

// Keeps the end of what is added, and lets it grow to twice as much before it is cut.
class Tail {
 public:
  explicit Tail(uint64_t most) : most_(most) {}

  void add(std::string_view bytes) {
    file_.text += bytes;
    if (file_.text.size() > 2 * most_) cut();
  }

  LogFile finish() {
    if (file_.text.size() > most_) cut();
    return std::move(file_);
  }

 private:
  void cut() { leave_out(file_.text.size() - most_); }

  void leave_out(uint64_t bytes) {
    file_.text.erase(0, bytes);
    file_.bytes_left_out += bytes;
  }

  uint64_t most_;
  LogFile file_;
};

Result<LogFile> read_end(int fd, const std::string& path, uint64_t most) {
  Tail tail(most);
  std::string buffer(1 << 20, '\0');
  for (uint64_t total = 0;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(path, errno);
    if (got == 0) return tail.finish();
    tail.add(std::string_view(buffer).substr(0, static_cast<size_t>(got)));
    total += static_cast<uint64_t>(got);
    if (total > most_read_of_a_pipe * most)
      return usage_error("the log does not end", path, "give a file, or a program that ends");
  }
}

// Goes to where the last `most` bytes of a file begin, and returns how much that leaves out.
uint64_t skip_start(int fd, uint64_t most) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size <= most) return 0;
  const off_t start = static_cast<off_t>(size - most);
  return lseek(fd, start, SEEK_SET) == start ? size - most : 0;
}

void start_at_a_line(LogFile& file) {
  const size_t end = file.text.find('\n');
  if (end == std::string::npos) return;
  file.text.erase(0, end + 1);
  file.bytes_left_out += end + 1;
}

}  // namespace

Result<LogFile> load_log(const std::string& path, uint64_t most_bytes) {
  const bool is_stdin = path == "-";
  const UniqueFd opened(is_stdin ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const int fd = is_stdin ? STDIN_FILENO : opened.get();
  if (fd < 0) return cannot_read(path, errno);
  const uint64_t skipped = is_stdin ? 0 : skip_start(fd, most_bytes);
  auto file = read_end(fd, path, most_bytes);
  if (!file) return file;
  file->bytes_left_out += skipped;
  if (file->bytes_left_out > 0) start_at_a_line(*file);
  return file;
}

namespace {

constexpr FailureKind kinds[] = {
    FailureKind::assertion,        FailureKind::exception,
    FailureKind::signal,           FailureKind::exit_status,
    FailureKind::output_pattern,   FailureKind::unexpected_pass,
    FailureKind::timeout,          FailureKind::address_sanitizer,
    FailureKind::thread_sanitizer, FailureKind::undefined_behaviour_sanitizer,
    FailureKind::memory_sanitizer, FailureKind::leak_sanitizer,
    FailureKind::valgrind};

std::optional<Failure> line_in(const std::string& word) {
  const size_t colon = word.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.file = word.substr(0, colon);
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + colon + 1, end, failure.line);
  if (error != std::errc() || stop != end || failure.line < 1) return std::nullopt;
  return failure;
}

std::vector<SignatureSummary> failures_in(const StoreAddress& history, const TestId& test) {
  auto store = open_store_to_read(history);
  if (!store) return {};
  auto summary = (*store)->summarise_test(test);
  if (!summary || !*summary) return {};
  return std::move((*summary)->signatures);
}

std::optional<Failure> in_history(const std::string& signature, const TestId& test,
                                  const StoreAddress& history) {
  const std::vector<SignatureSummary> known = failures_in(history, test);
  const auto found = std::ranges::find(known, signature, &SignatureSummary::signature);
  if (found == known.end()) return std::nullopt;
  return found->failure;
}

}  // namespace

std::set<std::string> known_signatures(const TestId& test, const StoreAddress& history) {
  std::set<std::string> known;
  for (const SignatureSummary& failure : failures_in(history, test))
    known.insert(failure.signature);
  return known;
}

Result<Wanted> wanted_by_word(const std::string& word, const TestId& test,
                              const StoreAddress& history) {
  if (is_signature(word)) return Wanted{word, in_history(word, test, history)};
  if (auto failure = line_in(word)) return Wanted{"", failure};
  for (const FailureKind kind : kinds) {
    Failure failure;
    failure.kind = kind;
    if (to_string(kind) == word) return Wanted{"", failure};
  }
  std::vector<std::string> names;
  for (const FailureKind kind : kinds) names.emplace_back(to_string(kind));
  return usage_error(
      "this does not name a failure: " + shell_quote(word), "--failure",
      "give the 16 digits that `unflake history` shows, FILE:LINE of a check, or one "
      "of " +
          join(names, ", "));
}

Result<std::vector<Wanted>> wanted_by_log(const Test& test, const CiLog& log) {
  const auto logged = logged_failures_of(test, log);
  if (!logged) return logged.error();
  std::vector<Wanted> wanted;
  for (const LoggedFailure& failure : *logged) {
    Wanted one;
    if (!failure.failures.empty())
      one = {signature_of(failure.failures.front()), failure.failures.front()};
    const auto same = [&](const Wanted& other) { return other.signature == one.signature; };
    if (std::ranges::none_of(wanted, same)) wanted.push_back(std::move(one));
  }
  return wanted;
}

Result<std::vector<Wanted>> wanted_by_output(const Test& test, const std::string& output,
                                             const Error& otherwise) {
  ProcessResult process;
  process.code = 1;
  process.output.head = output;
  process.output.total = output.size();
  const Outcome outcome = read_outcome(test, process);
  if (outcome.failures.empty() || outcome.failures.front().kind == FailureKind::exit_status)
    return otherwise;
  return std::vector{Wanted{outcome.signature, outcome.failures.front()}};
}

namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

constexpr size_t most_listed = 5;
constexpr int runs_of_a_search = 20;  // without which it learns almost nothing
constexpr Duration least_budget = 30s;
constexpr int least_late_runs = 10;  // that can show that lateness makes no difference

// Without delays, whatever the failure.
Count base_of(const Hunt& hunt) {
  const auto has_failed = [](const Outcome& outcome) { return outcome.failed(); };
  Count base = hunt.base_rate().count(has_failed);
  for (const ExperimentResult& run : hunt.profile().runs) base.add(has_failed(run.outcome));
  return base;
}

Lines always_fails_lines(const Hunt& hunt) {
  const Count base = base_of(hunt);
  const Outcome& outcome = hunt.profile().runs.front().outcome;
  Lines lines;
  if (outcome.kind == OutcomeKind::timeout)
    lines.push_back(fmt::format("hangs: none of {} without delays came to an end; one was given {}",
                                counted(base.runs, "run"), format_duration(outcome.duration)));
  else
    lines.push_back(fmt::format(
        "broken: not flaky: all {} without delays failed (at least {:.0f} % of its runs do)",
        counted(base.runs, "run"), base.interval().low * 100));
  lines.push_back("failure: " + failure_headline(outcome));
  lines.push_back(outcome.kind == OutcomeKind::timeout
                      ? "next: `unflake run` shows where every thread stands; if it is only slow, "
                        "give it a longer --timeout and --budget"
                      : "next: fix that first; `unflake trace` shows where it happens");
  return lines;
}

Lines skipped_lines(const Hunt& hunt) {
  const Outcome& outcome = hunt.profile().runs.front().outcome;
  return {"skipped: the test says that it cannot run here" +
              (outcome.reason.empty() ? "" : ": " + one_line(outcome.reason)),
          "next: make it run (`unflake run` shows its output), then hunt again"};
}

bool ran_out(const Hunt& hunt) {
  return hunt.out_of_budget() || hunt.coverage().unaffordable > 0 || hunt.profile().runs.empty();
}

// It fails without delays, and with them neither more nor less often.
bool is_indifferent_to_lateness(const LatenessEffect& effect) {
  return effect.plain.hits > 0 && effect.late.runs >= least_late_runs && !effect.shows();
}

std::string_view heading(const Hunt& hunt) {
  if (hunt.runner().stopped()) return "stopped: nothing was confirmed until then";
  if (!hunt.findings().all().empty())
    return "no flaw: the test holds unless a machine stands still";
  if (is_proven_sound(hunt)) return "sound: the test passes in every schedule of its threads";
  if (is_indifferent_to_lateness(lateness_effect(hunt)))
    return "not found: lateness makes no difference to this failure";
  if (ran_out(hunt)) return "not found: within the budget";
  return "not found: by any of the strategies";
}

size_t threads_seen(const Profile& profile) {
  std::set<std::string> names;
  for (const ExperimentResult& run : profile.runs)
    if (run.trace)
      for (const TracedThread& thread : run.trace->threads)
        names.insert(fmt::format("{} {}", thread.process, thread.name.text));
  return names.size();
}

void add_reached(const Hunt& hunt, Lines& lines) {
  const Profile& profile = hunt.profile();
  const Count base = base_of(hunt);
  if (base.runs == 0) {
    lines.push_back(
        hunt.profile().cut_short > Duration::zero()
            ? fmt::format("reached: nothing: the budget is too short for the test: one run was "
                          "given {} and did not come to an end",
                          format_duration(hunt.profile().cut_short))
            : "reached: nothing: not one run came to an end within the budget");
    return;
  }
  lines.push_back(fmt::format("reached: {} (a site in a thread) in {}, {} on average",
                              counted(static_cast<long long>(profile.places.size()), "place"),
                              counted(static_cast<long long>(threads_seen(profile)), "thread"),
                              format_duration(profile.average)));
  if (base.hits == 0)
    lines.push_back(fmt::format("by itself: 0 of {} without delays failed: fewer than {:.0f} % do",
                                counted(base.runs, "run"),
                                upper_bound_zero_failures(base.runs) * 100));
  else
    lines.push_back(
        fmt::format("by itself: {} of {} runs without delays failed", base.hits, base.runs));
}

void add_effect(const LatenessEffect& effect, Lines& lines) {
  if (effect.late.hits + effect.plain.hits == 0 || effect.late.runs == 0) return;
  lines.push_back(fmt::format(
      "lateness: {}: {} of {} with delays failed like this, {} of {} without (p = {}, Fisher's "
      "exact test)",
      effect.shows() ? "makes a difference" : "makes no difference that shows", effect.late.hits,
      counted(effect.late.runs, "run"), effect.plain.hits, effect.plain.runs, p_text(effect.p)));
}

std::string tried_text(const Coverage& coverage) {
  const std::string runs = counted(coverage.search_runs, "experiment");
  if (coverage.sites_tried.empty())
    return fmt::format("tried: {}, none of them with a delay", runs);
  return fmt::format("tried: {} at {} (before or after a call); delays happened in {} and added {}",
                     runs, counted(static_cast<long long>(coverage.sites_tried.size()), "point"),
                     coverage.fired_runs, format_duration(coverage.delay_added));
}

std::string unfinished_text(const Found& found) {
  std::vector<std::string> delays;
  for (const Intervention& delay : found.trial.plan.interventions)
    delays.push_back("--delay " + shell_quote(to_string(delay, found.trial.plan.interventions)));
  return one_line(fmt::format(
      "not confirmed: {} came again in {} of {} with {}: no time was left to tell it from chance",
      failure_headline(found.outcome), found.with_plan.hits, counted(found.with_plan.runs, "run"),
      delays.empty() ? found.trial.why : join(delays, " ")));
}

std::string schedules_text(const ExploreReport& explored) {
  if (explored.answer == ExploreReport::Answer::not_controlled)
    return "schedules: none: its threads cannot be controlled: " + one_line(explored.why);
  std::string text = fmt::format(
      "schedules: {} under control, {}; {} of {} of places that can come in either order were seen "
      "in "
      "both",
      counted(static_cast<long long>(explored.schedules), "run"),
      counted(static_cast<long long>(explored.orders), "different order"),
      explored.pairs_in_both_orders, counted(static_cast<long long>(explored.pairs), "pair"));
  if (explored.answer == ExploreReport::Answer::passes_in_all) text += "; these are all there are";
  if (explored.answer == ExploreReport::Answer::nothing_new)
    text += explored.may_have_new_orders ? "; no pair came in a new order in the last 300"
                                         : "; hardly any are left";
  return text;
}

void add_tried(const Hunt& hunt, Lines& lines) {
  const Coverage& coverage = hunt.coverage();
  size_t listed = 0;
  if (coverage.schedules) lines.push_back(schedules_text(*coverage.schedules));
  if (is_proven_sound(hunt)) return;
  lines.push_back(tried_text(coverage));
  if (coverage.never_fired > 0)
    lines.push_back(fmt::format("no delay: happened in {}: they prove nothing",
                                counted(coverage.never_fired, "experiment")));
  if (coverage.unaffordable > 0)
    lines.push_back(fmt::format(
        "not tried: {}, because confirming a failure of the longest would "
        "have taken {}, more than was left",
        counted(coverage.unaffordable, "plan"), format_duration(coverage.longest_unaffordable)));
  if (!coverage.not_needed.empty())
    lines.push_back(fmt::format(
        "not tried: {}, because threads that were late under control, alone and in pairs, did no "
        "harm; `--strategy {}` tries them",
        join(coverage.not_needed, ", "), join(coverage.not_needed, ",")));
  if (!coverage.left_out.empty())
    lines.push_back(fmt::format("left out: {}: no time was left for an experiment",
                                join(coverage.left_out, ", ")));
  for (const Found& found : coverage.unfinished)
    if (listed++ < most_listed) lines.push_back(unfinished_text(found));
  if (coverage.unconfirmed > 0)
    lines.push_back(
        fmt::format("not held: {} did not come back often enough to be told from chance",
                    counted(coverage.unconfirmed, "failure")));
  listed = 0;
  for (const auto& [failure, runs] : coverage.other_failures)
    if (listed++ < most_listed)
      lines.push_back(
          fmt::format("other failure: {} in {}", one_line(failure), counted(runs, "run")));
  for (const std::string& reason : coverage.refused)
    if (listed++ < 2 * most_listed) lines.push_back("refused: " + one_line(reason));
}

void add_not_covered(const Hunt& hunt, Lines& lines) {
  if (is_proven_sound(hunt)) return;
  lines.push_back(fmt::format("not covered: lateness of more than {}; more than two late threads",
                              format_duration(hunt.options().delays.most)));
  const auto& explored = hunt.coverage().schedules;
  if (!explored || !explored->looked_for_accesses)
    lines.push_back(
        "not covered: races on atomics and plain memory, except where the strategy `functions` "
        "looked");
  std::set<std::string> gaps;
  for (const ExperimentResult& run : hunt.profile().runs) {
    if (!run.trace) continue;
    for (const TracedProcess& process : run.trace->processes)
      for (const std::string& degraded : process.degraded)
        gaps.insert(process.name + ": " + degraded);
    for (const Drops& drops : run.trace->drops)
      gaps.insert(fmt::format("{} {} were lost", drops.count, drops.what));
    for (const std::string& problem : run.trace->problems) gaps.insert(problem);
  }
  size_t listed = 0;
  for (const std::string& gap : gaps)
    if (listed++ < most_listed) lines.push_back("not covered: " + one_line(gap));
}

// Enough for what had to be left out, or for this many runs of a test that takes longer than it was
// given, and in words that --budget takes.
std::string longer_budget(const Hunt& hunt) {
  const Duration needed = std::max({2 * hunt.options().budget,
                                    hunt.options().budget + hunt.coverage().longest_unaffordable,
                                    runs_of_a_search * hunt.profile().cut_short, least_budget});
  const auto minutes = std::chrono::ceil<std::chrono::minutes>(needed).count();
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(needed).count();
  return seconds < 60 ? fmt::format("--budget {}s", seconds) : fmt::format("--budget {}m", minutes);
}

void add_next(const Hunt& hunt, Lines& lines) {
  if (hunt.runner().stopped() || is_proven_sound(hunt)) return;
  if (hunt.profile().runs.empty()) {
    lines.push_back("next: give it more time, at least " + longer_budget(hunt));
    lines.push_back("or: if it hangs, --timeout says after how long a run does");
    return;
  }
  const bool has_places = !hunt.profile().places.empty();
  if (!has_places && base_of(hunt).hits == 0) {
    lines.push_back(
        "next: the project makes no call at which a thread could be made late; if that is wrong, "
        "see [code] in config.toml, or --system");
    return;
  }
  if (!has_places || is_indifferent_to_lateness(lateness_effect(hunt))) {
    lines.push_back(
        "next: look for what else differs between two runs: random numbers, addresses, the time of "
        "day, files and ports that others use; `unflake run -n 100` shows its failures");
    return;
  }
  if (!hunt.findings().all().empty()) {
    lines.push_back("next: nothing has to be repaired; --failure hunts for a given failure");
    return;
  }
  if (ran_out(hunt) && hunt.coverage().search_runs == 0)
    lines.push_back(fmt::format("next: the budget is too short for a test that takes {}: {}",
                                format_duration(hunt.profile().average), longer_budget(hunt)));
  else if (ran_out(hunt))
    lines.push_back("next: the budget ran out before the search did: " + longer_budget(hunt) +
                    " goes on");
  else
    lines.push_back(
        "next: --max-delay 60s for longer waits, --strategy one-by-one for every call by itself");
  if (base_of(hunt).hits == 0)
    lines.push_back("or: `unflake run -n 1000` to see whether it fails by itself, and how");
}

}  // namespace

std::vector<std::string> not_reproduced_lines(const Hunt& hunt) {
  if (hunt.profile().always_fails) return always_fails_lines(hunt);
  if (hunt.profile().is_always_skipped()) return skipped_lines(hunt);
  Lines lines{std::string(heading(hunt))};
  add_reached(hunt, lines);
  if (hunt.profile().runs.empty()) {
    add_next(hunt, lines);
    return lines;
  }
  if (!!hunt.findings().all().empty()) add_effect(lateness_effect(hunt), lines);
  add_tried(hunt, lines);
  add_not_covered(hunt, lines);
  add_next(hunt, lines);
  return lines;
}

}  // namespace unflake
