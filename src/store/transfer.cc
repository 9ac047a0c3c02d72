#include "store/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#include "util/json.h"

namespace unflake {
namespace {

class Export {
 public:
  Export(Store& store, TimePoint since, const TakeLine& take)
      : store_(store), since_(since), take_(take) {}

  Result<ExportCount> operator()(const std::string& project) {
    if (auto written = write(export_header(project)); !written) return written.error();
    if (auto written = sessions(); !written) return written.error();
    if (auto written = steps(); !written) return written.error();
    if (auto written = causes(); !written) return written.error();
    if (auto written = write(export_end(count_.sessions, count_.runs)); !written)
      return written.error();
    return count_;
  }

 private:
  Result<void> sessions() {
    bool wanted = false;
    const Store::Visitor visitor{
        .session =
            [&](const SessionRecord& session) {
              wanted = session.started >= since_;
              count_.sessions += wanted;
              return wanted ? write(to_json(session)) : Result<void>();
            },
        .run =
            [&](const RunRecord& run) {
              count_.runs += wanted;
              return wanted ? write(to_json(run)) : Result<void>();
            },
        .suppression =
            [&](const TestId& test, const std::string& signature) {
              return wanted ? write(to_json(SuppressedFailure{test, signature})) : Result<void>();
            }};
    return store_.visit(visitor);
  }

  Result<void> steps() {
    const auto steps = store_.lifecycle().steps({since_, TimePoint::max()});
    if (!steps) return steps.error();
    for (const LifecycleStep& step : *steps) {
      ++count_.steps;
      if (auto written = write(to_json(step)); !written) return written;
    }
    return {};
  }

  Result<void> causes() {
    const auto causes = store_.lifecycle().causes();
    if (!causes) return causes.error();
    for (const CauseRecord& cause : *causes) {
      if (cause.opened < since_) continue;
      ++count_.causes;
      if (auto written = write(to_json(cause)); !written) return written;
    }
    return {};
  }

  Result<void> write(const nlohmann::json& line) {
    text_ = json_text(line);
    text_ += '\n';
    return take_(text_);
  }

  Store& store_;
  TimePoint since_;
  const TakeLine& take_;
  std::string text_;
  ExportCount count_;
};

}  // namespace

Result<ExportCount> export_history(Store& store, const std::string& project, TimePoint since,
                                   const TakeLine& take) {
  return Export(store, since, take)(project);
}

namespace {

// Several times what a run with its bounded output and failure takes.
constexpr size_t longest_line = 4 * 1024 * 1024;
constexpr size_t most_bad_lines = 100;
constexpr size_t batch_runs = 5'000;
constexpr size_t batch_bytes = 8 * 1024 * 1024;

// Lines of a file that nobody vouches for: any bytes, any length.
class LineReader {
 public:
  explicit LineReader(const std::string& path)
      : file_(path, std::ios::binary), buffer_(longest_line) {}

  bool is_open() const { return file_.is_open(); }

  bool next() {
    file_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    if (file_.eof() && file_.gcount() == 0) return false;
    ++number_;
    bytes_ += file_.gcount();
    too_long_ = file_.fail() && !file_.eof() && !file_.bad();
    const auto got = static_cast<size_t>(file_.gcount());
    text_ = std::string_view(buffer_.data(), file_.good() ? got - 1 : got);
    if (!too_long_) return !file_.bad();
    file_.clear();
    file_.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    bytes_ += file_.gcount();
    return true;
  }

  std::string_view text() const { return text_; }
  bool too_long() const { return too_long_; }
  int64_t number() const { return number_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::ifstream file_;
  std::vector<char> buffer_;
  std::string_view text_;
  bool too_long_ = false;
  int64_t number_ = 0, bytes_ = 0;
};

Error newer_format() {
  return usage_error("the file was written by a newer unflake", "",
                     "import it with that version, or a later one");
}

class Import {
 public:
  Import(Store& store, const ImportProgress& progress) : store_(store), progress_(progress) {}

  Result<ImportCount> from(const std::string& path) {
    LineReader lines(path);
    if (!lines.is_open())
      return usage_error(fmt::format("cannot read the file: {}", std::strerror(errno)), path);
    while (lines.next()) {
      const Result<void> taken = take(lines);
      if (!taken) return taken.error();
    }
    if (const Result<void> ended = end(lines); !ended) return ended.error();
    if (session_ || count_.cut_short || has_end_) return count_;
    return usage_error("the file holds neither spilled nor exported runs", path,
                       "import a file that unflake named when it could not write the history, or "
                       "one that `unflake history export` wrote");
  }

 private:
  // An error is the store's; what is wrong with the line is noted and the import goes on.
  Result<void> take(const LineReader& line) {
    try {
      if (line.too_long()) return note_bad(line, "the line is too long");
      return take(parse_json_or_throw(line.text()), line);
    } catch (const nlohmann::json::exception& exception) {
      return note_bad(line, exception.what());
    }
  }

  Result<void> take(const nlohmann::json& value, const LineReader& line) {
    switch (kind_of(value)) {
      case SpillLine::session:
        return begin(session_from(value), line);
      case SpillLine::run:
        return take(run_from(value), line);
      case SpillLine::suppressed:
        return take(suppressed_from(value), line);
      case SpillLine::step:
        return counted(store_.lifecycle().note(step_from(value)), count_.steps);
      case SpillLine::cause:
        return take(cause_from(value));
      case SpillLine::header:
        count_.cut_short = true;
        return {};
      case SpillLine::end:
        count_.cut_short = false;
        has_end_ = true;
        return {};
      case SpillLine::newer:
        break;
    }
    return newer_format();
  }

  // A session that has ended is looked at together with the others of its build.
  Result<void> end(const LineReader& line) {
    const Result<void> flushed = flush(line);
    return flushed && session_ ? store_.end_session(*session_) : flushed;
  }

  Result<void> begin(const SessionRecord& session, const LineReader& line) {
    if (const Result<void> ended = end(line); !ended) return ended;
    const Result<SessionId> begun = store_.begin_session(session);
    if (!begun) return begun.error();
    session_ = *begun;
    ++count_.sessions;
    return {};
  }

  Result<void> take(RunRecord run, const LineReader& line) {
    if (!session_) return note_bad(line, "a run before any session");
    bytes_ += run.output.size();
    runs_.push_back(std::move(run));
    if (runs_.size() < batch_runs && bytes_ < batch_bytes) return {};
    return flush(line);
  }

  Result<void> take(const SuppressedFailure& failure, const LineReader& line) {
    if (!session_) return note_bad(line, "a suppressed failure before any session");
    if (const Result<void> flushed = flush(line); !flushed) return flushed;
    return store_.suppress(*session_, failure.test, failure.signature);
  }

  // Ids are of one store only: a cause is known by when it was opened and what it is about. One
  // that is there already stays as it is, for it may have been closed since.
  Result<void> take(const CauseRecord& cause) {
    if (!known_causes_) {
      auto causes = store_.lifecycle().causes();
      if (!causes) return causes.error();
      known_causes_ = std::move(*causes);
    }
    const auto is_it = [&](const CauseRecord& known) {
      return known.opened == cause.opened &&
             (known.title == cause.title ||
              std::ranges::any_of(known.signatures, [&](const std::string& signature) {
                return std::ranges::find(cause.signatures, signature) != cause.signatures.end();
              }));
    };
    ++count_.causes;
    if (std::ranges::any_of(*known_causes_, is_it)) return {};
    const auto saved = store_.lifecycle().save_cause(cause);
    if (!saved) return saved.error();
    known_causes_->push_back(cause);
    return {};
  }

  Result<void> flush(const LineReader& line) {
    if (runs_.empty()) return {};
    const Result<void> recorded = store_.record_all(*session_, runs_);
    if (!recorded) return recorded;
    count_.runs += static_cast<int64_t>(runs_.size());
    runs_.clear();
    bytes_ = 0;
    if (progress_) progress_(count_, line.bytes());
    return {};
  }

  static Result<void> counted(Result<void> done, int64_t& count) {
    count += done.has_value();
    return done;
  }

  Result<void> note_bad(const LineReader& line, std::string why) {
    if (++count_.bad_lines <= static_cast<int64_t>(most_bad_lines))
      count_.first_bad.push_back({line.number(), std::move(why)});
    return {};
  }

  Store& store_;
  const ImportProgress& progress_;
  std::optional<SessionId> session_;
  std::vector<RunRecord> runs_;
  size_t bytes_ = 0;
  std::optional<std::vector<CauseRecord>> known_causes_;
  bool has_end_ = false;
  ImportCount count_;
};

}  // namespace

Result<ImportCount> import_history(Store& store, const std::string& path,
                                   const ImportProgress& progress) {
  return Import(store, progress).from(path);
}

}  // namespace unflake
