#include "cli/detect_bisect.h"

#include <fmt/format.h>

#include <thread>

#include "app/listeners.h"
#include "app/project.h"
#include "app/repro_file.h"
#include "cli/commands.h"
#include "report/detect_text.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

Result<void> read_ends(const std::string& word, BisectingOptions& options) {
  const size_t dots = word.find("..");
  if (dots == std::string::npos || dots == 0 || dots + 2 >= word.size() || word[dots + 2] == '.')
    return usage_error("--bisect takes two commits", printable(word),
                       "as in --bisect v1.2..HEAD: where the test holds, and where it is flaky");
  options.from = word.substr(0, dots);
  options.to = word.substr(dots + 2);
  return {};
}

// What a later `unflake history` tells. A history that cannot be written is no reason to fail.
void note_beginning(const BisectReport& report, OneTest& one, const StoreOptions& options) {
  const auto* first = report.first();
  if (first == nullptr || options.no_history) return;
  auto store = open_store(one.history());
  if (!store) return;
  LifecycleStep step;
  step.kind = LifecycleStep::Kind::introduced;
  step.test = report.test;
  step.signature = report.signature;
  step.at = std::chrono::system_clock::now();
  step.commit = first->id;
  step.reason = fmt::format("{}; {}", first->subject, report.how);
  if (auto noted = (*store)->lifecycle().note(step); !noted)
    fmt::print(stderr, "unflake: warning: {}\n", to_string(noted.error()));
}

Result<void> keep_repro(BisectReport& report, const OneTest& one) {
  if (!report.repro || report.bisection.answer == CommitBisection::Answer::never_fails) return {};
  auto saved = save_repro(one.project(), *report.repro);
  if (!saved) return saved.error();
  report.notes.push_back("`unflake replay " + shell_quote(path_from_here(saved->path)) +
                         "` makes it fail as it does at the bad end");
  return {};
}

ExitCode code_of(const CommitBisection& bisection) {
  return bisection.answer == CommitBisection::Answer::found ? ExitCode::success
                                                            : ExitCode::test_failed;
}

}  // namespace

void BisectCommand::add_to(CommandLine& line) {
  line.option("--bisect", revisions,
              "the commit that introduced a flaky test, of those from GOOD to BAD")
      .takes("GOOD..BAD");
  line.option("--build", build, "with --bisect: how the program is built [found by itself]")
      .takes("COMMAND");
  line.option("--build-timeout", build_timeout, "with --bisect: for each build [30m]");
  line.option("--jobs", jobs, "with --bisect: of a build [as many as there are cores]")
      .between(1, 1024);
}

Result<int> bisect(const BisectCommand& command, const OneTestOptions& one, const Words& words,
                   std::optional<Duration> budget, uint64_t seed, bool json) {
  BisectingOptions options;
  if (auto read = read_ends(command.revisions, options); !read) return read.error();
  auto off = one.groups_off();
  if (!off) return off.error();
  auto found = OneTest::find(one, words);
  if (!found) return found.error();
  options.hunt.groups_off = std::move(*off);
  options.hunt.system_calls = one.system_calls;
  options.hunt.seed = seed;
  options.hunt.extra_functions = (*found)->functions();
  options.one = one;
  options.build_command = command.build;
  options.build.time = command.build_timeout.value_or(30min);
  options.build.jobs = command.jobs > 0
                           ? command.jobs
                           : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  options.budget = budget.value_or(options.budget);
  Bisecting bisecting(**found, options, [json](const std::string& line) {
    if (json) return;
    Page page;
    page.print("{}\n", line);
    (void)page.write_out();
  });
  auto report = bisecting();
  const int stopped_by = bisecting.stop_signal();
  if (!report && stopped_by == 0) return report.error();
  if (report) {
    if (auto kept = keep_repro(*report, **found); !kept) report->notes.push_back(kept.error().what);
    note_beginning(*report, **found, one.history);
    Page page;
    page.print("{}",
               json ? bisect_json(*report) : "\n" + bisect_text(*report, style_for(one.colour)));
    if (const int failed = page.write_out(); failed != 0) return failed;
  }
  if (stopped_by != 0) return exit_code_of_signal(stopped_by);
  return static_cast<int>(code_of(report->bisection));
}

}  // namespace unflake
