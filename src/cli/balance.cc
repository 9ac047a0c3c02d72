#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <thread>

#include "app/agent_command.h"
#include "app/listeners.h"
#include "app/options.h"
#include "cli/balance_input.h"
#include "cli/commands.h"
#include "report/balance_pages.h"
#include "report/search_text.h"
#include "search/balance/balance.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* balance_help =
    R"(Finds the time values that a test's own code passes (sleeps, waits with a time-out, polls,
timers), and for each the smallest at which the test still holds. Nothing is edited or rebuilt: the
times are changed while the test runs.

  unflake balance ./server_test Server.Accepts                  what each wait costs, and could cost
  unflake balance ./server_test Server.Accepts --site server_test.cc:42
  unflake balance ./server_test Server.Accepts --from 200ms --to 1s    does this fix change anything?
  unflake balance ./server_test --all                           the whole suite, most seconds first
  unflake balance --benchmark                                   how fast this machine is, for --scale

A wait always runs out, so that a shorter one makes the test faster. A time-out ends early, so that it
does not; it is searched only when --site names it. A test that fails by itself gets longer times, if
that helps; else its own rate of failures is accounted for.

Exit code 0: measured (with --from and --to: the new value fails less often); 1: there is nothing to
measure: the test is broken or skipped (with --from and --to: it does not, or it cannot be told);
2: bad usage; 4: unflake itself failed; 128 + N: stopped by signal N.)";

struct BalanceCommand {
  OneTestOptions one;
  std::string tolerance = "0.1%", confidence = "95%", loads = "idle,busy,one-core", scale;
  std::string method = "sequential";
  std::vector<std::string> sites;
  std::optional<Duration> from, to, budget;
  std::string html, patch, compile_commands;
  int fatb_runs = 100, most_runs = 320, jobs = 0;
  bool all = false, json = false, benchmark = false, verbose = false;
};

constexpr double most_tolerance = 0.2;  // more is no tolerance, and could not be told from failing

int cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

class Balance {
 public:
  explicit Balance(BalanceCommand& command)
      : command_(command),
        sink_(STDOUT_FILENO),
        progress_(sink_, wants_colour(command.one.colour, STDOUT_FILENO),
                  can_be_live(STDOUT_FILENO)),
        style_(style_for(command.one.colour)) {
    if (!command.json) events_.add(progress_);
    events_.add(code_notes_);
  }

  Result<int> operator()(const Words& words) {
    if (auto read = read_words(); !read) return read.error();
    for (const std::string& path : {command_.html, command_.patch})
      if (!path.empty())
        if (auto ready = prepare_output_file(path); !ready) return ready.error();
    command_.one.slots = static_cast<size_t>(options_.limits.at_once);
    auto one =
        command_.all ? OneTest::find_each(command_.one, words) : OneTest::find(command_.one, words);
    if (!one) return one.error();
    one_ = std::move(*one);
    history_.open(command_.one.history, *one_, command_line_of("balance", words),
                  [this](const Note& note) { tell_of_history(note); });
    one_->events().add(events_);
    const auto code = command_.all ? balance_all() : is_claim() ? judge_claim() : balance_one();
    if (code && one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
    return code;
  }

 private:
  void tell_of_history(const Note& note) {
    if (command_.json) return warn({note}, command_.one.colour);
    events_.emit(note);
  }

  bool is_claim() const { return command_.to.has_value(); }

  Result<void> read_words() {
    if (command_.to && (!command_.from || command_.all || command_.sites.size() > 1))
      return usage_error("--to is for one value of one test, and needs --from", "--to",
                         "give both, and --site when the test has several values");
    if (command_.from && !command_.to && command_.method != "fatb")
      return usage_error("--from needs --to", "--from", "give both");
    if (command_.from && command_.from == command_.to)
      return usage_error("--from and --to are the same", "--to", "give two values to compare");
    const auto tolerance = parse_share(command_.tolerance, "--tolerance", most_tolerance);
    if (!tolerance) return tolerance.error();
    const auto confidence = parse_share(command_.confidence, "--confidence");
    if (!confidence) return confidence.error();
    if (*confidence < 0.5)
      return usage_error("a coin is right more often", "--confidence " + command_.confidence,
                         "give 50% or more");
    const auto loads = parse_loads(command_.loads);
    if (!loads) return loads.error();
    const auto scale = command_.scale.empty() ? Result<double>(1.0) : parse_scale(command_.scale);
    if (!scale) return scale.error();
    auto off = command_.one.groups_off();
    if (!off) return off.error();
    options_.tolerance = *tolerance;
    options_.confidence = *confidence;
    options_.loads = *loads;
    options_.scale = *scale;
    options_.plan.groups_off = std::move(*off);
    options_.fatb = command_.method == "fatb";
    options_.fatb_runs = command_.fatb_runs;
    options_.from = command_.from;
    options_.sites = command_.sites;
    options_.limits.budget = command_.budget.value_or(options_.limits.budget);
    options_.limits.cores = cores();
    options_.limits.at_once = command_.jobs > 0 ? command_.jobs : cores();
    return {};
  }

  // What every run has: events, because they measure how long things took.
  Plan plan() const {
    Plan plan = options_.plan;
    plan.agent = plan.calls = true;
    plan.system_calls = command_.one.system_calls;
    plan.extra_functions = one_->functions();
    return plan;
  }

  Result<BalanceReport> measured() {
    if (auto done = one_->set_up(); !done) return done.error();
    BalanceOptions options = options_;
    options.plan = plan();
    options.limits.timeout = one_->timeout();
    auto report = balance(one_->executor(), one_->shared_test(), options, one_->events());
    if (!report) return report;
    const SourceOptions sources{command_.compile_commands, !command_.sites.empty()};
    add_sources(*report, one_->project(), sources);
    tell_code_notes(report->notes);
    return report;
  }

  // In JSON each report has them.
  void tell_code_notes(std::vector<std::string>& notes) {
    for (const Note& note : code_notes_.take()) events_.emit(note);
    if (!command_.json) return;
    for (const CodeNote& note : code_notes_.all())
      notes.push_back(fmt::format("{}: {}", note.text, note.next));
  }

  // What was measured is told even when a file cannot be written.
  Result<int> balance_one() {
    const auto report = measured();
    if (!report) return report.error();
    const int code = tell(command_.json ? balance_json(*report)
                                        : balance_text(*report, style_, command_.verbose));
    const auto html = [&] { return balance_html(*report); };
    if (auto written = write_files(html, {&*report}); !written) return written.error();
    const bool nothing = report->base.empty() && !report->interrupted && !report->out_of_budget;
    return code == 0 && nothing ? static_cast<int>(ExitCode::test_failed) : code;
  }

  Result<int> judge_claim() {
    if (auto done = one_->set_up(); !done) return done.error();
    ClaimOptions options;
    options.site = command_.sites.empty() ? "" : command_.sites.front();
    options.from = *command_.from;
    options.to = *command_.to;
    options.confidence = options_.confidence;
    options.most_runs = command_.most_runs;
    options.loads = options_.loads;
    options.plan = plan();
    options.limits = options_.limits;
    options.limits.at_once = 1;
    options.limits.timeout = one_->timeout();
    auto report = check_claim(one_->executor(), one_->shared_test(), options, one_->events());
    if (!report) return report.error();
    tell_code_notes(report->notes);
    const int code = tell(command_.json ? claim_json(*report) : claim_text(*report, style_));
    const auto is_anywhere = [&](ClaimReport::Answer answer) {
      return std::ranges::count(report->loads, answer, &ClaimReport::AtLoad::answer) > 0;
    };
    const bool helps = is_anywhere(ClaimReport::Answer::fails_less) &&
                       !is_anywhere(ClaimReport::Answer::fails_more);
    return code == 0 && !helps ? static_cast<int>(ExitCode::test_failed) : code;
  }

  Result<int> balance_all() {
    SuiteBalance suite;
    suite.target = one_->target().name;
    const Duration began = one_->executor().elapsed();
    for (size_t i = 0; i < one_->choices() && one_->stop_signal() == 0; ++i) {
      one_->choose(i);
      suite.entries.push_back(balanced_entry());
      if (const auto& report = suite.entries.back().report) suite.runs += report->runs;
    }
    std::ranges::stable_sort(suite.entries, std::ranges::greater(), &SuiteBalance::Entry::saved_ms);
    std::vector<BalanceReport*> reports;
    for (SuiteBalance::Entry& entry : suite.entries)
      if (entry.report) reports.push_back(&*entry.report);
    leave_out_shared_edits(reports);
    suite.elapsed = one_->executor().elapsed() - began;
    suite.interrupted = one_->stop_signal() != 0;
    const int code =
        tell(command_.json ? suite_balance_json(suite) : suite_balance_text(suite, style_));
    const auto html = [&] { return suite_balance_html(suite); };
    if (auto written = write_files(html, {reports.begin(), reports.end()}); !written)
      return written.error();
    return code;
  }

  // A test that cannot be measured must not keep the others from it.
  SuiteBalance::Entry balanced_entry() {
    SuiteBalance::Entry entry;
    entry.test = one_->test().id;
    auto report = measured();
    if (!report) {
      entry.why_not = to_string(report.error());
      return entry;
    }
    if (report->base.empty())
      entry.why_not = report->notes.empty() ? "no runs were made" : report->notes.front();
    for (const TriedSetting& base : report->base)
      if (base.load == LoadLevel::idle) entry.before_ms = base.run_time.median;
    entry.after_ms = entry.before_ms - report->saved_carefully_ms();
    entry.report = std::move(*report);
    return entry;
  }

  Result<void> write_files(const std::function<std::string()>& html,
                           const std::vector<const BalanceReport*>& reports) {
    if (!command_.html.empty())
      if (auto written = replace_file(command_.html, html()); !written) return written.error();
    if (command_.patch.empty()) return {};
    const Patch patch = patch_of(reports, one_->project());
    if (patch.text.empty() && !patch.left_out.empty()) return patch.left_out.front();
    for (const Error& error : patch.left_out) (void)report_error(error);
    if (auto written = replace_file(command_.patch, patch.text); !written) return written.error();
    if (!command_.json) tell_patch(patch);
    return {};
  }

  void tell_patch(const Patch& patch) const {
    const std::string file = std::filesystem::absolute(command_.patch).string();
    tell(patch.text.empty()
             ? fmt::format("\nThere is nothing to edit: {} is empty\n", printable(file))
             : fmt::format("\nTo apply the patch: git -C {} apply {}\n", shell_quote(patch.folder),
                           shell_quote(file)));
  }

  static int tell(const std::string& text) {
    Page page;
    page.print("{}", text);
    return page.write_out();
  }

  BalanceCommand& command_;
  BalanceOptions options_;
  FdSink sink_;
  SearchReport progress_;
  CodeNotes code_notes_;
  EventStream events_;
  const Style style_;
  TrialHistory history_;
  std::unique_ptr<OneTest> one_;
};

int tell_machine_speed() {
  const MachineSpeed speed = measure_machine_speed();
  Page page;
  page.print("{} (median of {}, {} to {})\n", duration_word(speed.median), speed.rounds,
             format_duration(speed.fastest), format_duration(speed.slowest));
  page.print("on another machine: unflake balance TEST --scale {}\n", duration_word(speed.median));
  return page.write_out();
}

}  // namespace

int balance_command(const Words& words) {
  BalanceCommand command;
  CommandLine line("balance", balance_help);
  command.one.add_to(line);
  line.option("--tolerance", command.tolerance,
              "the share of runs that may fail beyond those that fail anyway [0.1%]");
  line.option("--confidence", command.confidence, "of every verdict [95%]");
  line.option("--site", command.sites,
              "only this value, FILE:LINE or as it is shown, whatever it is; may be repeated")
      .one_at_a_time();
  line.option("--load", command.loads,
              "how busy the machine is: idle, busy, one-core [all]; the value holds at each");
  line.option("--scale", command.scale,
              "for another machine: a factor, or what `--benchmark` shows there");
  line.flag("--benchmark", command.benchmark, "only measures this machine, for --scale");
  line.option("--method", command.method, "sequential, or fatb: the paper's fixed number of runs")
      .one_of({"sequential", "fatb"});
  line.option("--runs", command.fatb_runs, "of fatb, for each value [100]").between(1, 100'000);
  line.option("--from", command.from, "a claimed fix: the value before it");
  line.option("--to", command.to, "a claimed fix: the value after it");
  line.option("--most", command.most_runs, "runs of a claimed fix, with each value [320]")
      .between(10, 1'000'000);
  line.option("--budget", command.budget, "for each test [10m]");
  line.option("--jobs", command.jobs, "at most this many runs at once, where that changes nothing");
  line.flag("--all", command.all, "every test that the words select, ranked by what it could save");
  line.option("--html", command.html, "a page with plots").takes("FILE");
  line.option("--patch", command.patch, "the values as a patch of the source").takes("FILE");
  line.option("--compile-commands", command.compile_commands,
              "the folder of compile_commands.json [found from the source]")
      .takes("FOLDER");
  line.flag("--verbose", command.verbose, "every setting that was tried");
  line.flag("--json", command.json, "JSON instead of text");
  if (const auto done = line.parse(words)) return *done;
  if (command.benchmark) return tell_machine_speed();
  const auto code = Balance(command)(words);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
