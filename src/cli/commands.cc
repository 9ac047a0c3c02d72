#include "cli/commands.h"

namespace unflake {
namespace {

constexpr CommandEntry table[] = {
    {"list", "list the tests of a target", list_command},
    {"run", "run tests, once or many times, and remember every run", run_command},
    {"detect", "find the flaky tests of a suite in a given time", detect_command},
    {"plan", "what a time spent on reruns is expected to find", plan_command},
    {"history", "what the recorded runs say about a test", history_command},
    {"report", "what makes tests flaky, cause by cause, and the issues about it", report_command},
    {"quarantine", "known failures that do not fail builds for a while", quarantine_command},
    {"stats", "a study of flaky tests on your own data", stats_command},
    {"ingest", "add test reports of other tools to the history", ingest_command},
    {"serve", "receive reports from other machines into a history", serve_command},
    {"train", "which functions set your flaky tests apart from the others", train_command},
    {"trace", "which threads and timing calls a test has", trace_command},
    {"inject", "make a thread of a test late, on purpose, and see what happens", inject_command},
    {"reproduce", "make a failure happen on demand, and measure how late is too late",
     reproduce_command},
    {"explore", "whether a test fails under any schedule of its threads", explore_command},
    {"races", "the data races of a test, with both stacks", races_command},
    {"orders", "which tests depend on what ran before them", orders_command},
    {"factors", "which part of its surroundings changes a test's outcome", factors_command},
    {"replay", "make a recorded failure happen again, also after an edit", replay_command},
    {"explain", "why a recorded failure happens, and what to do about it", explain_command},
    {"prove", "whether a patch repairs a recorded failure, by a rebuild and the same runs again",
     prove_command},
    {"repair", "what must wait for what so that a test passes, tried and proven", repair_command},
    {"balance", "the shortest waits and time-outs that a test can afford", balance_command},
    {"doctor", "what this machine can do and what is missing", doctor_command},
};

}  // namespace

std::span<const CommandEntry> commands() {
  return table;
}

}  // namespace unflake
