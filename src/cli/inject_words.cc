#include "cli/inject_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "trace/happens_before.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Position = Intervention::Position;
using Threads = Intervention::Threads;
using Visits = Intervention::Visits;

constexpr Duration longest_hold = 5s;

std::optional<uint64_t> number_in(std::string_view text) {
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
  std::string_view rest;  // behind the value
};

// At the first `=` that a value follows: `operator==()` has some of its own.
template <class Parse>
std::optional<Assignment> split_assignment(std::string_view text, Parse parse) {
  for (size_t at = text.find('='); at != std::string_view::npos; at = text.find('=', at + 1)) {
    const std::string_view behind = text.substr(at + 1);
    const size_t end = std::min(behind.find(' '), behind.size());
    const auto duration = parse(behind.substr(0, end));
    if (duration && !behind.empty())
      return Assignment{text.substr(0, at), behind.substr(0, end), *duration,
                        trim(behind.substr(end))};
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
      return usage_error("this is no delay", "--delay '" + text + "'",
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
                         "write `at visit N`, `from visit N` or `halving` behind the duration, and "
                         "`once SITE@THREAD` behind that");
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
      const auto nth = number_in(trim(text.substr(word.size())));
      delay.nth = nth.value_or(0);
      return nth.has_value();
    }
    return false;
  }

  Result<void> read_hold(const std::string& text) {
    const Error wrong = usage_error("this is no hold", "--hold '" + text + "'",
                                    "write SITE@THREAD until SITE@THREAD, then `x N` for the N-th "
                                    "time, `for DURATION` at most");
    std::string_view rest = text;
    const auto until = take_last(rest, " until ");
    if (!until) return wrong;
    auto hold = place(rest);
    if (!hold) return hold.error();
    hold->action = Intervention::Action::hold;
    hold->duration = longest_hold;
    std::string_view other = *until;
    if (const auto bound = take_last(other, " for ")) {
      const auto duration = parse_duration_with_unit(*bound);
      if (!duration) return duration.error();
      hold->duration = *duration;
    }
    if (const auto count = take_last(other, " x ")) {
      const auto number = number_in(*count);
      if (!number) return wrong;
      hold->count = *number;
    }
    const auto watched = watch(other);
    if (!watched) return watched.error();
    hold->until = *watched;
    all_.push_back({*hold, text});
    return {};
  }

  Result<void> read_set_time(const std::string& text) {
    const auto parts = split_assignment(text);
    if (!parts || !parts->rest.empty())
      return usage_error("this is no time value for a site", "--set-time '" + text + "'",
                         "write SITE@THREAD=DURATION, as in server.cc:90:poll=50ms");
    if (auto done = check_unit(*parts, "--set-time '" + text + "'"); !done) return done.error();
    return add_change(*parts, Intervention::Action::replace_time, text);
  }

  Result<void> read_scale_time(const std::string& text) {
    const auto parts = split_assignment(text, scaled_second);
    if (!parts || !parts->rest.empty())
      return usage_error("this is no factor for the time values of a site",
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

  // What holds and anchors refer to; one per place is enough.
  Result<size_t> watch(std::string_view text) {
    const std::string name(trim(text));
    for (size_t i = 0; i < all_.size(); ++i)
      if (all_[i].text == name && all_[i].intervention.action == Intervention::Action::watch)
        return i;
    auto watched = place(name);
    if (!watched) return watched.error();
    watched->action = Intervention::Action::watch;
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

Result<std::vector<NamedIntervention>> parse_interventions(const InjectWords& words,
                                                           const Trace& known) {
  return Parser(words, &known)();
}

Result<void> check_interventions(const InjectWords& words) {
  if (auto parsed = Parser(words, nullptr)(); !parsed) return parsed.error();
  return {};
}

}  // namespace unflake
