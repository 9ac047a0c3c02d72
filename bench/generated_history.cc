#include "generated_history.h"

#include <fmt/format.h>

namespace unflake {
namespace {

constexpr int64_t all_us = int64_t{120} * 86'400 * 1'000'000;
constexpr int64_t builds_per_commit = 2;
constexpr int64_t busy_runs = GeneratedHistory::session_runs * 6 / 100;

// SplitMix64: a number for each seed and no state between them.
uint64_t hash(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

bool is_flaky(int64_t test) {
  return test % 50 == 0;
}

bool is_broken(int64_t test, int64_t commit) {
  return hash(static_cast<uint64_t>(test * 7919 + commit / 8)) % 20'000 == 0;
}

void fail(RunRecord& run, int64_t test, uint64_t which) {
  run.outcome = OutcomeKind::fail;
  run.signature = fmt::format("{:016x}", hash(static_cast<uint64_t>(test) * 3 + which % 3));
  run.failure = Failure{FailureKind::assertion,
                        fmt::format("source/part_{}_test.cc", test / 100),
                        static_cast<int>(10 + which % 3),
                        "TestBody",
                        "answer == expected",
                        "the answer came too late"};
  run.output.assign(400, 'x');
}

void pass(RunRecord& run) {
  run.outcome = OutcomeKind::pass;
  run.signature.clear();
  run.failure.reset();
  run.output.clear();
}

}  // namespace

SessionRecord GeneratedHistory::session(int64_t number) const {
  const int64_t build = number / sessions_per_build;
  SessionRecord session;
  session.uuid = fmt::format("{:016x}{:016x}", hash(seed_), static_cast<uint64_t>(number));
  session.started = start_of(number);
  session.surroundings = {
      fmt::format("{:040x}", hash(seed_ + 17) + static_cast<uint64_t>(build / builds_per_commit)),
      "main",
      false,
      fmt::format("runner-{}", number % sessions_per_build),
      "0.1.0",
      fmt::format("build-{}", build)};
  session.command_line = "unflake run --ci";
  return session;
}

void GeneratedHistory::runs_of(int64_t session, std::vector<RunRecord>& runs) const {
  const int64_t shard = session % sessions_per_build;
  const int64_t commit = session / sessions_per_build / builds_per_commit;
  TimePoint started = start_of(session) + Duration(1'000);
  runs.resize(session_runs + session_runs / 10);  // some are tried again
  size_t used = 0;
  const auto add = [&](int64_t test, int attempt, uint64_t random) -> RunRecord& {
    RunRecord& run = runs[used++];
    run.test = GeneratedHistory::test(test);
    run.attempt = attempt;
    run.started = started;
    run.duration = Duration(500 + static_cast<int64_t>(random % 1024) * (1 + test % 40));
    started += Duration(100) + run.duration / 8;
    pass(run);
    return run;
  };
  for (int64_t i = 0; i < session_runs; ++i) {
    const bool is_busy = i < busy_runs;
    const int64_t test = is_busy ? 0 : i * sessions_per_build + shard;
    const uint64_t random = hash(seed_ ^ static_cast<uint64_t>(session * session_runs + i));
    const int attempt = is_busy ? static_cast<int>(i) + 1 : 1;
    const bool fails = is_flaky(test) && !is_busy && (random >> 32) % 50 == 0;
    const bool broken = !is_busy && is_broken(test, commit);
    RunRecord& run = add(test, attempt, random);
    if (!fails && !broken) continue;
    fail(run, test, random >> 20);
    RunRecord& again = add(test, attempt + 1, random >> 1);
    if (broken) fail(again, test, random >> 20);
  }
  runs.resize(used);
}

TestId GeneratedHistory::test(int64_t number) {
  return {fmt::format("part_{}_test", number / 100),
          fmt::format("Suite{}.Behaves_as_it_should_{}", number / 10, number)};
}

TimePoint GeneratedHistory::start_of(int64_t session) const {
  const int64_t build = session / sessions_per_build;
  const int64_t builds = sessions() / sessions_per_build + 1;
  return start_ + Duration(all_us / builds * build + session % sessions_per_build * 1'000);
}

Result<int64_t> record_generated(Store& store, const GeneratedHistory& history, int64_t first,
                                 int64_t step, const std::function<void(int64_t)>& progress) {
  std::vector<RunRecord> runs;
  int64_t recorded = 0;
  for (int64_t number = first; number < history.sessions(); number += step) {
    history.runs_of(number, runs);
    const auto session = store.begin_session(history.session(number));
    if (!session) return session.error();
    if (const auto done = store.record_all(*session, runs); !done) return done.error();
    if (const auto ended = store.end_session(*session); !ended) return ended.error();
    recorded += static_cast<int64_t>(runs.size());
    if (progress) progress(recorded);
  }
  return recorded;
}

}  // namespace unflake
