#include "report/explanation_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/rates.h"
#include "report/style.h"
#include "util/base_name.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t longest_quote = 100;
constexpr int lines_around = 2;

std::string place_text(const CodePlace& place) {
  if (place.file.empty()) return place.function.empty() ? "?" : place.function;
  return place.line > 0 ? fmt::format("{}:{}", base_name(place.file), place.line)
                        : base_name(place.file);
}

std::string thread_text(const std::string& thread, const std::string& started_by) {
  if (thread.empty()) return "any thread";
  const std::string name = fmt::format("thread `{}`", thread);
  return started_by.empty() ? thread : fmt::format("{} (started by {})", name, started_by);
}

std::string time_text(std::optional<Duration> at) {
  return at ? "after " + format_duration(*at) : "never";
}

class Wording {
 public:
  explicit Wording(const ExplanationReport& report)
      : report_(report), repro_(report.repro), found_(report.explanation) {}

  ExplanationWords operator()() {
    words_.test = one_line(to_string(repro_.test));
    words_.failure =
        one_line(fmt::format("{}: {}", to_string(repro_.outcome), headline(repro_.failure)));
    tell_cause();
    if (found_.pair) tell_order(*found_.pair);
    if (found_.wait) tell_wait(*found_.wait);
    for (const Lateness& late : found_.late) tell_lateness(late);
    tell_figures();
    for (const Intervention& one : repro_.plan.interventions)
      words_.plan.push_back(one_line(to_string(one, repro_.plan.interventions)));
    for (const auto* notes : {&report_.notes, &found_.notes})
      for (const std::string& note : *notes) words_.notes.push_back(one_line(note));
    quote();
    return std::move(words_);
  }

 private:
  void tell_cause() {
    const Cause& best = found_.causes.front();
    words_.cause = to_string(best.kind);
    words_.advice = advice_for(best.kind);
    for (const std::string& text : best.evidence) words_.evidence.push_back(one_line(text));
    if (found_.causes.size() < 2) return;
    const Cause& next = found_.causes[1];
    words_.runner_up =
        one_line(fmt::format("{}: {}", to_string(next.kind), join(next.evidence, "; ")));
  }

  std::string line_at(const CodePlace& place) const {
    if (!report_.source || place.file.empty() || place.line <= 0) return "";
    return std::string(trim(report_.source(place.file, place.line)));
  }

  std::string with_text(const CodePlace& place) const {
    const std::string text = shorten(line_at(place), longest_quote);
    return text.empty() ? place_text(place) : fmt::format("{} (`{}`)", place_text(place), text);
  }

  std::string action_text(const Moment& moment, const char* to_do, const char* done) const {
    std::string place = with_text(moment.place);
    if (moment.caller) place += fmt::format(", called at {}", with_text(*moment.caller));
    switch (moment.what) {
      case Moment::What::thread_end:
        return fmt::format("{} its end", to_do);
      case Moment::What::return_from_call:
        return fmt::format("{} from {} at {}", done, moment.api, place);
      default:
        return fmt::format("{} {}", to_do, place);
    }
  }

  void tell_order(const FlippedPair& pair) {
    words_.story.push_back(one_line(fmt::format(
        "{} must {} before {} {}.", thread_text(pair.first.thread, pair.first.started_by),
        action_text(pair.first, "reach", "have returned"),
        thread_text(pair.second.thread, pair.second.started_by),
        action_text(pair.second, "reaches", "returns"))));
    std::string text = fmt::format("When it failed, the second came {} and the first {}",
                                   time_text(pair.second.failing), time_text(pair.first.failing));
    if (pair.second.passing)
      text += fmt::format("; when it passed, the first came {} and the second {}",
                          time_text(pair.first.passing), time_text(pair.second.passing));
    else
      text += fmt::format("; when it passed, the first came {}, before the second",
                          time_text(pair.first.passing));
    words_.story.push_back(text + ".");
  }

  void tell_wait(const CoveringWait& wait) {
    std::string text =
        fmt::format("{} waited {} ({} at {}", wait.moment.thread, format_duration(wait.failing),
                    wait.is_sleep ? "sleep" : wait.moment.api, with_text(wait.moment.place));
    if (wait.asked) text += fmt::format(", asked for {}", format_duration(*wait.asked));
    if (wait.times > 1) text += fmt::format(", {} times", wait.times);
    if (!wait.is_sleep && wait.ran_out_failing) text += ", and it ran out";
    text += ")";
    if (wait.needed)
      text += fmt::format(" for what took {} when the test passed", format_duration(*wait.needed));
    words_.story.push_back(one_line(text + "."));
  }

  void tell_lateness(const Lateness& late) {
    std::string text = fmt::format("To show it, {} was made late {} {} by {}",
                                   thread_text(late.thread, late.started_by), late.position,
                                   late.site, format_duration(late.longest));
    if (late.times > 1) text += fmt::format(", {} times", late.times);
    words_.story.push_back(one_line(text + "."));
  }

  void tell_figures() {
    const auto add = [&](const Count& count, const std::string& what) {
      if (count.runs <= 0) return;
      words_.figures.push_back(fmt::format("{}: {} of {} (95 % interval {})", what, count.hits,
                                           counted(count.runs, "run"),
                                           interval_text(exact_interval(count.hits, count.runs))));
    };
    add(repro_.with_plan, "this failure under the plan");
    add(repro_.without_plan, "this failure without it");
    if (repro_.passes_under_plan)
      words_.figures.push_back(
          "the test fails by itself, and passes when the plan keeps the order");
    if (repro_.slack)
      words_.figures.push_back(
          fmt::format("slack: a delay of {} still passes in most runs, {} fails in most",
                      format_duration(repro_.slack->passes), format_duration(repro_.slack->fails)));
    if (repro_.candidates > 0)
      words_.figures.push_back(counted(repro_.candidates, "plan") + " tried before this one");
  }

  void quote() {
    if (found_.pair) {
      add_quotation("critical point", found_.pair->first.place);
      add_quotation("barrier point", found_.pair->second.caller ? *found_.pair->second.caller
                                                                : found_.pair->second.place);
    }
    if (found_.wait) add_quotation("the wait", found_.wait->moment.place);
    for (const Lateness& late : found_.late) add_quotation("made late", late.place);
    if (found_.failure) add_quotation("failure", found_.failure->place);
  }

  void add_quotation(const std::string& role, const CodePlace& place) {
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

  // Two places a line apart are read together.
  bool joins_another(const std::string& role, const CodePlace& place) {
    for (size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].file != place.file) continue;
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

  void add_line(Quotation& quotation, const CodePlace& place, int number) const {
    const std::string text = report_.source ? report_.source(place.file, number) : "";
    if (text.empty() && number != place.line) return;
    if (text.empty() && quotation.lines.empty()) return;
    quotation.lines.push_back({number, one_line(text), number == place.line});
  }

  const ExplanationReport& report_;
  const Repro& repro_;
  const Explanation& found_;
  ExplanationWords words_;
  std::vector<CodePlace> places_;  // of the quotations
};

}  // namespace

ExplanationWords words_of(const ExplanationReport& report) {
  return Wording(report)();
}

}  // namespace unflake
