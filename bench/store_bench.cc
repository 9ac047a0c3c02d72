// What a store costs: trials of a search, taking in results, alone and with eight writers, and
// every question to it, as a command asks it, with the start of the process; time on the processor
// is in parentheses. Exits with 1 when a bound is missed.
//   store_bench                fills a file of its own; UNFLAKE_BENCH_RUNS sets its size
//   store_bench --postgres     fills a database of a server of its own, which waits for the disk
//   store_bench URL            asks a history that generate_history has filled
//   store_bench URL --ingest   and measures taking in more

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "generated_history.h"
#include "measuring.h"
#include "support/postgres_server.h"

namespace unflake {
namespace {

constexpr int times = 5;
constexpr int writers = 8;
constexpr std::chrono::hours month{24 * 30};

bool all_bounds_met = true;

void report(const std::string& what, double value, const std::string& unit, bool met,
            const std::string& bound) {
  all_bounds_met = all_bounds_met && met;
  fmt::print("{:<52} {:>10.0f} {:<10} {:>12}  {}\n", what, value, unit, bound,
             met ? "ok" : "MISSED");
}

// An hour after the newest run.
TimePoint end_of(Store& store) {
  const auto newest = need(store.recent_runs(GeneratedHistory::busy_test(), 1));
  return newest.empty() ? GeneratedHistory::usual_start : newest[0].started + std::chrono::hours(1);
}

// Sessions that the history does not know yet.
GeneratedHistory more(Store& store, int64_t runs) {
  const TimePoint start = end_of(store);
  return GeneratedHistory(runs, static_cast<uint64_t>(start.time_since_epoch().count()), start);
}

Window last_month(Store& store) {
  return {end_of(store) - month, end_of(store)};
}

using Question = std::function<void(Store&)>;

const std::map<std::string, Question>& questions() {
  static const std::map<std::string, Question> all = {
      {"summarise(*, 50)", [](Store& s) { need(s.summarise("*", 50)); }},
      {"summarise(part_7*, 50)", [](Store& s) { need(s.summarise("part_7*", 50)); }},
      {"summarise_test, ordinary",
       [](Store& s) { need(s.summarise_test(GeneratedHistory::test(777))); }},
      {"summarise_test, flaky",
       [](Store& s) { need(s.summarise_test(GeneratedHistory::flaky_test())); }},
      {"summarise_test, run very often",
       [](Store& s) { need(s.summarise_test(GeneratedHistory::busy_test())); }},
      {"recent_runs, 100",
       [](Store& s) { need(s.recent_runs(GeneratedHistory::busy_test(), 100)); }},
      {"count_runs, flaky, a month",
       [](Store& s) { need(s.count_runs(GeneratedHistory::flaky_test(), "", last_month(s))); }},
      {"count_runs, run very often, ever",
       [](Store& s) { need(s.count_runs(GeneratedHistory::busy_test(), "", {})); }},
      {"flaky_failures, a month",
       [](Store& s) { need(s.lifecycle().flaky_failures(last_month(s), 50)); }},
      {"flaky_failures, ever", [](Store& s) { need(s.lifecycle().flaky_failures({}, 50)); }},
      {"prevalence, a month", [](Store& s) { need(s.lifecycle().prevalence(last_month(s))); }},
      {"prevalence, ever", [](Store& s) { need(s.lifecycle().prevalence({})); }},
      {"lifecycle", [](Store& s) { need(s.lifecycle().steps({})); }},
      {"causes", [](Store& s) { need(s.lifecycle().causes()); }},
  };
  return all;
}

double cpu_seconds(int whose) {
  rusage usage{};
  ::getrusage(whose, &usage);
  const auto seconds_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

void bench_questions(const StoreAddress& address) {
  const double bound = is_postgres(address) ? 200 : 500;
  for (const auto& [name, question] : questions()) {
    std::vector<double> all;
    const double cpu = cpu_seconds(RUSAGE_CHILDREN);
    for (int i = 0; i < times; ++i)
      all.push_back(seconds([&] {
        spawn_and_wait({"/proc/self/exe", "--ask", address.url, name});
      }));
    std::ranges::sort(all);
    const double median = all[times / 2] * 1e3;
    const double on_cpu = (cpu_seconds(RUSAGE_CHILDREN) - cpu) / times * 1e3;
    report(name, median, fmt::format("ms ({:.0f})", on_cpu), median <= bound,
           fmt::format("<= {:.0f}", bound));
  }
}

// On a machine that does other work, the time on the processor tells more than the clock.
void bench_ingest(const StoreAddress& address, int64_t runs, const std::string& what) {
  const double bound = is_postgres(address) ? 30'000 : 100'000;
  const auto store = need(open_store(address));
  const GeneratedHistory history = more(*store, runs);
  int64_t recorded = 0;
  const double cpu = cpu_seconds(RUSAGE_SELF);
  const double took = seconds([&] { recorded = need(record_generated(*store, history)); });
  const auto rate = static_cast<double>(recorded) / took;
  report(what, rate, "results/s", rate >= bound, fmt::format(">= {:.0f}", bound));
  fmt::print("  {:.1f} us of processor time for each\n",
             (cpu_seconds(RUSAGE_SELF) - cpu) / static_cast<double>(recorded) * 1e6);
}

void bench_writers(const StoreAddress& address, int64_t runs) {
  const GeneratedHistory history = more(*need(open_store(address)), runs);
  std::fflush(stdout);  // or each of them writes what waits there
  const double took = seconds([&] {
    std::vector<pid_t> children;
    for (int writer = 0; writer < writers; ++writer) {
      children.push_back(::fork());
      if (children.back() != 0) continue;
      const auto store = need(open_store(address));
      need(record_generated(*store, history, writer, writers));
      std::exit(0);
    }
    for (const pid_t child : children) {
      int status = 0;
      if (::waitpid(child, &status, 0) != child || status != 0) give_up("a writer failed");
    }
  });
  const double bound = is_postgres(address) ? 30'000 : 100'000;
  const double rate = static_cast<double>(runs) / took;
  report("eight processes", rate, "results/s", rate >= bound, fmt::format(">= {:.0f}", bound));
}

int ask(const std::string& url, const std::string& name) {
  const auto store = need(open_store_to_read({url}));
  questions().at(name)(*store);
  return 0;
}

// As a search has them: several of each plan, and a plan for every site and delay.
std::vector<RunRecord> trials_of(const TestId& test, TimePoint start, int count, int per_plan) {
  std::vector<RunRecord> trials;
  for (int i = 0; i < count; ++i) {
    RunRecord trial;
    trial.test = test;
    trial.attempt = i + 1;
    trial.started = start + i * std::chrono::milliseconds(21);
    trial.duration = std::chrono::microseconds(20'000 + i % 977);
    trial.purpose = "candidate";
    trial.plan = fmt::format("queue_{}.cc:{}:pthread_cond_wait:after@worker.cc:31#2={}ms", per_plan,
                             i / per_plan, 100 + i / per_plan % 7);
    trials.push_back(std::move(trial));
  }
  return trials;
}

constexpr int trials_of_a_search = 10'000;
constexpr size_t trials_at_once = 50;

// A search takes milliseconds for each; a few bytes, because there are thousands.
void bench_trials(const StoreAddress& address, int per_plan) {
  auto store = need(open_store(address));
  const TestId test{"searched", fmt::format("with {} trials of each plan", per_plan)};
  const auto trials = trials_of(test, end_of(*store), trials_of_a_search, per_plan);
  SessionRecord session;
  session.started = trials.front().started;
  const SessionId id = need(store->begin_session(session));
  const auto size = [&] {
    store.reset();  // so that the file holds what the log did
    const auto bytes = std::filesystem::file_size(address.url);
    store = need(open_store(address));
    return static_cast<double>(bytes);
  };
  const double before = is_postgres(address) ? 0 : size();
  const double taken = seconds([&] {
    for (size_t i = 0; i < trials.size(); i += trials_at_once)
      if (const auto done = store->record_all(id, std::span(trials).subspan(i, trials_at_once));
          !done)
        give_up(to_string(done.error()));
  });
  const std::string what = fmt::format("{} trials, {} of each plan", trials.size(), per_plan);
  const double each = taken / trials_of_a_search * 1e6;
  report(what, each, "us each", each <= 200, "<= 200");
  if (is_postgres(address)) return;
  const double bytes = (size() - before) / trials_of_a_search;
  report(what, bytes, "bytes each", bytes <= 300, "<= 300");
}

int bench(const StoreAddress& address, bool ingest) {
  if (ingest) {
    bench_ingest(address, 1'000'000, "one process, into what is there");
    bench_writers(address, 1'000'000);
  }
  bench_questions(address);
  return all_bounds_met ? 0 : 1;
}

int64_t wanted_runs(int64_t otherwise) {
  const char* wanted = std::getenv("UNFLAKE_BENCH_RUNS");
  return wanted != nullptr ? std::atoll(wanted) : otherwise;
}

int bench_own_server() {
  PostgresServer server(PostgresServer::Durability::as_in_production);
  const StoreAddress address{server.url_of("postgres")};
  need(open_store(address));
  for (const int per_plan : {1, 5}) bench_trials(address, per_plan);
  bench_writers(address, wanted_runs(1'000'000));
  bench_questions(address);
  return all_bounds_met ? 0 : 1;
}

int bench_own_file() {
  const int64_t runs = wanted_runs(3'000'000);
  const std::string folder = make_temporary_folder();
  const StoreAddress address{folder + "/history.db"};
  for (const int per_plan : {1, 5}) bench_trials(address, per_plan);
  bench_ingest(address, runs, "one process, into an empty history");
  const int status = bench(address, true);
  std::filesystem::remove_all(folder);
  return status;
}

}  // namespace
}  // namespace unflake

int main(int argc, char** argv) {
  using namespace unflake;
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 3 && words[0] == "--ask") return ask(words[1], words[2]);
  if (words.empty()) return bench_own_file();
  if (words[0] == "--postgres") return bench_own_server();
  return bench({words[0]}, words.size() == 2 && words[1] == "--ingest");
}
