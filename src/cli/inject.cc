#include "cli/inject.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "app/agent_command.h"
#include "app/listeners.h"
#include "app/options.h"
#include "cli/commands.h"
#include "trace/happens_before.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Position = Intervention::Position;
using Threads = Intervention::Threads;
using Visits = Intervention::Visits;

constexpr Duration longest_hold = 5s;

std::optional<uint64_t> count_in(std::string_view text) {
  uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

bool take_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

// Takes "WORD rest" off the end of the text, and gives the rest.
std::optional<std::string_view> take_last(std::string_view& text, std::string_view word) {
  const size_t at = text.rfind(word);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = trim(text.substr(at + word.size()));
  text = trim(text.substr(0, at));
  return rest;
}

struct Assignment {
  std::string_view place;
  std::string_view value;
  Duration duration{};
  std::string_view rest;  // after the value
};

// At the first `=` that a value follows: `operator==()` has some of its own.
template <class Parse>
std::optional<Assignment> split_assignment(std::string_view text, Parse parse) {
  for (size_t at = text.find('='); at != std::string_view::npos; at = text.find('=', at + 1)) {
    const std::string_view after_sign = text.substr(at + 1);
    const size_t end = std::min(after_sign.find(' '), after_sign.size());
    const auto duration = parse(after_sign.substr(0, end));
    if (duration && !after_sign.empty())
      return Assignment{text.substr(0, at), after_sign.substr(0, end), *duration,
                        trim(after_sign.substr(end))};
  }
  return std::nullopt;
}

std::optional<Assignment> split_assignment(std::string_view text) {
  return split_assignment(text, parse_duration);
}

// Fifty seconds are seldom meant by 50.
Result<void> check_unit(const Assignment& parts, std::string where) {
  const auto duration = parse_duration_with_unit(parts.value);
  if (duration) return {};
  Error error = duration.error();
  error.where = std::move(where);
  return error;
}

constexpr double largest_factor = 3600;

// "0.5" or "50%" as what a second becomes.
std::optional<Duration> scaled_second(std::string_view text) {
  const bool percent = take_end(text, "%");
  double factor = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), factor);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (percent) factor /= 100;
  if (!(factor >= 0 && factor <= largest_factor)) return std::nullopt;
  return Duration(std::llround(factor * 1e6));
}

class Parser {
 public:
  // Without known threads every name is taken for one.
  Parser(const InjectWords& words, const Trace* known) : words_(words), known_(known) {}

  Result<std::vector<NamedIntervention>> operator()() {
    using Read = Result<void> (Parser::*)(const std::string&);
    const std::pair<const std::vector<std::string>*, Read> kinds[] = {
        {&words_.delays, &Parser::read_delay},
        {&words_.orders, &Parser::read_order},
        {&words_.holds, &Parser::read_hold},
        {&words_.set_times, &Parser::read_set_time},
        {&words_.scale_times, &Parser::read_scale_time},
        {&words_.watches, &Parser::read_watch}};
    for (const auto& [texts, read] : kinds)
      for (const std::string& text : *texts)
        if (auto done = (this->*read)(text); !done) return done.error();
    return std::move(all_);
  }

 private:
  Result<void> read_delay(const std::string& text) {
    const auto parts = split_assignment(text);
    if (!parts)
      return usage_error("this is not a delay", "--delay '" + text + "'",
                         "write SITE@THREAD=DURATION, as in queue.cc:57:read@main=200ms");
    if (auto done = check_unit(*parts, "--delay '" + text + "'"); !done) return done.error();
    auto delay = place(parts->place);
    if (!delay) return delay.error();
    delay->duration = parts->duration;
    std::string_view rest = parts->rest;
    if (const auto anchor = take_last(rest, "once ")) {
      auto watched = watch(*anchor);
      if (!watched) return watched.error();
      delay->anchor = *watched;
    }
    if (!read_visits(rest, *delay))
      return usage_error(fmt::format("'{}' says nothing about visits", printable(rest)),
                         "--delay '" + text + "'",
                         "write `at visit N`, `from visit N` or `halving` after the duration, and "
                         "`once SITE@THREAD` after that");
    all_.push_back({*delay, text});
    return {};
  }

  static bool read_visits(std::string_view text, Intervention& delay) {
    if (text.empty()) return true;
    if (text == "halving") {
      delay.visits = Visits::halving;
      return true;
    }
    delay.visits = text.starts_with("from ") ? Visits::from_nth : Visits::only_nth;
    for (const std::string_view word : {"at visit ", "from visit "}) {
      if (!text.starts_with(word)) continue;
      const auto nth = count_in(trim(text.substr(word.size())));
      delay.nth = nth.value_or(0);
      return nth.has_value();
    }
    return false;
  }

  Result<void> read_hold(const std::string& text) {
    const Error wrong = usage_error("this is not a hold", "--hold '" + text + "'",
                                    "write SITE@THREAD until SITE@THREAD, then `x N` for the N-th "
                                    "time, `for DURATION` at most");
    std::string_view rest = text;
    const auto until = take_last(rest, " until ");
    if (!until) return wrong;
    auto hold = held_place(rest, {" at visit ", " from visit "});
    if (!hold) return hold.error();
    std::string_view other = *until;
    if (const auto bound = take_last(other, " for ")) {
      const auto duration = parse_duration_with_unit(*bound);
      if (!duration) return duration.error();
      hold->duration = *duration;
    }
    if (const auto count = take_last(other, " x ")) {
      const auto number = count_in(*count);
      if (!number) return wrong;
      hold->count = *number;
    }
    const auto watched = watch(other);
    if (!watched) return watched.error();
    hold->until = *watched;
    all_.push_back({*hold, text});
    return {};
  }

  // How often a side of an order was visited; 0: that is not a number.
  static uint64_t take_visit(std::string_view& text, uint64_t otherwise) {
    const auto number = take_last(text, " visit ");
    return number ? count_in(*number).value_or(0) : otherwise;
  }

  Result<void> read_order(const std::string& text) {
    const Error wrong = usage_error("this is not an order", "--order '" + text + "'",
                                    "write SITE@THREAD after SITE@THREAD, and `visit N` after "
                                    "either of them for the N-th time");
    std::string_view first = text;
    auto second = take_last(first, " after ");
    if (!second) return wrong;
    const uint64_t nth = take_visit(first, 1), count = take_visit(*second, 1);
    if (nth == 0 || count == 0) return wrong;
    const bool is_nth = std::string_view(text).substr(0, text.rfind(" after ")).find(" visit ") !=
                        std::string_view::npos;
    auto hold = held_place(first, {});
    if (!hold) return hold.error();
    hold->visits = is_nth ? Visits::only_nth : Visits::every;
    hold->nth = nth;
    hold->count = count;
    const auto passed = watch(*second, true);
    if (!passed) return passed.error();
    hold->until = *passed;
    all_.push_back({*hold, text});
    return {};
  }

  Result<Intervention> held_place(std::string_view text,
                                  std::initializer_list<std::string_view> visits) {
    Intervention visited;
    for (const std::string_view word : visits) {
      const size_t at = text.rfind(word);
      if (at == std::string_view::npos || !read_visits(trim(text.substr(at)), visited)) continue;
      text = trim(text.substr(0, at));
      break;
    }
    auto hold = place(text);
    if (!hold) return hold;
    hold->action = Intervention::Action::hold;
    hold->duration = longest_hold;
    hold->visits = visited.visits;
    hold->nth = visited.nth;
    return hold;
  }

  Result<void> read_set_time(const std::string& text) {
    const auto parts = split_assignment(text);
    if (!parts || !parts->rest.empty())
      return usage_error("this is not a time value for a site", "--set-time '" + text + "'",
                         "write SITE@THREAD=DURATION, as in server.cc:90:poll=50ms");
    if (auto done = check_unit(*parts, "--set-time '" + text + "'"); !done) return done.error();
    return add_change(*parts, Intervention::Action::replace_time, text);
  }

  Result<void> read_scale_time(const std::string& text) {
    const auto parts = split_assignment(text, scaled_second);
    if (!parts || !parts->rest.empty())
      return usage_error("this is not a factor for the time values of a site",
                         "--scale-time '" + text + "'",
                         "write SITE@THREAD=FACTOR, as in server.cc:90:poll=0.5 or =50%");
    return add_change(*parts, Intervention::Action::scale_time, text);
  }

  Result<void> add_change(const Assignment& parts, Intervention::Action action,
                          const std::string& text) {
    auto change = place(parts.place);
    if (!change) return change.error();
    change->action = action;
    change->duration = parts.duration;
    all_.push_back({*change, text});
    return {};
  }

  Result<void> read_watch(const std::string& text) {
    const auto added = watch(text);
    return added ? Result<void>() : added.error();
  }

  // Whoever has passed a call or an instruction is past it, unless the side was named.
  static bool has_other_side(const Intervention& what) {
    return !what.site.api.empty() || (what.site.file.empty() && what.site.offset > 0);
  }

  // What holds and anchors refer to; one per place is enough.
  Result<size_t> watch(std::string_view text, bool passes = false) {
    const std::string name = std::string(passes ? "past " : "") + std::string(trim(text));
    for (size_t i = 0; i < all_.size(); ++i)
      if (all_[i].text == name && all_[i].intervention.action == Intervention::Action::watch)
        return i;
    auto watched = place(text);
    if (!watched) return watched.error();
    watched->action = Intervention::Action::watch;
    if (passes && watched->position == Position::before && has_other_side(*watched) &&
        text.find(":before") == std::string_view::npos)
      watched->position = Position::after;
    all_.push_back({*watched, name});
    return all_.size() - 1;
  }

  // SITE[:before|:after|:start][@THREAD]
  Result<Intervention> place(std::string_view text) {
    Intervention what;
    text = trim(text);
    if (const size_t at = text.rfind('@'); at != std::string_view::npos) {
      if (auto done = set_thread(std::string(trim(text.substr(at + 1))), what); !done)
        return done.error();
      text = trim(text.substr(0, at));
    }
    if (take_end(text, ":after"))
      what.position = Position::after;
    else if (take_end(text, ":start"))
      what.position = Position::start;
    else
      take_end(text, ":before");
    auto site = parse_site(text);
    if (!site) return site.error();
    what.site = std::move(*site);
    return what;
  }

  Result<void> set_thread(const std::string& text, Intervention& what) const {
    if (text == "*" || known_ == nullptr) return {};
    const bool is_class = text.ends_with("#*");
    for (const TracedThread& thread : known_->threads) {
      const std::string& name = thread.name.text;
      const std::string of_class = thread_class_of(name) + "#*";
      if ((is_class ? of_class : name) != text) continue;
      what.thread = thread.name;
      what.threads = is_class ? Threads::in_class : Threads::named;
      what.executable = executable_of(*known_, thread);
      return {};
    }
    return unknown_thread(text);
  }

  Error unknown_thread(const std::string& text) const {
    std::vector<std::string> names;
    for (const TracedThread& thread : known_->threads) names.push_back(thread.name.text);
    std::vector<std::string> similar = nearest(text, names, 5);
    if (similar.empty())
      similar.assign(names.begin(),
                     names.begin() + static_cast<ptrdiff_t>(std::min<size_t>(5, names.size())));
    return usage_error(fmt::format("the test has no thread {}", printable(text)), "",
                       "it has " + printable(join(similar, ", ")));
  }

  const InjectWords& words_;
  const Trace* known_;
  std::vector<NamedIntervention> all_;
};

}  // namespace

Result<Schedule> parse_schedule(std::string_view text) {
  const size_t colon = text.find(':');
  const auto sampler = sampler_from(text.substr(0, colon));
  const auto seed =
      colon == text.npos ? std::optional<uint64_t>(1) : count_in(text.substr(colon + 1));
  if (!sampler || !seed)
    return usage_error("this is not a schedule", "--schedule '" + std::string(text) + "'",
                       "write stay, random, pct, pos or surw, followed by a seed: random:7");
  Schedule schedule;
  schedule.sampler = *sampler;
  schedule.seed = *seed;
  return schedule;
}

Result<std::vector<NamedIntervention>> parse_interventions(const InjectWords& words,
                                                           const Trace& known) {
  return Parser(words, &known)();
}

Result<void> check_interventions(const InjectWords& words) {
  if (auto parsed = Parser(words, nullptr)(); !parsed) return parsed.error();
  return {};
}

namespace {

constexpr const char* inject_help =
    R"(Makes threads of one test late at sites that `unflake trace` shows, and tells what came of
it. The first run goes without interventions, to learn the names; then come the runs with them.

  unflake inject ./server_test Server.Accepts --delay 'queue.cc:57:pthread_cond_wait@main=200ms'
  unflake inject ./server_test Server.Accepts --delay 'queue.cc:57=50ms' -n 20
  unflake inject ./server_test Server.Accepts --order 'Queue::pop()@pool.cc:31#0 after Queue::push()'

A site is a call (FILE:LINE:API), a line (FILE:LINE), a function's entry (FUNCTION()), an
instruction (FUNCTION+0x3c), or exit(), which is the end of main too; after it
  :after         on the other side of the call: of a wait, when the thread was woken
  :start         of a creation (pthread_create, fork): in the new thread, before its first line
  @THREAD        only in this thread: main, pool.cc:31#2, or pool.cc:31#* for all that line started
A duration has a unit: 80us, 50ms, 1.5s. After a delay's duration
  at visit N     only the N-th time that such a thread comes there
  from visit N   from then on
  halving        every time, half as long at each further visit of a thread
  once SITE      visits count from when that site (with @THREAD, if wanted) was reached
An order makes a thread wait at the first site until another one has passed the second: a call when
it has returned, everything else when it was reached. After either site
  visit N        the N-th time; without it, the first site every time, the second once
When nobody else can go on, the order is impossible: the thread goes on, and unflake says so. A hold
is the same with a bound, and for sites that are only reached; after its second site
  x N            until it was reached N times
  for DURATION   at most this long [5s]

Exit code 0: all runs passed; 1: all failed; 2: bad usage; 3: some failed; 4: unflake itself failed;
128 + N: stopped by signal N.)";

using Purpose = TrialEnded::Purpose;

struct InjectCommand {
  OneTestOptions one;
  InjectWords words;
  std::string schedule;
  int runs = 1;
  bool full = false;
};

class Injection {
 public:
  explicit Injection(const InjectCommand& command)
      : command_(command),
        style_(style_for(command.one.colour)),
        texts_(style_, command.full ? StackDetail::full : StackDetail::project, command.full) {}

  Result<int> operator()(const Words& words) {
    auto plan = base_plan();
    if (!plan) return plan.error();
    if (auto checked = check_interventions(command_.words); !checked) return checked.error();
    if (!command_.schedule.empty())
      if (auto checked = parse_schedule(command_.schedule); !checked) return checked.error();
    auto one = OneTest::find(command_.one, words);
    if (!one) return one.error();
    one_ = std::move(*one);
    history_.open(command_.one, *one_, command_line_of("inject", words));
    const auto profile = one_->run({*plan, {}, "without interventions"}, Purpose::profile);
    if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
    if (!profile) return profile.error();
    auto interventions = parse_interventions(command_.words, *profile->trace);
    if (!interventions) return interventions.error();
    tell("without interventions:\n" + outcome_line(one_->test(), *profile, style_));
    CodeNotes notes;
    notes.add(*profile->trace);
    warn(notes.take(), command_.one.colour);
    for (const NamedIntervention& named : *interventions)
      plan->interventions.push_back(named.intervention);
    if (!command_.schedule.empty()) plan->schedule = *parse_schedule(command_.schedule);
    return run_all(*plan, *interventions);
  }

 private:
  Result<Plan> base_plan() const {
    if (command_.words.delays.empty() && command_.words.holds.empty() &&
        command_.words.set_times.empty() && command_.words.scale_times.empty() &&
        command_.words.watches.empty() && command_.words.orders.empty() &&
        command_.schedule.empty())
      return usage_error(
          "there is nothing to inject", "",
          "give --delay, --order, --hold, --set-time, --scale-time, --watch or --schedule; "
          "`unflake trace` shows sites");
    auto off = command_.one.groups_off();
    if (!off) return off.error();
    Plan plan;
    plan.agent = true;
    plan.calls = plan.stacks = true;  // the names of sites come from stacks
    plan.system_calls = command_.one.system_calls;
    plan.groups_off = std::move(*off);
    return plan;
  }

  Result<int> run_all(Plan plan, const std::vector<NamedIntervention>& interventions) {
    plan.calls = plan.stacks = false;  // recording them would make the threads later than asked
    InterventionTotals totals;
    std::vector<std::string> texts;
    for (const NamedIntervention& named : interventions) texts.push_back(named.text);
    for (int i = 0; i < command_.runs; ++i) {
      const auto result = one_->run({plan, {}, "with the interventions"}, Purpose::inject);
      if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
      if (!result) return result.error();
      if (i == 0) tell("with interventions:\n");
      totals.add(*result);
      tell(texts_.text_of(one_->test(), *result));
      if (result->trace && result->trace->controlled) tell(text_of(*result->trace->controlled));
      if (plan.schedule) ++plan.schedule->seed;
    }
    tell("\n" + totals.table(plan.interventions, texts) +
         fmt::format("\n{} of {} failed\n", totals.failed().hits,
                     counted(totals.failed().runs, "run")) +
         totals.doubts(plan.interventions, texts, style_));
    if (totals.failed().hits == 0) return static_cast<int>(ExitCode::success);
    return static_cast<int>(totals.failed().misses() == 0 ? ExitCode::test_failed
                                                          : ExitCode::flaky_only);
  }

  static std::string text_of(const ControlledRun& run) {
    std::string text =
        fmt::format("controlled: {}, {:016x}, {} of virtual time\n",
                    counted(static_cast<long long>(run.points_in_all), "switch point"), run.digest,
                    format_duration(run.virtual_time));
    if (!run.not_repeatable.empty())
      text += fmt::format("not repeatable: {}\n", printable(run.not_repeatable));
    return text;
  }

  static void tell(const std::string& text) {
    Page page;
    page.print("{}", text);
    (void)page.write_out();
  }

  const InjectCommand& command_;
  const Style style_;
  RunTexts texts_;
  TrialHistory history_;
  std::unique_ptr<OneTest> one_;
};

}  // namespace

int inject_command(const Words& words) {
  InjectCommand command;
  CommandLine line("inject", inject_help);
  command.one.add_to(line);
  const auto add_list = [&](const char* name, std::vector<std::string>& list, const char* text) {
    line.option(name, list, text).one_at_a_time().takes("TEXT");
  };
  add_list("--delay", command.words.delays, "SITE[@THREAD]=DURATION: be late there");
  add_list("--order", command.words.orders,
           "SITE[@THREAD] after SITE[@THREAD]: wait until the other has passed");
  add_list("--hold", command.words.holds,
           "SITE[@THREAD] until SITE[@THREAD] for DURATION: the same with a bound");
  line.option("--schedule", command.schedule,
              "SAMPLER[:SEED]: one thread at a time, chosen by stay, random, pct, pos or surw; "
              "further runs take the next seeds")
      .takes("TEXT");
  add_list("--set-time", command.words.set_times,
           "SITE[@THREAD]=DURATION: sleep or wait this long");
  add_list("--scale-time", command.words.scale_times,
           "SITE[@THREAD]=FACTOR: the same in proportion, as 0.5 or 50%");
  add_list("--watch", command.words.watches, "SITE[@THREAD]: only count who comes there");
  line.option("-n,--repeat", command.runs, "runs with the interventions [1]").between(1, 1'000'000);
  line.flag("--full", command.full, "what each failing run showed, with the frames of libraries");
  if (const auto done = line.parse(words)) return *done;
  const auto code = Injection(command)(words);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
