#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "app/agent_command.h"
#include "app/listeners.h"
#include "app/project.h"
#include "app/repro_file.h"
#include "cli/commands.h"
#include "cli/reproduce_parts.h"
#include "output/ci_log/ci_log.h"
#include "report/consumers.h"
#include "report/search_text.h"
#include "repro/repro_json.h"
#include "search/reproduce/strategy.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr const char* reproduce_help =
    R"(Makes a failure happen on demand: looks for the order of threads, or for the delays at sites
in threads, under which the test fails, confirms them on fresh runs, and measures how late is too late.

  unflake reproduce ./server_test Server.Accepts                      any failure that lateness can cause
  unflake reproduce ./server_test --log ci.log                        the one that a CI log shows
  unflake reproduce ./server_test Server.Accepts --failure 8c7b35ab158e3e23     one from history
  unflake reproduce ./server_test Server.Accepts --failure server_test.cc:42    one at a line

What is confirmed is written to .unflake/repro/NAME.json, for `unflake replay` and `unflake explain`.
How late the test must be to fail tells a flaw (a busy machine is that late), a risk (a badly overloaded
one is) and a margin (only one that stands still is, and nobody has seen the failure) apart.

Exit code 0: reproduced, a flaw, a risk or not measured; 1: not reproduced (it says what was covered), or the test
always fails or is skipped; 2: bad usage; 4: unflake itself failed; 5: only a margin was found; 128 + N:
stopped by signal N, what was confirmed until then is written.)";

constexpr size_t most_named = 5;
constexpr Duration time_to_write = 300ms;

struct ReproduceCommand {
  OneTestOptions one;
  std::string log, failure, out;
  std::vector<std::string> strategies;
  std::string order = "turns";
  std::optional<Duration> budget, most_delay, initial_delay;
  uint64_t seed = 1;
  int profile_runs = 5;
  size_t most_candidates = 0;
  bool json = false;
};

std::string strategy_list() {
  std::string text;
  for (const Strategy& strategy : strategies())
    text += fmt::format("\n{}: {}", strategy.name, strategy.about);
  return text;
}

Result<std::vector<const Strategy*>> chosen_strategies(const ReproduceCommand& command) {
  std::vector<const Strategy*> chosen;
  for (const std::string& name : command.strategies) {
    const Strategy* strategy = find_strategy(name);
    if (strategy == nullptr)
      return usage_error("there is no strategy " + shell_quote(name), "--strategy",
                         "take one or more of" + strategy_list());
    chosen.push_back(strategy);
  }
  if (chosen.empty())
    for (const Strategy& strategy : strategies())
      if (strategy.by_default) chosen.push_back(&strategy);
  return chosen;
}

class Reproduction {
 public:
  explicit Reproduction(const ReproduceCommand& command)
      : command_(command),
        sink_(STDOUT_FILENO),
        terminal_(sink_, wants_colour(command.one.colour, STDOUT_FILENO),
                  can_be_live(STDOUT_FILENO)),
        lines_(sink_) {
    if (command.json)
      events_.add(lines_);
    else
      events_.add(terminal_);
    events_.add(code_notes_);
  }

  Result<int> operator()(const Words& words) {
    const auto chosen = chosen_strategies(command_);
    if (!chosen) return chosen.error();
    auto options = hunt_options();
    if (!options) return options.error();
    if (auto read = read_log(); !read) return of_log(read.error());
    if (!command_.out.empty())
      if (auto ready = prepare_output_file(command_.out); !ready) return ready.error();
    if (auto found = find_test(words); !found) return found.error();
    if (command_.out.empty())
      if (auto ready = check_repro_folder(one_->project()); !ready) return ready.error();
    const auto wanted = wanted_failures();
    if (!wanted) return of_log(wanted.error());
    history_.open(command_.one.history, *one_, command_line_of("reproduce", words),
                  [this](const Note& note) { events_.emit(note); });
    options->extra_functions = one_->functions();
    options->timeout = one_->timeout();
    options->known_signatures = known_signatures(one_->test().id, one_->history());
    options->measure_lateness = machine_lateness;
    if (auto done = one_->set_up(); !done) return done.error();
    one_->events().add(events_);
    return hunt_all(*wanted, *options, *chosen);
  }

 private:
  Result<void> read_log() {
    if (command_.log.empty()) return {};
    if (!command_.failure.empty())
      return usage_error("--log and --failure cannot be used together", "--failure",
                         "give one of them");
    const auto file = load_log(command_.log);
    if (!file) return file.error();
    if (file->bytes_left_out > 0)
      events_.emit(Note{
          Note::Level::info,
          fmt::format("only the last {} MiB of the log were read", file->text.size() >> 20), ""});
    if (auto log = read_ci_log(file->text))
      log_ = std::move(*log);
    else
      unread_log_ = UnreadLog{file->text, log.error()};
    return {};
  }

  Error of_log(Error error) const {
    if (error.where.empty()) error.where = command_.log;
    return error;
  }

  Result<void> find_test(const Words& words) {
    std::vector<Test> choice;
    OneTestOptions options = command_.one;
    options.slots = 4;  // the hunt knows when it may use more than one
    auto one = OneTest::find(options, words, [&](const Test& test) {
      choice.push_back(test);
      return !log_ || std::ranges::any_of(log_->failures, [&](const LoggedFailure& logged) {
        return is_named(logged, test);
      });
    });
    if (!one && unread_log_ && !choice.empty()) return of_log(unread_log_->why);
    if (!one) return log_ && !choice.empty() ? not_one_in_log(choice) : one.error();
    one_ = std::move(*one);
    return {};
  }

  Error not_one_in_log(const std::vector<Test>& choice) const {
    const auto named = tests_named_in(*log_, choice);
    if (!named) return of_log(named.error());
    std::vector<std::string> names;
    for (const size_t i : *named)
      if (names.size() < most_named) names.push_back(shell_quote(printable(choice[i].id.name)));
    const size_t more = named->size() - names.size();
    return usage_error(fmt::format("the log shows {} failing tests of this target", named->size()),
                       command_.log,
                       "name the one to hunt for: " + join(names, ", ") +
                           (more > 0 ? fmt::format(" and {} more", more) : ""));
  }

  Result<std::vector<Wanted>> wanted_failures() {
    if (log_) return wanted_by_log(one_->test(), *log_);
    if (unread_log_) return wanted_by_output(one_->test(), unread_log_->text, unread_log_->why);
    if (command_.failure.empty()) return std::vector{Wanted{}};
    auto wanted = wanted_by_word(command_.failure, one_->test().id, one_->history());
    if (!wanted) return wanted.error();
    if (!wanted->failure)
      events_.emit(
          Note{Note::Level::warning,
               "the history has no such failure of this test, so nothing but the signature "
               "of a failing run can tell that it is the one",
               "`unflake history TEST` lists those it knows; FILE:LINE works without"});
    return std::vector{std::move(*wanted)};
  }

  Result<HuntOptions> hunt_options() const {
    HuntOptions options;
    auto off = command_.one.groups_off();
    if (!off) return off.error();
    options.groups_off = std::move(*off);
    options.system_calls = command_.one.system_calls;
    options.budget = command_.budget.value_or(options.budget);
    options.delays.most = command_.most_delay.value_or(options.delays.most);
    options.initial_delay = command_.initial_delay;
    options.order = *order_from(command_.order);
    options.most_candidates = command_.most_candidates;
    options.seed = command_.seed;
    options.profile_runs = command_.profile_runs;
    return options;
  }

  // The budget is for all failures together, from the moment on in which the command was given.
  Duration share_of_budget(Duration budget, size_t failures) const {
    const auto spent = std::chrono::duration_cast<Duration>(Clock::now() - began_) + time_to_write;
    return std::max<Duration>((budget - std::min(spent, budget / 2)) / failures, 1ms);
  }

  Result<int> hunt_all(const std::vector<Wanted>& wanted, HuntOptions options,
                       const std::vector<const Strategy*>& chosen) {
    int code = static_cast<int>(ExitCode::success);
    const Duration budget = options.budget;
    for (size_t i = 0; i < wanted.size(); ++i) {
      options.wanted = wanted[i];
      options.budget = share_of_budget(budget, wanted.size() - i);
      told_budget_ = budget / wanted.size();
      const auto result = hunt(options, chosen);
      if (!result) return result.error();
      code = std::max(code, *result);
      if (*result == static_cast<int>(ExitCode::success)) out_.clear();
      if (one_->stop_signal() != 0) break;
    }
    return code;
  }

  Result<int> hunt(const HuntOptions& options, const std::vector<const Strategy*>& chosen) {
    Hunt hunt(one_->executor(), one_->shared_test(), options, one_->events());
    events_.emit(started(options));
    const bool is_prepared = hunt.prepare();
    for (const Note& note : code_notes_.take()) events_.emit(note);
    if (is_prepared) search(hunt, chosen, [&] { (void)keep_all(hunt, false); });
    const auto kept = keep_all(hunt, true);
    if (!hunt.findings().has_flaw() && !hunt.runner().error()) tell_nothing_found(hunt);
    events_.emit(ended(hunt));
    if (hunt.runner().error()) return *hunt.runner().error();
    if (!kept) return kept.error();
    if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
    if (hunt.findings().has_flaw()) return static_cast<int>(ExitCode::success);
    return static_cast<int>(hunt.found().empty() ? ExitCode::test_failed : ExitCode::only_margin);
  }

  static SearchEnded ended(Hunt& hunt) {
    const auto margins = std::ranges::count_if(hunt.found(), &Found::is_margin);
    SearchEnded event{hunt.runner().elapsed(), hunt.runner().stopped(),
                      hunt.coverage().search_runs};
    event.reproduced = static_cast<int>(hunt.found().size()) - static_cast<int>(margins);
    event.margins = static_cast<int>(margins);
    return event;
  }

  // Written once before it is made small and once after, because the first is worth having should
  // the second be cut short. What was found is told even when no file can be written.
  Result<void> keep_all(Hunt& hunt, bool is_final) {
    Result<void> all_kept;
    for (size_t i = 0; i < hunt.found().size(); ++i) {
      Repro repro = repro_of(hunt.found()[i], *one_, command_.seed);
      describe(repro, hunt.profile(), *one_);
      auto file = save(repro, i);
      if (is_final) events_.emit(FailureReproduced{std::move(repro), file ? file->path : ""});
      if (is_final && file && file->kept_older) events_.emit(older_is_kept(file->path));
      if (!file) all_kept = file.error();
    }
    return all_kept;
  }

  static Note older_is_kept(const std::string& file) {
    return {Note::Level::info,
            fmt::format("{} was found before, with its slack, and is kept", printable(file)),
            "remove it to have this one written"};
  }

  Result<SavedRepro> save(const Repro& repro, size_t number) const {
    if (number > 0 || out_.empty()) return save_in_project(repro);
    if (auto written = replace_file(out_, repro_json(repro)); !written) return written.error();
    return SavedRepro{out_};
  }

  Result<SavedRepro> save_in_project(const Repro& repro) const {
    auto saved = save_repro(one_->project(), repro);
    if (saved) return SavedRepro{path_from_here(saved->path), saved->kept_older};
    Error error = saved.error();
    error.next =
        "make the folder writable, or write the repro elsewhere with --out FILE; "
        "`unflake inject` takes the --delay that is shown above";
    return error;
  }

  SearchStarted started(const HuntOptions& options) const {
    SearchStarted event;
    event.at = std::chrono::system_clock::now();
    event.test = one_->shared_test();
    if (!options.wanted.anything()) event.wanted = wanted_text(options.wanted);
    event.signature = options.wanted.signature;
    event.budget = told_budget_;
    return event;
  }

  static std::string wanted_text(const Wanted& wanted) {
    if (!wanted.failure) return wanted.signature;
    if (wanted.failure->line == 0) return std::string(to_string(wanted.failure->kind));
    return headline(*wanted.failure);
  }

  void tell_nothing_found(const Hunt& hunt) {
    for (const std::string& line : not_reproduced_lines(hunt))
      events_.emit(Note{Note::Level::info, line, ""});
  }

  using Clock = std::chrono::steady_clock;

  const ReproduceCommand& command_;
  const Clock::time_point began_ = Clock::now();
  Duration told_budget_{};
  std::string out_ = command_.out;  // for the first repro of all; then empty
  FdSink sink_;
  SearchReport terminal_;
  JsonLines lines_;
  CodeNotes code_notes_;
  EventStream events_;
  // In which no test could be recognised; it may still be the output of the one that is named.
  struct UnreadLog {
    std::string text;
    Error why;
  };

  std::optional<CiLog> log_;
  std::optional<UnreadLog> unread_log_;
  TrialHistory history_;
  std::unique_ptr<OneTest> one_;
};

}  // namespace

int reproduce_command(const Words& words) {
  ReproduceCommand command;
  CommandLine line("reproduce", reproduce_help);
  command.one.add_to(line);
  line.option("--log", command.log, "a raw CI log or JUnit XML that shows the failure")
      .takes("FILE");
  line.option("--failure", command.failure,
              "a signature from history, FILE:LINE of a check, or `timeout`");
  line.option("--strategy", command.strategies,
              "one or more, in this order [schedules, guided, then wider ones]:" + strategy_list())
      .separated_by(',')
      .one_at_a_time();
  line.option("--budget", command.budget, "for everything, the slack included [5m]");
  line.option("--max-delay", command.most_delay, "no thread is made later than this [10s]");
  line.option("--initial-delay", command.initial_delay,
              "the first delay of bisection, one-by-one and ddmin [four times as long as the test "
              "runs, at most 5s]");
  line.option("--order", command.order,
              "with guided: the order of the delays: turns, nearest, appearance or random")
      .one_of({"turns", "nearest", "appearance", "random"});
  line.option("--candidates", command.most_candidates,
              "with guided: try only this many delays [all]");
  line.option("--seed", command.seed, "the seed for everything random");
  line.option("--profile-runs", command.profile_runs, "runs without delays at first [5]")
      .between(1, 100);
  line.option("--out", command.out, "write the repro file here (of several failures, the first)")
      .takes("FILE");
  line.flag("--json", command.json, "events as JSON lines instead of text");
  if (const auto done = line.parse(words)) return *done;
  const auto code = Reproduction(command)(words);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
