// How fast reports are taken in, and in how much memory. Exits with 1 when a bound is missed.
// UNFLAKE_BENCH_REPORT_MB sets the size of the largest report.

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>

#include "ingest/ingest.h"
#include "measuring.h"

namespace unflake {
namespace {

constexpr int64_t case_count = 1'000'000;
constexpr int64_t tests = 20'000;

// Writes <testcase> elements as GoogleTest does, one failure in a hundred, without holding them.
class GeneratedReport {
 public:
  explicit GeneratedReport(std::function<bool(int64_t cases, uint64_t bytes)> is_over)
      : is_over_(std::move(is_over)) {}

  Result<size_t> operator()(std::span<char> into) {
    while (rest_.size() < into.size() && !ended_) generate();
    const size_t count = rest_.copy(into.data(), into.size());
    rest_.erase(0, count);
    bytes_ += count;
    return count;
  }

 private:
  void generate() {
    if (cases_ == 0)
      rest_ +=
          "<testsuites name=\"AllTests\"><testsuite name=\"Suite\" "
          "timestamp=\"2026-03-01T12:00:00\">\n";
    const bool fails = cases_ % 100 == 7;
    rest_ += fmt::format(
        "<testcase name=\"Does_thing_{}\" file=\"/src/thing_test.cc\" line=\"12\" "
        "status=\"run\" result=\"completed\" time=\"0.012\" classname=\"Suite{}\"{}>",
        cases_ % tests, cases_ % tests / 100, fails ? "" : " /");
    if (fails)
      rest_ +=
          "<failure message=\"x\" type=\"\"><![CDATA[/src/thing_test.cc:14\nExpected equality "
          "of these values:\n  a\n    Which is: 1\n  b\n    Which is: 2]]></failure></testcase>";
    rest_ += "\n";
    ended_ = is_over_(++cases_, bytes_ + rest_.size());
    if (ended_) rest_ += "</testsuite></testsuites>\n";
  }

  std::function<bool(int64_t, uint64_t)> is_over_;
  std::string rest_;
  int64_t cases_ = 0;
  uint64_t bytes_ = 0;
  bool ended_ = false;
};

bool all_bounds_met = true;

void report(const std::string& what, double value, const std::string& unit, bool met,
            const std::string& bound) {
  all_bounds_met = all_bounds_met && met;
  fmt::print("{:<52} {:>11.0f} {:<10} {:<14} {}\n", what, value, unit, bound,
             met ? "ok" : "MISSED");
}

// Of this process alone: reading waits for nothing.
double processor_seconds(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

GeneratedReport cases(int64_t count) {
  return GeneratedReport([count](int64_t done, uint64_t) { return done == count; });
}

void measure_parser() {
  std::string text;
  GeneratedReport generated = cases(case_count);
  std::string piece(1 << 20, '\0');
  while (const size_t count = *generated(piece)) text.append(piece, 0, count);
  const ReportSource source{"report", {}, {}};
  const double time = processor_seconds([&] {
    const auto read = read_results(bytes_of_text(text), source,
                                   [](std::span<RunRecord>) { return Result<void>(); });
    if (!read || read->counts.runs != case_count) give_up("not all was read");
  });
  const double rate = case_count / time;
  report("reading alone, 1 M cases", rate, "results/s", rate >= 500'000, ">= 500000");
}

void measure_store(const std::string& folder) {
  const auto file = ReportFile::copy_of(cases(case_count), "report");
  if (!file) give_up(to_string(file.error()));
  const auto store = open_store({folder + "/history.db", ""});
  if (!store) give_up(to_string(store.error()));
  double processor = 0;
  const double time = seconds([&] {
    processor = processor_seconds([&] {
      const auto taken = ingest(*file, {}, **store);
      if (!taken) give_up(to_string(taken.error()));
    });
  });
  fmt::print("{:<52} {:>11.0f} results/s\n", "  of this by processor time", case_count / processor);
  const double rate = case_count / time;
  report("into SQLite, 1 M cases", rate, "results/s", rate >= 100'000, ">= 100000");
}

// In a process of its own, so that the peak is that of one report.
double peak_megabytes(uint64_t bytes) {
  const pid_t child = ::fork();
  if (child == 0) {
    GeneratedReport generated([bytes](int64_t, uint64_t written) { return written > bytes; });
    const auto read = read_results(generated, {"report", {}, {}},
                                   [](std::span<RunRecord>) { return Result<void>(); });
    ::_exit(read && !read->refused ? 0 : 1);
  }
  int status = 0;
  struct rusage usage {};
  ::wait4(child, &status, 0, &usage);
  if (status != 0) give_up("the report was not read");
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void measure_memory() {
  const char* size = std::getenv("UNFLAKE_BENCH_REPORT_MB");
  const uint64_t largest = size ? std::strtoull(size, nullptr, 10) : 1024;
  for (const uint64_t megabytes : {uint64_t{100}, largest}) {
    const double peak = peak_megabytes(megabytes << 20);
    report(fmt::format("memory for a report of {} MB", megabytes), peak, "MB", peak < 64, "< 64");
  }
}

int run() {
  const std::string folder = make_temporary_folder();
  measure_memory();
  measure_parser();
  measure_store(folder);
  std::filesystem::remove_all(folder);
  return all_bounds_met ? 0 : 1;
}

}  // namespace
}  // namespace unflake

int main() {
  return unflake::run();
}
