// What the history costs: a query on a large database, and recording next to the cheapest real run.
// Exits with 1 when a bound is missed. UNFLAKE_BENCH_RUNS sets the size of the database.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "measuring.h"
#include "store/sqlite/database.h"
#include "store/sqlite/sqlite_parts.h"
#include "store/store.h"

namespace unflake {
namespace {

constexpr int64_t test_count = 5000;
constexpr int64_t first_start_us = 1'700'000'000'000'000;

bool all_bounds_met = true;

void report(const std::string& what, double value, const std::string& unit, double bound) {
  const bool met = value <= bound;
  all_bounds_met = all_bounds_met && met;
  fmt::print("{:<58} {:>9.2f} {:<4} <= {:>6.1f}  {}\n", what, value, unit, bound,
             met ? "ok" : "MISSED");
}

double median_seconds(int times, const std::function<void()>& work) {
  std::vector<double> all;
  for (int i = 0; i < times; ++i) all.push_back(seconds(work));
  std::nth_element(all.begin(), all.begin() + times / 2, all.end());
  return all[static_cast<size_t>(times) / 2];
}

// The first test has three tenths of all runs, the others share the rest evenly.
int64_t runs_of_test(int64_t test, int64_t all) {
  const int64_t huge = all * 3 / 10;
  return test == 1 ? huge : (all - huge) / (test_count - 1);
}

// Writes runs in the order of their key, with their totals: what years of sessions leave behind.
class Generator {
 public:
  Generator(const std::string& path, int64_t runs)
      : database_(open_history(path, std::chrono::seconds(30))), runs_(runs) {}

  void generate() {
    Transaction transaction(*database_);
    add_names();
    Statement insert(*database_, "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
    for (int64_t test = 1; test <= test_count; ++test) add_runs(insert, test);
    transaction.commit();
    database_->execute("PRAGMA wal_checkpoint(TRUNCATE)");
  }

 private:
  void add_names() {
    database_->execute(
        "INSERT INTO sessions (id, uuid, started_us, commit_id, branch, dirty, machine, "
        "unflake_version, command_line) VALUES (1, 'bench', 0, 'c0ffee', 'main', 0, 'm', '0', '');"
        "INSERT INTO placed_sessions VALUES (1, 0, 4000000000000000, 1);"
        "INSERT INTO signatures VALUES (1, 'aaaa', 1, 'a.cc', 1, 'f', 'a == b', 'no');");
    Statement add(*database_, "INSERT INTO tests VALUES (?, 0, 'suite', ?)");
    for (int64_t test = 1; test <= test_count; ++test) add.run(test, fmt::format("Case.{}", test));
  }

  void add_runs(Statement& insert, int64_t test) {
    const int64_t count = runs_of_test(test, runs_);
    std::lognormal_distribution<double> duration(8.0 + static_cast<double>(test % 7), 0.4);
    std::bernoulli_distribution fails(static_cast<double>(test % 50) / 5000);
    Totals totals;
    for (int64_t i = 0; i < count; ++i) {
      const bool failing = fails(random_);
      const RunRow run{.test = test,
                       .started_us = first_start_us + i * 1'000'000 + test,
                       .session = 1,
                       .attempt = 1,
                       .duration_us = static_cast<int64_t>(duration(random_)),
                       .outcome = failing,
                       .signature = failing,
                       .plan = 0};
      insert.run(run.test, run.started_us, run.session, run.attempt, run.duration_us, run.outcome,
                 run.signature, run.plan);
      totals.add(run);
    }
    TotalsTables(*database_).add(totals);
  }

  std::unique_ptr<Database> database_;
  int64_t runs_;
  std::mt19937_64 random_{42};
};

void bench_queries(const std::string& self, const std::string& path) {
  const auto as_process = [&](const std::string& name) {
    return median_seconds(15, [&] { spawn_and_wait({self, "--query", path, name}); }) * 1e3;
  };
  report("summarise_test of a small test, with process start", as_process("Case.77"), "ms", 50);
  report("summarise_test of a huge test, with process start", as_process("Case.1"), "ms", 50);
  const auto store = need(open_store({path}));
  report("summarise(*) of the 20 least reliable tests",
         median_seconds(15, [&] { need(store->summarise("*", 20)); }) * 1e3, "ms", 100);
  report("summarise(*) of all 5,000 tests",
         median_seconds(5, [&] { need(store->summarise("*", SIZE_MAX)); }) * 1e3, "ms", 250);
  report("recent_runs of a huge test",
         median_seconds(15,
                        [&] {
                          need(store->recent_runs({"suite", "Case.1"}, 100));
                        }) *
             1e3,
         "ms", 50);
}

struct RecordingCost {
  double record = 0, run = 0, slowest = 0;  // seconds
};

// Interleaved, so that both see the same machine: a batch of records, then a real run.
RecordingCost measure_recording(Store& store, int64_t records, int64_t tests, double failing) {
  const SessionId session = need(store.begin_session({}));
  std::mt19937_64 random(7);
  std::bernoulli_distribution fails(failing);
  RecordingCost cost;
  int64_t real_runs = 0;
  for (int64_t i = 0; i < records; ++i) {
    RunRecord run;
    run.test = {"suite", fmt::format("Case.{}", 1 + i % tests)};
    run.attempt = static_cast<int>(1 + i / tests);
    run.started = std::chrono::system_clock::now();
    run.duration = Duration(1000 + random() % 4000);
    if (fails(random)) {
      run.outcome = OutcomeKind::fail;
      run.signature = "aaaa";
      run.failure = Failure{};
      run.output = std::string(2000, 'x');
    }
    const double took = seconds([&] { need(store.record(session, run)); });
    cost.record += took / static_cast<double>(records);
    cost.slowest = std::max(cost.slowest, took);
    if (i % 100 == 0) {
      cost.run += seconds([] { spawn_and_wait({"/bin/true"}); });
      ++real_runs;
    }
  }
  cost.run /= static_cast<double>(real_runs);
  const double ending = seconds([&] { need(store.end_session(session)); });
  cost.record += ending / static_cast<double>(records);
  return cost;
}

void bench_recording(Store& store, int64_t tests, double failing, const std::string& what) {
  const RecordingCost cost = measure_recording(store, 100'000, tests, failing);
  fmt::print("{}: {:.1f} us, slowest {:.1f} ms; /bin/true: {:.0f} us\n", what, cost.record * 1e6,
             cost.slowest * 1e3, cost.run * 1e6);
  report("  record() as a share of /bin/true", 100 * cost.record / cost.run, "%", 5);
}

void bench_recording(const std::string& path) {
  const auto store = need(open_store({path}));
  bench_recording(*store, 1, 0.001, "100,000 runs of one test");
  bench_recording(*store, 200, 0.001, "100,000 runs of 200 tests");
  bench_recording(*store, 5000, 0.001, "100,000 runs of 5,000 tests");
  bench_recording(*store, 50, 1, "100,000 failing runs of 50 tests, each with 2 kB of output");
}

int query(const std::string& path, const std::string& name) {
  const auto store = need(open_store({path}));
  return need(store->summarise_test({"suite", name})).has_value() ? 0 : 1;
}

int bench(const std::string& self) {
  const char* wanted = std::getenv("UNFLAKE_BENCH_RUNS");
  const int64_t runs = wanted != nullptr ? std::atoll(wanted) : 10'000'000;
  const std::string folder = make_temporary_folder();
  const std::string path = folder + "/history.db";
  const double took = seconds([&] { Generator(path, runs).generate(); });
  fmt::print("{} runs of {} tests, one with {}: {:.0f} MB, made in {:.1f} s\n", runs, test_count,
             runs_of_test(1, runs), static_cast<double>(std::filesystem::file_size(path)) / 1e6,
             took);
  bench_queries(self, path);
  bench_recording(path);
  bench_queries(self, path);
  std::filesystem::remove_all(folder);
  return all_bounds_met ? 0 : 1;
}

}  // namespace
}  // namespace unflake

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--query") return unflake::query(argv[2], argv[3]);
  return unflake::bench("/proc/self/exe");
}
