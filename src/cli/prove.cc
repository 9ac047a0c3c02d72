#include <fmt/format.h>

#include <fstream>
#include <string>
#include <thread>

#include "app/options.h"
#include "app/project.h"
#include "app/proving.h"
#include "app/repro_file.h"
#include "cli/commands.h"
#include "report/repair_text.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr const char* prove_help =
    R"(Tells whether a change repairs a failure that `unflake reproduce` has recorded. The program is
built without the change and with it, each in a copy of the sources; the work tree, its index and its
branches are not touched. Then both are run in the same ways: under the plan that made the test fail,
with threads that are later, plainly, under sampled schedules, while processors are scarce, and all
tests of the program once. A failure that can be made to happen must not happen any more; and the
check that showed it must still be made.

  unflake prove .unflake/repro/server_test_Server.Accepts-8c7b35ab.json --patch fix.patch
  unflake prove server_test_Server.Accepts-8c7b35ab --rev main..fix-accept
  git diff | unflake prove REPRO --patch -
  unflake prove REPRO --patch fix.patch --build 'make -C tests BUILD=$UNFLAKE_BUILD'

How the program is built is found by itself for CMake, Meson and make.

Exit code 0: repaired; 1: not repaired, worse, or it does not build with the change; 2: bad usage, the
change does not apply, or the program does not build without it either; 4: unflake itself failed; 6:
nothing can be said; 128 + N: stopped by signal N.)";

constexpr size_t largest_patch = size_t{16} << 20;

struct ProveCommand {
  std::string file, patch, revisions;
  std::optional<Duration> budget, build_timeout;
  int runs = 100;
  int schedules = 1000;
  int jobs = 0;
  bool json = false;
  ProvingOptions proving;
};

Result<std::string> read_patch(const std::string& path) {
  std::string text;
  const auto read = [&](std::istream& in) {
    std::string some(1 << 16, '\0');
    while (text.size() <= largest_patch && in.read(some.data(), static_cast<long>(some.size())))
      text += some;
    text.append(some, 0, static_cast<size_t>(in.gcount()));
  };
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  if (path != "-" && !file)
    return usage_error("cannot read the patch", printable(path), "`git diff > FILE` writes one");
  std::ifstream standard_input("/dev/stdin", std::ios::binary);
  read(path == "-" ? standard_input : file);
  if (text.size() > largest_patch)
    return usage_error("the patch is larger than 16 MiB", printable(path),
                       "give the two commits with --rev A..B");
  return text;
}

Result<void> read_revisions(const std::string& word, ProvingOptions& options) {
  const size_t dots = word.find("..");
  if (dots == std::string::npos || dots == 0 || dots + 2 >= word.size() || word[dots + 2] == '.')
    return usage_error("--rev takes two commits", printable(word),
                       "as in --rev main..fix: without the change, and with it");
  options.from = word.substr(0, dots);
  options.to = word.substr(dots + 2);
  options.name = word;
  return {};
}

class Prove {
 public:
  explicit Prove(ProveCommand& command)
      : command_(command), style_(style_for(command.proving.one.colour)), steps_(*this) {}

  Result<int> operator()() {
    if (auto ready = read_options(); !ready) return ready.error();
    Proving proving(project_, command_.proving, steps_,
                    [this](const std::string& line) { tell(line); });
    const auto report = proving();
    if (proving.stop_signal() != 0) return exit_code_of_signal(proving.stop_signal());
    if (!report) return report.error();
    Page page;
    page.print("{}", command_.json ? proof_json(*report) : "\n" + proof_text(*report, style_));
    if (const int failed = page.write_out(); failed != 0) return failed;
    return static_cast<int>(code_of(report->proof.verdict));
  }

 private:
  // What is being done, a line for each step: a proof makes thousands of runs.
  class Steps : public Consumer {
   public:
    explicit Steps(const Prove& prove) : prove_(prove) {}
    void on(const Event& event) override {
      const auto* step = std::get_if<SearchStep>(&event);
      if (step != nullptr && step->strategy == proof_strategy) prove_.tell(printable(step->text));
    }

   private:
    const Prove& prove_;
  };

  Result<void> read_options() {
    const auto project = find_project();
    if (!project) return project.error();
    project_ = *project;
    ProvingOptions& options = command_.proving;
    options.one.slots = slots_of_proof;
    const auto path = find_repro(project_, command_.file);
    if (!path) return path.error();
    options.repro_path = *path;
    auto repro = load_repro(*path);
    if (!repro) return repro.error();
    options.repro = std::move(*repro);
    if (command_.patch.empty() == command_.revisions.empty())
      return usage_error("it takes the change that is to be judged", "",
                         "give it as --patch FILE or as --rev A..B");
    options.proof.budget = command_.budget.value_or(10min);
    options.proof.under_plan = options.proof.plain = command_.runs;
    options.proof.loaded = std::max(1, command_.runs / 5);
    options.proof.schedules = command_.schedules;
    options.build.time = command_.build_timeout.value_or(30min);
    options.build.jobs = command_.jobs > 0
                             ? command_.jobs
                             : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    if (!command_.revisions.empty()) return read_revisions(command_.revisions, options);
    auto patch = read_patch(command_.patch);
    if (!patch) return patch.error();
    options.patch = std::move(*patch);
    options.name = command_.patch == "-" ? "the patch" : command_.patch;
    return {};
  }

  void tell(const std::string& line) const {
    if (command_.json) return;
    Page page;
    page.print("{}\n", line);
    (void)page.write_out();
  }

  static ExitCode code_of(Proof::Verdict verdict) {
    if (verdict == Proof::Verdict::repaired) return ExitCode::success;
    return verdict == Proof::Verdict::not_shown ? ExitCode::nothing_shown : ExitCode::test_failed;
  }

  ProveCommand& command_;
  const Style style_;
  Steps steps_;
  Project project_;
};

}  // namespace

int prove_command(const Words& words) {
  ProveCommand command;
  CommandLine line("prove", prove_help);
  line.option("file", command.file, "the repro's file, or its name in .unflake/repro")
      .required()
      .takes("REPRO");
  line.option("--patch", command.patch,
              "the change, as `git diff` writes it, against the sources as they are; -: standard "
              "input")
      .takes("FILE");
  line.option("--rev", command.revisions, "two commits: without the change, and with it")
      .takes("A..B")
      .excludes("--patch");
  line.option("--build", command.proving.build_command,
              "how the program is built: a shell command that runs in a copy of the sources "
              "($UNFLAKE_SOURCE) and puts the program where it is there, or into $UNFLAKE_BUILD")
      .takes("COMMAND");
  line.option("--target", command.proving.target,
              "the executable or build folder of the test, when it is not where it was recorded")
      .takes("PATH");
  line.option("--budget", command.budget, "for all runs, without the builds [10m]");
  line.option("--build-timeout", command.build_timeout, "for each build [30m]");
  line.option("-j,--jobs", command.jobs, "of the builds [one for each core]").between(1, 1024);
  line.option("-n,--repeat", command.runs, "runs under the plan, and plain ones, of each [100]")
      .between(10, 100'000);
  line.option("--schedules", command.schedules, "sampled schedules of each [1000]")
      .between(0, 1'000'000);
  line.option("--seed", command.proving.proof.seed, "for what is random");
  line.flag("--keep", command.proving.keep, "leave both builds where they are, and say where");
  line.flag("--json", command.json, "JSON instead of text");
  line.option("--color", command.proving.one.colour, "auto, always or never")
      .one_of({"auto", "always", "never"});
  command.proving.one.configuration.add_to(line);
  if (const auto done = line.parse(words)) return *done;
  const auto code = Prove(command)();
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
