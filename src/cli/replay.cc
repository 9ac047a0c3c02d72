#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/debugger.h"
#include "cli/page.h"
#include "cli/recorded.h"
#include "cli/replay_result.h"
#include "cli/repro_file.h"
#include "trace/program_code.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* help =
    R"(Makes a failure that `unflake reproduce` has recorded happen again. The sites and threads of
its plan are first looked for in the program as it is now; what has moved is told.

  unflake replay .unflake/repro/server_test_Server.Accepts-8c7b35ab.json
  unflake replay server_test_Server.Accepts-8c7b35ab -n 100
  unflake replay FILE --target build-asan/server_test   another build of the same test
  unflake replay FILE --as-test                         a regression test: passes while it is repaired
  unflake replay FILE --gdb                             a run in gdb, which stops where the test fails

Exit code 0: the failure came back; 1: it did not; 2: bad usage, or a site of the plan is gone; 4:
unflake itself failed; 128 + N: stopped by signal N. With --as-test 0: the failure did not come; 1:
it did; 2: nothing can be said, because a site is gone or no delay has fired.)";

constexpr int most_profile_runs = 5;

struct ReplayCommand {
  std::string file;
  std::string target;
  int runs = 10;
  bool as_test = false, gdb = false, rr = false, verbose = false, json = false, full = false;
  std::vector<std::string> gdb_arguments;
  OneTestOptions one;
};

class Replay {
 public:
  explicit Replay(ReplayCommand& command)
      : command_(command),
        style_(style_for(command.one.colour)),
        texts_(style_, command.full ? StackDetail::full : StackDetail::project,
               command.full || command.verbose) {}

  Result<int> operator()() {
    if (auto loaded = load(); !loaded) return loaded.error();
    auto one = find_recorded_test(project_, repro_, command_.target, command_.one);
    if (!one) return one.error();
    one_ = std::move(*one);
    if (auto found = find_sites(); !found) return found.error();
    if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
    for (const Relocated& note : relocation_.notes) tell(fmt::format("{}\n", printable(note.text)));
    if (!relocation_.is_complete()) return something_is_gone();
    return command_.gdb || command_.rr ? debug() : run_all();
  }

 private:
  Result<void> load() {
    const auto project = find_project();
    if (!project) return project.error();
    project_ = *project;
    const auto path = find_repro(project_, command_.file);
    if (!path) return path.error();
    path_ = *path;
    auto repro = load_repro(path_);
    if (!repro) return repro.error();
    repro_ = std::move(*repro);
    if (repro_.passes_under_plan && command_.as_test)
      return usage_error("under this plan the test passes, so that it cannot show a regression",
                         path_, "use --as-test with a repro under which the test fails");
    return {};
  }

  // Not every run comes to every call, so a few are made before something counts as gone.
  Result<void> find_sites() {
    Trace seen;
    for (int i = 0; i < most_profile_runs; ++i) {
      const auto result = one_->run(profile_plan(repro_));
      if (one_->stop_signal() != 0) return {};
      if (!result) return result.error();
      if (i == 0) {
        seen = *result->trace;
        code_ = program_code(seen, one_->project_code());
        tell("without interventions:\n" + outcome_line(one_->test(), *result, style_));
        code_notes_.add(*result->trace);
        if (!command_.json) warn(code_notes_.take(), command_.one.colour);
      }
      add_names(seen, *result->trace);
      relocation_ = relocate(repro_, seen, code_);
      if (relocation_.is_complete()) break;
    }
    relocation_.plan.agent = true;
    relocation_.plan.events = relocation_.plan.stacks = false;
    relocation_.plan.extra_functions.clear();  // they would only be counted
    return {};
  }

  Error something_is_gone() const {
    std::vector<std::string> gone;
    for (const Relocated& note : relocation_.notes)
      if (note.kind == Relocated::Kind::gone) gone.push_back(note.text);
    return usage_error("the plan cannot be used with this program: " + join(gone, "; "), path_,
                       "where the code was rewritten, look for the failure again with `unflake "
                       "reproduce`");
  }

  Result<int> run_all() {
    ReplayResult results(repro_);
    tell("with interventions:\n");
    for (int i = 0; i < command_.runs; ++i) {
      const auto result = one_->run(relocation_.plan, repro_.conditions);
      if (one_->stop_signal() != 0) return exit_code_of_signal(one_->stop_signal());
      if (!result) return result.error();
      results.add(*result, code_);
      tell(texts_.text_of(one_->test(), *result));
    }
    tell(results.text(relocation_.plan, style_));
    Page page;
    if (command_.json) page.print("{}", results.json(path_, relocation_, code_notes_.all()));
    if (const int failed = page.write_out(); failed != 0) return failed;
    return command_.as_test ? test_verdict(results) : verdict(results);
  }

  int verdict(const ReplayResult& results) const {
    const bool came = results.as_recorded() > 0;
    return static_cast<int>(came != repro_.passes_under_plan ? ExitCode::success
                                                             : ExitCode::test_failed);
  }

  Result<int> test_verdict(const ReplayResult& results) const {
    if (results.as_recorded() > 0) {
      tell("as a test: FAILED, the failure came back\n");
      return static_cast<int>(ExitCode::test_failed);
    }
    if (!results.says_something(relocation_.plan))
      return usage_error("no run was made late, so that nothing can be said", path_,
                         "look for the failure again with `unflake reproduce`, or remove the test");
    tell("as a test: passed, the failure did not come\n");
    return static_cast<int>(ExitCode::success);
  }

  Result<int> debug() {
    Plan plan = relocation_.plan;
    plan.failures = false;  // they are captured by traps, which are the debugger's
    const auto run = one_->prepare(plan);
    if (!run) return run.error();
    if (command_.rr) return record_with_rr(one_->test(), **run, one_->launcher());
    return debug_with_gdb(one_->test(), **run, repro_.failure.kind, command_.gdb_arguments);
  }

  void tell(const std::string& text) const {
    if (command_.json) return;
    Page page;
    page.print("{}", text);
    (void)page.write_out();
  }

  ReplayCommand& command_;
  const Style style_;
  RunTexts texts_;
  Project project_;
  std::string path_;
  Repro repro_;
  std::unique_ptr<OneTest> one_;
  CodeView code_;
  Relocation relocation_;
  CodeNotes code_notes_;
};

}  // namespace

int replay_command(const Words& words) {
  ReplayCommand command;
  CommandLine line("replay", help);
  line.option("file", command.file, "the repro's file, or its name in .unflake/repro")
      .required()
      .takes("FILE");
  line.option("-n,--repeat", command.runs, "runs under the plan [10]").between(1, 1'000'000);
  line.option("--target", command.target, "another executable or build folder with the test")
      .takes("PATH");
  line.flag("--as-test", command.as_test, "exit code 0 when the failure does not come");
  line.flag("--gdb", command.gdb, "start a run in gdb; `run` begins it");
  line.option("--gdb-arg", command.gdb_arguments, "an argument for gdb; may be repeated")
      .one_at_a_time();
  line.flag("--rr", command.rr, "record a run with rr").excludes("--gdb");
  line.flag("--verbose", command.verbose, "the output of every failing run");
  line.flag("--full", command.full, "the same, and stacks with the frames of libraries");
  line.flag("--json", command.json, "JSON instead of text");
  line.option("--color", command.one.colour, "auto, always or never")
      .one_of({"auto", "always", "never"});
  command.one.configuration.add_to(line);
  if (const auto done = line.parse(words)) return *done;
  const auto code = Replay(command)();
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
