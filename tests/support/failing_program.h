#pragma once

#include <map>

#include "search/repair/repair_runs.h"
#include "support/simulated_test.h"

// A simulated program that fails when some of its threads are late: what a repair and an
// explanation begin with.
namespace unflake::simulated {

// All lines of the program's scripts, whatever their file.
inline LinesOf lines_of(const Program& program) {
  return [&program](const std::string&, const std::string& file) {
    std::map<int, std::string> lines;
    for (const Script& script : program.scripts)
      for (const Step& step : script.steps())
        if (step.site.line > 0 && step.site.file == file) lines[step.site.line] = step.function;
    std::vector<CodeLine> all;
    for (const auto& [line, function] : lines) all.push_back({line, function});
    return all;
  };
}

inline Intervention late_thread(const std::string& site, const std::string& thread,
                                Duration delay) {
  Intervention late;
  late.site = *parse_site(site);
  late.threads = Intervention::Threads::named;
  late.thread = thread_named(thread);
  late.duration = delay;
  return late;
}

// It fails at this line.
inline FailingTest failing_test(const Program& program, std::vector<Intervention> late,
                                int failing_line) {
  FailingTest test;
  test.failing.plan.agent = test.passing.plan.agent = true;
  test.failing.plan.interventions = std::move(late);
  test.is_same = [failing_line](const Outcome& outcome) {
    return !outcome.failures.empty() && outcome.failures.front().line == failing_line;
  };
  test.timeout = std::chrono::seconds(10);
  test.lines = lines_of(program);
  return test;
}

// The test sleeps instead of waiting for the worker's second line.
inline Program sleeping_test() {
  Program program;
  Script& worker = program.thread();
  worker.enter("work")
      .sleep("work.cc:20", std::chrono::milliseconds(5))
      .line("work.cc:21")
      .set("half")
      .line("work.cc:22")
      .set("done")
      .line("work.cc:23")
      .work(std::chrono::milliseconds(1))
      .line("work.cc:24");
  program.main()
      .enter("test")
      .create("work.cc:10", worker)
      .sleep("work.cc:11", std::chrono::milliseconds(50))
      .line("work.cc:12")
      .check("work.cc:13", is_set("done"))
      .join("work.cc:14", worker);
  return program;
}

}  // namespace unflake::simulated
