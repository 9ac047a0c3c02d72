#include "report/explanation_pages.h"

#include <fmt/format.h>

#include <algorithm>

#include "explain/call_order.h"
#include "report/layout.h"
#include "report/repair_text.h"
#include "report/search_text.h"
#include "stats/rates.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr int lines_around = 2;
constexpr std::string_view margin_advice =
    "Nothing has to be repaired: only a machine that stands still is later than the test allows. "
    "Keep the time that it allows; much less of it would make the test flaky.";

std::string place_text(const CodeSpot& place) {
  const std::string text = short_place(place);
  return text.empty() ? "?" : text;
}

template <class Actor>
std::string thread_text(const Actor& actor) {
  if (actor.thread.empty()) return "any thread";
  if (actor.started_by.empty()) return actor.thread;
  if (actor.role.empty())
    return fmt::format("thread `{}` (started by {})", actor.thread, actor.started_by);
  return fmt::format("{} (`{}`, started by {})", actor.role, actor.thread, actor.started_by);
}

std::string time_text(std::optional<Duration> at) {
  return at ? "after " + format_duration(*at) : "never";
}

class ExplanationWording {
 public:
  explicit ExplanationWording(const ExplanationReport& report)
      : report_(report), repro_(report.repro), found_(report.explanation) {}

  ExplanationWords operator()() {
    words_.test = one_line(to_string(repro_.test));
    words_.failure =
        one_line(fmt::format("{}: {}", to_string(repro_.outcome), headline(repro_.failure)));
    words_.summary = first_sentence(report_);
    tell_cause();
    if (found_.pair) tell_order(*found_.pair);
    if (found_.wait) tell_wait(*found_.wait);
    for (const std::string& text : found_.ending) words_.story.push_back(one_line(text + "."));
    for (const Lateness& late : found_.late) tell_lateness(late);
    tell_experiments();
    tell_figures();
    const Plan& plan = report_.recorded_plan ? *report_.recorded_plan : repro_.plan;
    for (const Intervention& one : plan.interventions)
      words_.plan.push_back(one_line(to_string(one, plan.interventions)));
    for (const auto* notes : {&report_.notes, &found_.notes})
      for (const std::string& note : *notes) words_.notes.push_back(one_line(note));
    quote();
    return std::move(words_);
  }

 private:
  void tell_cause() {
    if (!found_.unseen.empty()) return tell_unseen();
    const RootCause& best = found_.causes.front();
    words_.cause = to_string(best.kind);
    words_.verdict = plausibility_words(repro_);
    words_.is_margin = repro_.is_margin();
    words_.advice = words_.is_margin ? margin_advice : advice_for(best.kind);
    for (const std::string& text : best.evidence) words_.evidence.push_back(one_line(text));
    if (found_.causes.size() < 2) return;
    const RootCause& next = found_.causes[1];
    words_.runner_up =
        one_line(fmt::format("{}: {}", to_string(next.kind), join(next.evidence, "; ")));
  }

  void tell_unseen() {
    words_.cause = "cannot be told";
    words_.evidence.push_back(one_line(found_.unseen));
    words_.advice =
        "Build the test and the code that it tests with -g, do not strip them, and reproduce and "
        "explain the failure again.";
  }

  static std::string action_text(const Moment& moment, const char* call, const char* reach,
                                 const char* come_back, const char* end) {
    std::string place = place_text(moment.place);
    if (moment.caller) place += fmt::format(" (from {})", place_text(*moment.caller));
    switch (moment.what) {
      case Moment::What::thread_end:
        return end;
      case Moment::What::return_from_call:
        return fmt::format("{} from {} at {}", come_back, moment.api, place);
      case Moment::What::failure:
        return fmt::format("{} the check at {}", reach, place);
      case Moment::What::call:
        break;
    }
    return moment.api.empty() ? fmt::format("{} {}", reach, place)
                              : fmt::format("{} {} at {}", call, moment.api, place);
  }

  // One thread that comes to both, and nobody else may come in between.
  void tell_gap(const FlippedPair& pair) {
    words_.story.push_back(one_line(fmt::format(
        "{} {} and then has to {}: in between, another thread sees what is half done.",
        thread_text(pair.second), action_text(pair.second, "calls", "reaches", "returns", "ends"),
        action_text(pair.first, "call", "reach", "return", "end"))));
    if (!pair.first.passing || !pair.second.passing || !pair.second.failing) return;
    const std::string late =
        pair.first.failing
            ? format_duration(*pair.first.failing - *pair.second.failing) + " when it failed"
            : "it had not come so far when it failed";
    words_.story.push_back(fmt::format("That took {} when the test passed, and {}.",
                                       format_duration(*pair.first.passing - *pair.second.passing),
                                       late));
  }

  void tell_order(const FlippedPair& pair) {
    if (pair.is_gap) return tell_gap(pair);
    const std::string first = action_text(pair.first, "call", "reach", "return", "end");
    const std::string second = action_text(pair.second, "calls", "reaches", "returns", "ends");
    words_.story.push_back(one_line(fmt::format("{} must {} before {} {}.", thread_text(pair.first),
                                                first, thread_text(pair.second), second)));
    std::string text =
        fmt::format("When the test passed, the first came {}", time_text(pair.first.passing));
    text += pair.second.passing ? fmt::format(" and the second {}", time_text(pair.second.passing))
                                : ", before the second";
    words_.story.push_back(fmt::format("{}; when it failed, the second came {} and the first {}.",
                                       text, time_text(pair.second.failing),
                                       time_text(pair.first.failing)));
    if (!pair.is_shown && !found_.experiments.empty())
      words_.story.push_back(
          "That is what the two runs look like; no experiment has shown it in both directions.");
  }

  void tell_wait(const CoveringWait& wait) {
    std::string text =
        wait.is_sleep
            ? fmt::format("{} does not wait for that, it sleeps: {} at {}", wait.moment.thread,
                          format_duration(wait.failing), place_text(wait.moment.place))
            : fmt::format("{} waits for a limited time: {} in {} at {}", wait.moment.thread,
                          format_duration(wait.failing), wait.moment.api,
                          place_text(wait.moment.place));
    if (wait.times > 1) text += fmt::format(", in {} calls", wait.times);
    if (wait.asked)
      text += fmt::format(" ({}{} asked for)", format_duration(*wait.asked),
                          wait.times > 1 ? " each" : "");
    if (!wait.is_sleep && wait.ran_out_failing) text += ", and that ran out";
    if (wait.needed)
      text += fmt::format(". What it relies on took {} when the test passed",
                          format_duration(*wait.needed));
    words_.story.push_back(one_line(text + "."));
  }

  // How late is too late is known for one delay; several share it.
  std::string limit_text() const {
    if (!repro_.slack || found_.late.size() != 1 || report_.recorded_plan) return "";
    if (repro_.slack->passes == Duration::zero())
      return fmt::format("; {} is enough", format_duration(repro_.slack->fails));
    return fmt::format("; {} is enough, {} is not", format_duration(repro_.slack->fails),
                       format_duration(repro_.slack->passes));
  }

  static std::string where(const Lateness& late) {
    if (late.position.starts_with("at the start")) return "before its first line";
    const std::string caller =
        late.caller ? fmt::format(" (from {})", place_text(*late.caller)) : "";
    return fmt::format("{} {}{}", late.position, late.site, caller);
  }

  void tell_wait(const Lateness& late) {
    words_.story.push_back(
        one_line(fmt::format("To show it, {} had to wait {} until {} was passed.",
                             thread_text(late), where(late), late.waits_for)));
  }

  void tell_lateness(const Lateness& late) {
    if (!late.waits_for.empty()) return tell_wait(late);
    std::string text = fmt::format("To show it, {} was made late by {} {}", thread_text(late),
                                   format_duration(late.longest), where(late));
    if (late.times > 1) text += fmt::format(", {} times", late.times);
    words_.story.push_back(one_line(text + limit_text() + "."));
  }

  void tell_experiments() {
    if (found_.pair && found_.pair->is_shown) {
      const FlippedPair& pair = *found_.pair;
      words_.experiments.push_back(
          fmt::format("with the critical point first, {} of {} passed, although a thread was late",
                      pair.kept.hits, counted(pair.kept.runs, "run")));
      words_.experiments.push_back(
          fmt::format("with the barrier point first, {} of {} failed, although nobody was late",
                      pair.reversed.hits, counted(pair.reversed.runs, "run")));
    }
    for (const std::string& text : found_.experiments) words_.experiments.push_back(one_line(text));
  }

  void tell_figures() {
    const auto add = [&](const Count& count, const std::string& what) {
      if (count.runs <= 0) return;
      words_.figures.push_back(fmt::format("{}: {} of {} (95 % interval {})", what, count.hits,
                                           counted(count.runs, "run"),
                                           interval_text(count.interval())));
    };
    add(repro_.with_plan, "this failure under the plan");
    add(repro_.without_plan, "this failure without it");
    if (repro_.passes_under_plan)
      words_.figures.push_back(
          "the test fails by itself, and passes when the plan keeps the order");
    if (repro_.slack) words_.figures.push_back("slack: " + slack_figure());
    if (!words_.verdict.empty()) words_.figures.push_back("verdict: " + words_.verdict);
    if (repro_.candidates == 1) words_.figures.push_back("the first plan that was tried");
    if (repro_.candidates > 1)
      words_.figures.push_back(counted(repro_.candidates - 1, "plan") + " tried before this one");
  }

  std::string slack_figure() const {
    if (repro_.slack->passes == Duration::zero()) return slack_words(repro_);
    return fmt::format("{} late still passes in most runs, {} late fails in most",
                       format_duration(repro_.slack->passes), format_duration(repro_.slack->fails));
  }

  void quote() {
    if (found_.pair) {
      add_quotation("critical point", found_.pair->first.place);
      add_quotation("barrier point", found_.pair->second.caller ? *found_.pair->second.caller
                                                                : found_.pair->second.place);
    }
    if (found_.wait) add_quotation("the wait", found_.wait->moment.place);
    for (const Lateness& late : found_.late)
      add_quotation("made late", late.caller ? *late.caller : late.place);
    if (found_.failure) add_quotation("failure", found_.failure->place);
  }

  void add_quotation(const std::string& role, const CodeSpot& place) {
    if (place.file.empty() || place.line <= 0) return;
    if (joins_another(role, place)) return;
    Quotation quotation;
    quotation.title = fmt::format("{}: {}", role, place_text(place));
    if (!place.function.empty()) quotation.title += " in " + place.function;
    quotation.title = one_line(quotation.title);
    for (int i = std::max(1, place.line - lines_around); i <= place.line + lines_around; ++i)
      add_line(quotation, place, i);
    places_.push_back(place);
    words_.quotations.push_back(std::move(quotation));
  }

  // A site has the short name of its file, a stack the whole one.
  static bool is_same_file(const std::string& one, const std::string& other) {
    return one.ends_with(other) || other.ends_with(one);
  }

  // Two places a line apart are read together.
  bool joins_another(const std::string& role, const CodeSpot& place) {
    for (size_t i = 0; i < places_.size(); ++i) {
      if (!is_same_file(places_[i].file, place.file)) continue;
      Quotation& known = words_.quotations[i];
      const auto line = std::ranges::find(known.lines, place.line, &QuotedLine::number);
      const bool is_same = places_[i].line == place.line;
      if (!is_same && line == known.lines.end()) continue;
      if (line != known.lines.end()) line->is_meant = true;
      known.title =
          one_line(is_same ? fmt::format("{}, {}", role, known.title)
                           : fmt::format("{}; {}: line {}", known.title, role, place.line));
      return true;
    }
    return false;
  }

  void add_line(Quotation& quotation, const CodeSpot& place, int number) const {
    const std::string text = report_.source ? report_.source(place.file, number) : "";
    if (text.empty() && number != place.line) return;
    if (text.empty() && quotation.lines.empty()) return;
    quotation.lines.push_back({number, one_line(text), number == place.line});
  }

  const ExplanationReport& report_;
  const Repro& repro_;
  const Explanation& found_;
  ExplanationWords words_;
  std::vector<CodeSpot> places_;  // of the quotations
};

}  // namespace

ExplanationWords words_of(const ExplanationReport& report) {
  return ExplanationWording(report)();
}

namespace {

std::string lines_of(const Style& style, const std::string& heading,
                     const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = "\n" + style.paint(Tone::plain, heading) + "\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

std::string quotation_text(const Style& style, const Quotation& quotation) {
  std::string text = "\n" + style.paint(Tone::plain, quotation.title) + "\n";
  for (const QuotedLine& line : quotation.lines) {
    const std::string row =
        fmt::format("{} {:>5} | {}", line.is_meant ? '>' : ' ', line.number, line.text);
    text += (line.is_meant ? style.paint(Tone::doubtful, row) : row) + "\n";
  }
  return text;
}

}  // namespace

std::string explanation_text(const ExplanationReport& report, const Style& style) {
  const ExplanationWords words = words_of(report);
  std::string text = words.test + "\n  " + style.paint(Tone::bad, words.failure) + "\n";
  if (!words.summary.empty()) text += "\n" + words.summary + "\n";
  std::vector<std::string> cause = words.evidence;
  if (!words.runner_up.empty()) cause.push_back("or else " + words.runner_up);
  text += words.is_margin ? lines_of(style, "no flaw, a margin",
                                     {margin_words(report.repro), "what bounds it: " + words.cause})
                          : lines_of(style, "root cause: " + words.cause, cause);
  text += lines_of(style, "what happens", words.story);
  for (const Quotation& quotation : words.quotations) text += quotation_text(style, quotation);
  text += lines_of(style, "what experiments show", words.experiments);
  text += lines_of(style, "figures", words.figures);
  text += lines_of(style, "plan", words.plan);
  text += lines_of(style, "what to do", {words.advice});
  if (report.patch) text += proposed_patch_text(*report.patch, style);
  for (const std::string& note : words.notes)
    text += fmt::format("{}: {}\n", style.paint(Tone::doubtful, "note"), note);
  return text;
}

}  // namespace unflake
