#include <fmt/format.h>
#include <unistd.h>

#include "app/listeners.h"
#include "cli/ingest_parts.h"
#include "ingest/ingest.h"
#include "run/local_executor.h"
#include "util/result.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* ingest_help =
    R"(Takes test reports of other tools into the history: JUnit XML of GoogleTest, Catch2, doctest,
Boost.Test, CTest, pytest, Maven, Gradle, Bazel, cargo-nextest, Go and others, and CTest's Test.xml.

  unflake ingest build/server_test.xml             one report
  unflake ingest build/reports                     every .xml below a folder
  go-junit-report < log | unflake ingest -         standard input
  unflake ingest out.xml --target server_test      when the report does not name the program
  unflake ingest out.xml --server https://ci:8080  to an `unflake serve`; the token is UNFLAKE_TOKEN
  unflake ingest build/reports --ci                the gate of a build, as `unflake run --ci` is one

A report that is taken in twice counts once. One that a server cannot take now waits on disk, and goes
with the next `ingest --server`, or with --flush.

Exit code 0: everything is taken in, or waits; 1: something was left out; 2: bad usage; 4: the history
or the outbox cannot be written. With --ci also 1: a test failed that is not in quarantine, or there was
no test at all; 3: nothing failed for good, but a test is newly flaky (see --flaky).)";

struct IngestCommand {
  std::vector<std::string> words;
  std::string target, build, commit, branch;
  std::string server, token;
  std::optional<std::string> flaky;
  bool flush = false, json = false, ci = false;
  StoreOptions history;
  ConfigOptions configuration;
  QuarantineOptions quarantine;
};

void add_options(CommandLine& line, IngestCommand& command) {
  line.option("reports", command.words, "XML files, folders, patterns, or - for standard input")
      .takes("");
  line.option("--target", command.target, "what was tested [as the report or its name says]");
  line.option("--build", command.build, "CI's name of the build [from CI's environment]");
  line.option("--commit", command.commit, "the commit that was tested [git's]");
  line.option("--branch", command.branch, "its branch [git's or CI's]");
  line.option("--server", command.server, "send the reports to an `unflake serve`")
      .from_environment("UNFLAKE_SERVER")
      .takes("URL");
  line.option("--token", command.token, "the token that the server expects [UNFLAKE_TOKEN]");
  line.flag("--flush", command.flush, "send what waits for the server, and nothing else");
  line.flag("--ci", command.ci,
            "the gate of a build: known failures are those in quarantine, others fail");
  line.option("--flaky", command.flaky,
              "with --ci: exit code when tests are only flaky: tell (3), pass (0), fail (1)")
      .one_of({"tell", "pass", "fail"})
      .from_environment("UNFLAKE_FLAKY");
  command.quarantine.add_to(line);
  line.flag("--json", command.json, "a summary as JSON");
  command.history.add_to(line);
  command.configuration.add_to(line);
}

class Ingestion {
 public:
  Ingestion(const IngestCommand& command, const Project& project)
      : command_(command), project_(project) {
    outcome_.outbox_folder = outbox_.folder();
  }

  Result<int> operator()() {
    if (command_.words.empty() && !command_.flush)
      return usage_error("there is nothing to take in", "",
                         "name XML files, folders with such, or `-` for standard input");
    const auto paths = report_paths(command_.words);
    if (!paths) return paths.error();
    if (const auto prepared = prepare(); !prepared) return prepared.error();
    for (const ReportPath& path : *paths)
      if (const auto taken = take(path); !taken) return taken.error();
    if (store_ || gate_) outcome_.flaky = flaky_.count();
    if (gate_ && !command_.words.empty()) outcome_.verdict = gate_->decide(store_.get());
    return tell();
  }

 private:
  Result<void> prepare() {
    const auto config = command_.configuration.load(project_);
    if (!config) return config.error();
    const StoreAddress address = command_.history.address(project_, *config);
    store_project_ = address.project;
    survey_surroundings();
    if (const auto opened = open_gate(*config); !opened) return opened;
    if (command_.server.empty()) {
      if (command_.flush) return usage_error("--flush needs --server", "", "name the server");
      make_folder(project_);
      auto store = open_store(address);
      if (!store) return store.error();
      store_ = std::move(*store);
      return {};
    }
    return reach_server();
  }

  Result<void> open_gate(const Config& config) {
    if (!command_.ci) return {};
    const std::string file = command_.quarantine.file(project_);
    auto quarantine = load_quarantine(file);
    if (!quarantine) return quarantine.error();
    IngestGate::Options options;
    options.keeper = gatekeeper_options(config.ci, file, std::chrono::system_clock::now());
    options.flaky = ci_flaky_result(command_.flaky, config);
    options.commit = surroundings_.commit;
    options.colour = wants_colour("auto", STDOUT_FILENO);
    gate_.emplace(std::move(*quarantine), std::move(options));
    return {};
  }

  void see(SessionId session, std::span<const RunRecord> runs) {
    flaky_.add(runs);
    if (gate_) gate_->see(session, runs);
  }

  void survey_surroundings() {
    Interrupts interrupts;
    if (auto executor = LocalExecutor::create({}, interrupts))
      surroundings_ = survey(project_, **executor);
    if (!command_.build.empty()) surroundings_.build = command_.build;
    if (!command_.branch.empty()) surroundings_.branch = command_.branch;
    if (command_.commit.empty()) return;
    surroundings_.dirty = surroundings_.dirty && surroundings_.commit == command_.commit;
    surroundings_.commit = command_.commit;
  }

  Result<void> reach_server() {
    access_ = {command_.server,
               command_.token.empty() ? environment_variable("UNFLAKE_TOKEN") : command_.token};
    if (access_.token.empty())
      return usage_error("the server wants a token", "", "set UNFLAKE_TOKEN, or give --token");
    const Delivered there = knock(access_);
    if (there.state == Delivered::State::rejected) return there.error;
    if (there.state == Delivered::State::later) return outcome_.away = there.error, Result<void>();
    return flush();
  }

  Result<void> flush() {
    const auto flushed = outbox_.flush(access_.url, [&](const auto& file, const auto& delivery) {
      return deliver(file, delivery, access_);
    });
    if (!flushed) return flushed.error();
    outcome_.flushed = *flushed;
    return {};
  }

  // An error ends everything; what is wrong with a report is kept with it.
  Result<void> take(const ReportPath& path) {
    const auto file = path.path == "-"
                          ? ReportFile::copy_of(bytes_of_descriptor(STDIN_FILENO, "-"), "-")
                          : ReportFile::open(path.path);
    Taken taken{path.path, {}, std::nullopt, false};
    if (!file) {
      taken.error = file.error();
    } else if (!store_ && (gate_ || path.was_found) && !look_at(*file) && path.was_found) {
      return ++outcome_.passed_over, Result<void>();
    } else if (const auto done = store_ ? record(*file, taken) : send(*file, taken); !done) {
      return done;
    }
    const bool is_other_xml = path.was_found && says_no_report(taken);
    if (is_other_xml)
      ++outcome_.passed_over;
    else
      outcome_.reports.push_back(std::move(taken));
    return {};
  }

  // Whether it is a report: a server need not see what is not one. The gate always decides here.
  bool look_at(const ReportFile& file) {
    const auto take = [&](std::span<RunRecord> runs) {
      see(0, runs);
      return Result<void>();
    };
    const auto bytes = file.bytes();
    const auto read = bytes
                          ? read_results(*bytes, {file.name(), settings_for(file).origin, {}}, take)
                          : Result<ReadReport>(bytes.error());
    return read && (!read->refused || read->counts.runs > 0);
  }

  static bool says_no_report(const Taken& taken) {
    const auto& problem = taken.error ? taken.error : taken.report.refused;
    return problem && problem->what.ends_with(not_a_test_report);
  }

  IngestSettings settings_for(const ReportFile& file) const {
    IngestSettings settings;
    settings.project = store_project_;
    const bool is_stream = file.name() == "-";
    settings.origin = {is_stream ? "" : file.name(), command_.target,
                       is_stream ? "" : cmake_project_around(file.name())};
    settings.surroundings = surroundings_;
    settings.command_line = "unflake ingest " + shell_join(command_.words);
    settings.modified = file.modified();
    return settings;
  }

  Result<void> record(const ReportFile& file, Taken& taken) {
    auto report = ingest(file, settings_for(file), *store_,
                         [this](SessionId session, auto runs) { see(session, runs); });
    if (!report) return report.error();
    taken.report = std::move(*report);
    return {};
  }

  Result<void> send(const ReportFile& file, Taken& taken) {
    const Delivery delivery{settings_for(file), store_project_};
    if (!outcome_.away) {
      Delivered delivered = deliver(file, delivery, access_);
      taken.report = std::move(delivered.report);
      if (delivered.state == Delivered::State::rejected) taken.error = delivered.error;
      if (delivered.state != Delivered::State::later) return {};
      outcome_.away = delivered.error;
    }
    taken.waits = true;
    return outbox_.keep(file, delivery, access_.url);
  }

  Result<int> tell() const {
    Page page;
    if (command_.json)
      page.print("{}\n", to_json(outcome_));
    else
      print(outcome_, page);
    const int written = page.write_out();
    if (!command_.json) complain(outcome_);
    if (written != 0) return written;
    return static_cast<int>(outcome_.left_something_out() ? ExitCode::test_failed
                                                          : outcome_.verdict.code);
  }

  const IngestCommand& command_;
  const Project& project_;
  Surroundings surroundings_;
  std::unique_ptr<Store> store_;  // none: sent to the server
  ServerAccess access_;
  std::string store_project_;
  Outbox outbox_{default_outbox_folder()};
  std::optional<IngestGate> gate_;  // with --ci
  FlakyTests flaky_;
  IngestOutcome outcome_;
};

}  // namespace

int ingest_command(const Words& words) {
  CommandLine line("ingest", ingest_help);
  IngestCommand command;
  add_options(line, command);
  if (const auto code = line.parse(words)) return *code;
  const auto project = find_project();
  if (!project) return report_error(project.error());
  const auto code = Ingestion(command, *project)();
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
