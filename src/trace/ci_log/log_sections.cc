#include "trace/ci_log/log_sections.h"

#include <optional>

#include "trace/ci_log/log_marks.h"

namespace unflake {
namespace {

using Kind = LogMark::Kind;
using State = LogSection::State;

class Split {
 public:
  explicit Split(std::span<const LogLine> lines) : lines_(lines) {}

  LogSections run() {
    for (size_t at = 0; at < lines_.size();) {
      const LogMark mark = mark_at(lines_.subspan(at));
      apply(mark, at);
      at += mark.lines;
    }
    close(lines_.size());
    cut_loose(lines_.size());
    return std::move(found_);
  }

 private:
  // What a test of GoogleTest prints may look like anything.
  bool is_output_of_a_test(const LogMark& mark) const {
    return open_ && open_->state == State::unfinished && mark.framework != Framework::gtest &&
           mark.kind != Kind::death;
  }

  void apply(const LogMark& mark, size_t at) {
    if (is_output_of_a_test(mark)) return;
    switch (mark.kind) {
      case Kind::none:
        return;
      case Kind::run:
        return open(State::unfinished, mark, at);
      case Kind::report:
        if (open_ && open_->framework == mark.framework && open_->test == mark.test) return;
        return open(State::failed, mark, at);
      case Kind::passed:
        found_.shows_passing_runs = true;
        return conclude(State::passed, mark, at);
      case Kind::failed:
        return is_open(mark) ? conclude(State::failed, mark, at) : claim_loose(mark, at);
      case Kind::skipped:
        return conclude(State::passed, mark, at);
      case Kind::named_failed:
        return is_open(mark) ? conclude(State::failed, mark, at) : name(mark, at);
      case Kind::all_passed:
        found_.shows_passing_runs = true;
        [[fallthrough]];
      case Kind::begin:
      case Kind::end:
        close(at);
        return cut_loose(at);
      case Kind::death:
        return die(mark.end, at);
    }
  }

  bool is_open(const LogMark& mark) const { return open_ && open_->test == mark.test; }

  void open(State state, const LogMark& mark, size_t at) {
    close(at);
    cut_loose(at);
    open_ = LogSection{state, mark.framework, mark.test, {}, {}};
  }

  void close(size_t end) {
    if (!open_) return;
    const bool died = open_->state == State::unfinished && died_at_;
    push(std::move(*open_), died ? *died_at_ + 1 : end);
    open_.reset();
    died_at_.reset();
  }

  void conclude(State state, const LogMark& mark, size_t at) {
    if (!is_open(mark)) return;
    open_->state = state;
    close(at + 1);
  }

  // --gtest_brief says nothing of a test before it failed.
  void claim_loose(const LogMark& mark, size_t at) {
    close(at);
    push({State::failed, mark.framework, mark.test, {}, {}}, at + 1);
  }

  void name(const LogMark& mark, size_t at) {
    close(at);
    cut_loose(at);
    push({State::named, mark.framework, mark.test, {}, {}}, at + 1);
  }

  // Whether it was the program that died, or the test that said so, shows when the test ends.
  void die(const LoggedEnd& end, size_t at) {
    if (open_ && open_->state == State::unfinished) {
      if (died_at_) return;
      open_->end = end;
      died_at_ = at;
    } else if (found_.death.kind == LoggedEnd::Kind::unknown) {
      found_.death = end;
    }
  }

  void cut_loose(size_t end) {
    if (start_ < end) push({}, end);
  }

  void push(LogSection section, size_t end) {
    section.lines = lines_.subspan(start_, end - start_);
    found_.all.push_back(std::move(section));
    start_ = end;
  }

  std::span<const LogLine> lines_;
  size_t start_ = 0;  // of the section that is being read
  std::optional<LogSection> open_;
  std::optional<size_t> died_at_;  // while the open test ran
  LogSections found_;
};

}  // namespace

LogSections sections_in(std::span<const LogLine> lines) {
  return Split(lines).run();
}

}  // namespace unflake
