#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/outcome.h"
#include "model/test.h"
#include "store/store.h"
#include "store/values.h"
#include "util/files.h"
#include "util/result.h"
#include "util/text.h"
#include "util/time.h"

namespace unflake {

// Fills the front of the span and returns how much; 0 is the end.
using ByteSource = std::function<Result<size_t>(std::span<char> into)>;

// The descriptor stays open and the caller's; `name` is for messages.
ByteSource bytes_of_descriptor(int fd, std::string name);

// The text has to outlive the source.
ByteSource bytes_of_text(std::string_view text);

// SHA-256, a piece at a time.
class ContentHash {
 public:
  ContentHash();
  void add(std::string_view bytes);
  // A text and where it ends, so that two neighbours cannot be confused with others.
  void add_field(std::string_view text);
  std::string hex() &&;

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

// A report that can be read more than once: its contents have to be known by their hash before the
// first run is recorded.
class ReportFile {
 public:
  static Result<ReportFile> open(const std::string& path);
  // For what can be read only once, such as a pipe: a copy.
  static Result<ReportFile> copy_of(const ByteSource& source, const std::string& name);

  const std::string& name() const { return name_; }
  const std::string& hash() const { return hash_; }  // SHA-256 of the contents
  TimePoint modified() const { return modified_; }
  uint64_t size() const { return size_; }
  // From the beginning. One at a time.
  Result<ByteSource> bytes() const;

 private:
  friend class ReportReceiver;
  Result<void> inspect();
  UniqueFd fd_;
  std::string name_, hash_;
  TimePoint modified_;
  uint64_t size_ = 0;
};

// Assembles a report that arrives in pieces, in the folder for temporary files. The file has no
// name there: it goes away with whoever holds it.
class ReportReceiver {
 public:
  explicit ReportReceiver(std::string name, uint64_t most_bytes = UINT64_MAX);
  Result<void> add(std::string_view bytes);
  ReportFile file() &&;

 private:
  Result<void> make_file();
  ReportFile file_;
  ContentHash hash_;
  const uint64_t most_bytes_;
};

// Copies UTF-8 and replaces what XML cannot hold by U+FFFD: bytes that are not UTF-8, control
// characters, references to such. One bad byte in a test's output must not lose the whole report.
class TextCleaner {
 public:
  void clean(std::string_view bytes, bool is_last, std::string& out);

 private:
  // How much of the text was handled; what needs more bytes stays.
  size_t clean_some(std::string_view text, bool is_last, std::string& out);
  std::string held_;  // the beginning of a character or a reference
};

// A document as clean UTF-8, whatever it was written in: UTF-8, UTF-16 with a byte order mark,
// ISO-8859-1 or windows-1252 by its declaration.
class CleanText {
 public:
  explicit CleanText(ByteSource source);

  // The next piece, empty at the end. It is valid until the next call.
  Result<std::string_view> next();

 private:
  enum class Encoding { utf8, utf16_le, utf16_be, latin1, windows1252 };
  Result<size_t> fill();
  Result<void> recognise(size_t size);
  std::string_view decode(std::string_view bytes, bool is_last);

  ByteSource source_;
  std::string raw_, decoded_, clean_, odd_byte_;
  Encoding encoding_ = Encoding::utf8;
  char32_t lead_ = 0;  // of a surrogate pair
  size_t skip_ = 0;    // the byte order mark
  bool started_ = false, ended_ = false;
  TextCleaner cleaner_;
};

class XmlAttributes {
 public:
  explicit XmlAttributes(const char* const* pairs) : pairs_(pairs) {}

  // None: the element does not have it.
  std::optional<std::string_view> find(std::string_view name) const;
  std::string_view value(std::string_view name) const { return find(name).value_or(""); }

 private:
  const char* const* pairs_;
};

// What a document consists of, as it is read. Views are valid during the call.
class XmlHandler {
 public:
  virtual ~XmlHandler() = default;
  virtual void start(std::string_view element, const XmlAttributes& attributes) = 0;
  virtual void end(std::string_view element) = 0;
  virtual void text(std::string_view text) = 0;
  // Reading ends when there is one.
  virtual const std::optional<Error>& failed() const = 0;
};

// Reads the documents of a source one after another, in memory that does not depend on its
// size. An error says which line is to blame; what came before it has been handled. Nothing but
// the source is read: no entity is declared, none is loaded.
Result<void> read_xml(ByteSource source, const std::string& name, XmlHandler& handler);

// A duration as a report has it: seconds, "0.25", "1,234.5", "0,25". What makes no sense as the
// duration of a test becomes the nearest that does, and is odd. No text is a time that is not
// known.
struct ReportedTime {
  Duration duration = unknown_duration;
  bool is_odd = false;
};
ReportedTime parse_seconds(std::string_view text);

// ISO 8601, with a zone or in UTC. None: it is nothing like it, or a year that no test ran in.
std::optional<TimePoint> parse_report_timestamp(std::string_view text);

// Seconds since 1970, as CTest writes it.
std::optional<TimePoint> parse_epoch_seconds(std::string_view text);

// Text of any length, of which the beginning and the end are kept.
class KeptText {
 public:
  KeptText() : capture_(head_bytes, tail_bytes) {}

  void append(std::string_view text) { capture_.append(text); }
  bool empty() const { return capture_.total() == 0; }
  void clear();
  std::string text() const;

 private:
  static constexpr size_t head_bytes = 16 * 1024, tail_bytes = 44 * 1024;
  BoundedCapture capture_;
};

// <failure>, <error>, and what several tools write for retried runs.
struct ReportedFailure {
  enum class Run {
    last,    // of the case's own run: <failure>, <error>
    before,  // a separate run before that: <flakyFailure>, <flakyError>, <rerun>
    after,   // a separate run after it: <rerunFailure>, <rerunError>
  };
  Run run = Run::last;
  bool is_error = false;
  std::string message, type;
  KeptText text, output;
  std::optional<ReportedTime> time;
  std::optional<TimePoint> timestamp;
};

struct ReportedSuite {
  std::string name;
  std::optional<TimePoint> timestamp;
  bool has_id = false;  // Boost.Test numbers its only one
  bool of_catch2 = false, of_doctest = false;
};

// One <testcase>, or one <Test> of CTest's, as it is in the report.
struct ReportedCase {
  enum class Status { none, run, failed, not_run };  // as an attribute says, without an element
  std::string classname, name;
  std::string full_name;  // in what unflake wrote, where class and name do not say it
  Status status = Status::none;
  ReportedTime time;
  std::optional<TimePoint> timestamp;
  bool has_result = false, has_assertions = false, of_ctest = false;
  bool is_skipped = false;
  std::string why_not_run;            // CTest's words for it
  int64_t runs = 0, failed_runs = 0;  // of a case of unflake's that covers several
  std::vector<ReportedFailure> failures;
  KeptText output;

  void clear();
};

// Where a case is. `suites` is from the outside inwards.
struct CaseContext {
  std::string root_name;
  std::vector<ReportedSuite> suites;
};

// Assembles the cases of JUnit's and CTest's XML, and drops each once it was taken.
class CaseHandler : public XmlHandler {
 public:
  using Take = std::function<Result<void>(const ReportedCase&, const CaseContext&)>;
  explicit CaseHandler(Take take) : take_(std::move(take)) {}

  void start(std::string_view element, const XmlAttributes& attributes) override;
  void end(std::string_view element) override;
  void text(std::string_view text) override;
  const std::optional<Error>& failed() const override { return failed_; }

  bool saw_report() const { return saw_report_; }  // an element that only test reports have
  // Texts that CTest has compressed are left out.
  int64_t packed_outputs() const { return packed_outputs_; }

 private:
  void start_suite(const XmlAttributes& attributes);
  void start_case(const XmlAttributes& attributes);
  void start_in_case(std::string_view element, const XmlAttributes& attributes);
  void start_failure(ReportedFailure::Run run, bool is_error, const XmlAttributes& attributes);
  void read_property(const XmlAttributes& attributes);
  void start_ctest(std::string_view element, const XmlAttributes& attributes);
  void start_ctest_value(const XmlAttributes& attributes);
  void end_ctest(std::string_view element);
  void take_ctest_measurement();
  void take_case();

  Take take_;
  std::optional<Error> failed_;
  CaseContext context_;
  ReportedCase case_;
  bool in_case_ = false, in_ctest_case_ = false;
  bool saw_report_ = false, has_site_ = false;
  int64_t packed_outputs_ = 0;
  std::vector<KeptText*> texts_;  // of each open element, where its text goes
  std::string short_text_;        // of CTest's small elements
  bool wants_short_text_ = false;
  std::string measurement_;  // the name of the one that is open
};

// Whose words a case is written in, as far as that changes how it is read.
enum class CaseDialect { other, unflake, gtest, catch2, doctest, boost_test, ctest, bazel };

CaseDialect dialect_of(const ReportedCase& reported, const CaseContext& context);

// What the report's surroundings say about the program whose tests it is about.
struct ReportOrigin {
  std::string path;           // of the file, as it was given; empty: there is none
  std::string target;         // as the user says; empty: by the rules
  std::string cmake_project;  // of the build folder around the file, when there is one
};

// The same for the same test in every build, and the same as `unflake run` gives it where the
// report says enough. docs/formats.md has the rules.
// `file_target` is what target_from_path() makes of the origin's path.
TestId identity_of(const ReportedCase& reported, const CaseContext& context, CaseDialect dialect,
                   const ReportOrigin& origin, std::string_view file_target);

// The file's name where it says what was tested: "server_test.xml" does, "results.xml" does not.
std::string target_from_path(const std::string& path);

// The runs that a case describes, in their order, without test and start: one, or one for each time
// that it was tried.
void runs_of_case(const ReportedCase& reported, CaseDialect dialect, std::vector<RunRecord>& runs);

// What a <failure> or <error> says that no framework for native code wrote: pytest, JUnit, Rust,
// Go and everybody else. The place is the last one in the test's own code that the text shows. Some
// reports of Go's have its words only in the output of the case.
Failure read_language_failure(const ReportedFailure& reported, std::string_view classname,
                              std::string_view output);

// The runner ended the test because it took too long.
bool tells_timeout(const ReportedFailure& reported);

}  // namespace unflake
