#include "ingest/ingest.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/page.h"
#include "cli/report_paths.h"
#include "report/style.h"
#include "run/local_executor.h"
#include "util/environment.h"
#include "util/text.h"
#include "web/outbox.h"

namespace unflake {
namespace {

using Json = nlohmann::json;

constexpr const char* help =
    R"(Takes test reports of other tools into the history: JUnit XML of GoogleTest, Catch2, doctest,
Boost.Test, CTest, pytest, Maven, Gradle, Bazel, cargo-nextest, Go and others, and CTest's Test.xml.

  unflake ingest build/server_test.xml             one report
  unflake ingest build/reports                     every .xml below a folder
  go-junit-report < log | unflake ingest -         standard input
  unflake ingest out.xml --target server_test      when the report does not name the program
  unflake ingest out.xml --server https://ci:8080  to an `unflake serve`; the token is UNFLAKE_TOKEN

A report that is taken in twice counts once. One that a server cannot take now waits on disk, and goes
with the next `ingest --server`, or with --flush.

Exit code 0: everything is taken in, or waits; 1: something was left out; 2: bad usage; 4: the history
or the outbox cannot be written.)";

struct IngestCommand {
  std::vector<std::string> words;
  std::string target, build, commit, branch;
  std::string server, token;
  bool flush = false, json = false;
  StoreOptions history;
  ConfigOptions configuration;
};

void add_options(CLI::App& app, IngestCommand& command) {
  app.add_option("reports", command.words, "XML files, folders, patterns, or - for standard input")
      ->type_name("");
  app.add_option("--target", command.target, "what was tested [as the report or its name says]");
  app.add_option("--build", command.build, "CI's name of the build [from CI's environment]");
  app.add_option("--commit", command.commit, "the commit that was tested [git's]");
  app.add_option("--branch", command.branch, "its branch [git's or CI's]");
  app.add_option("--server", command.server, "send the reports to an `unflake serve`")
      ->envname("UNFLAKE_SERVER")
      ->type_name("URL");
  app.add_option("--token", command.token, "what the server knows its writers by [UNFLAKE_TOKEN]");
  app.add_flag("--flush", command.flush, "send what waits for the server, and nothing else");
  app.add_flag("--json", command.json, "a summary as JSON");
  command.history.add_to(app);
  command.configuration.add_to(app);
}

// What became of one report.
struct Taken {
  std::string file;
  ReadReport report;
  std::optional<Error> error;  // nothing was taken
  bool waits = false;          // in the outbox
};

std::string counts_text(const ResultCounts& counts) {
  std::string text = counted(counts.runs, "result");
  if (counts.failures > 0) text += ", " + counted(counts.failures, "failure");
  if (counts.flaky > 0) text += fmt::format(", {} flaky", counts.flaky);
  if (counts.skips > 0) text += fmt::format(", {} skipped", counts.skips);
  return text;
}

std::vector<std::string> notes_of(const ResultCounts& counts) {
  std::vector<std::string> notes;
  if (counts.odd_times > 0)
    notes.push_back(
        fmt::format("{} times made no sense and count as the nearest that does", counts.odd_times));
  if (counts.packed_outputs > 0)
    notes.push_back(
        fmt::format("the outputs of {} failures are packed and left out; let CTest write them "
                    "plainly: ctest --no-compress-output",
                    counts.packed_outputs));
  return notes;
}

Json error_json(const Error& error) {
  return {{"what", printable(error.what)},
          {"where", printable(error.where)},
          {"next", printable(error.next)}};
}

Json to_json(const Taken& taken) {
  const ResultCounts& counts = taken.report.counts;
  Json json{{"file", printable(taken.file)}, {"results", counts.runs},   {"passes", counts.passes},
            {"failures", counts.failures},   {"skipped", counts.skips},  {"flaky", counts.flaky},
            {"waits", taken.waits},          {"notes", notes_of(counts)}};
  const auto& problem = taken.error ? taken.error : taken.report.refused;
  json["left_out"] = problem ? error_json(*problem) : Json(nullptr);
  return json;
}

class Ingestion {
 public:
  Ingestion(const IngestCommand& command, const Project& project)
      : command_(command), project_(project) {}

  Result<int> operator()() {
    if (command_.words.empty() && !command_.flush)
      return usage_error("there is nothing to take in", "",
                         "name XML files, folders with such, or `-` for standard input");
    const auto paths = report_paths(command_.words);
    if (!paths) return paths.error();
    if (const auto prepared = prepare(); !prepared) return prepared.error();
    for (const ReportPath& path : *paths)
      if (const auto taken = take(path); !taken) return taken.error();
    return tell();
  }

 private:
  Result<void> prepare() {
    const auto config = command_.configuration.load(project_);
    if (!config) return config.error();
    const StoreAddress address = command_.history.address(project_, *config);
    survey_surroundings();
    if (command_.server.empty()) {
      if (command_.flush) return usage_error("--flush needs --server", "", "name the server");
      make_folder(project_);
      auto store = open_store(address);
      if (!store) return store.error();
      store_ = std::move(*store);
      return {};
    }
    server_project_ = command_.history.project;
    return reach_server();
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
    if (there.state == Delivered::State::later) return away_ = there.error, Result<void>();
    return flush();
  }

  Result<void> flush() {
    const auto flushed = outbox_.flush(access_.url, [&](const auto& file, const auto& delivery) {
      return deliver(file, delivery, access_);
    });
    if (!flushed) return flushed.error();
    flushed_ = *flushed;
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
    } else if (path.was_found && !store_ && !is_report(*file)) {
      return ++passed_over_, Result<void>();
    } else if (const auto done = store_ ? record(*file, taken) : send(*file, taken); !done) {
      return done;
    }
    const bool is_other_xml = path.was_found && says_no_report(taken);
    if (is_other_xml)
      ++passed_over_;
    else
      all_.push_back(std::move(taken));
    return {};
  }

  // A server need not see what is none.
  static bool is_report(const ReportFile& file) {
    const auto bytes = file.bytes();
    const auto read = bytes ? read_results(*bytes, {file.name(), {}, {}},
                                           [](std::span<RunRecord>) { return Result<void>(); })
                            : Result<ReadReport>(bytes.error());
    return read && (!read->refused || read->counts.runs > 0);
  }

  static bool says_no_report(const Taken& taken) {
    const auto& problem = taken.error ? taken.error : taken.report.refused;
    return problem && problem->what.find("no test report") != std::string::npos;
  }

  IngestSettings settings_for(const ReportFile& file) const {
    IngestSettings settings;
    const bool is_stream = file.name() == "-";
    settings.origin = {is_stream ? "" : file.name(), command_.target,
                       is_stream ? "" : cmake_project_around(file.name())};
    settings.surroundings = surroundings_;
    settings.command_line = "unflake ingest " + shell_join(command_.words);
    settings.modified = file.modified();
    return settings;
  }

  Result<void> record(const ReportFile& file, Taken& taken) {
    auto report = ingest(file, settings_for(file), *store_);
    if (!report) return report.error();
    taken.report = std::move(*report);
    return {};
  }

  Result<void> send(const ReportFile& file, Taken& taken) {
    const Delivery delivery{settings_for(file), server_project_};
    if (!away_) {
      Delivered delivered = deliver(file, delivery, access_);
      taken.report = std::move(delivered.report);
      if (delivered.state == Delivered::State::rejected) taken.error = delivered.error;
      if (delivered.state != Delivered::State::later) return {};
      away_ = delivered.error;
    }
    taken.waits = true;
    return outbox_.keep(file, delivery, access_.url);
  }

  Result<int> tell() const {
    Page page;
    if (command_.json)
      page.print("{}\n", summary().dump(2));
    else
      print(page);
    const int written = page.write_out();
    if (!command_.json) complain();
    return written != 0 ? written : static_cast<int>(left_something_out() ? 1 : 0);
  }

  bool left_something_out() const {
    bool any = !flushed_.problems.empty();
    for (const Taken& taken : all_) any = any || taken.error || taken.report.refused;
    return any;
  }

  void print(Page& page) const {
    int64_t waiting = flushed_.left, done = 0;
    for (const Taken& taken : all_) {
      ++(taken.waits ? waiting : done);
      if (taken.waits)
        page.print("{}: waits for the server\n", printable(taken.file));
      else if (!taken.error)
        page.print("{}: {}\n", printable(taken.file), counts_text(taken.report.counts));
      for (const std::string& note : notes_of(taken.report.counts))
        page.print("  note: {}\n", note);
    }
    if (done > 1) page.print("{}: {}\n", counted(done, "report"), counts_text(total()));
    if (passed_over_ > 0)
      page.print("passed over, as no test reports: {}\n", counted(passed_over_, "XML file"));
    if (flushed_.delivered > 0)
      page.print("{} that waited {} delivered\n", counted(flushed_.delivered, "report"),
                 flushed_.delivered == 1 ? "is" : "are");
    if (flushed_.is_busy) page.print("another process is sending the reports that wait\n");
    if (waiting > 0)
      page.print("{} in {}; the next `unflake ingest --server` sends {}\n",
                 counted(waiting, "report") + (waiting == 1 ? " waits" : " wait"),
                 printable(outbox_.folder()), waiting == 1 ? "it" : "them");
  }

  void complain() const {
    if (away_)
      fmt::print(stderr, "unflake: the server is away: {}\n", printable(to_string(*away_)));
    for (const Taken& taken : all_) {
      const auto& problem = taken.error ? taken.error : taken.report.refused;
      if (problem) report_error(in_file(*problem, taken.file));
    }
    for (const Error& problem : flushed_.problems) report_error(problem);
  }

  static Error in_file(Error error, const std::string& file) {
    error.what = fmt::format("{} {}", file, error.what);
    return error;
  }

  ResultCounts total() const {
    ResultCounts total;
    for (const Taken& taken : all_) {
      const ResultCounts& counts = taken.report.counts;
      total.runs += counts.runs;
      total.failures += counts.failures;
      total.flaky += counts.flaky;
      total.skips += counts.skips;
      total.passes += counts.passes;
    }
    return total;
  }

  Json summary() const {
    Json files = Json::array(), problems = Json::array();
    for (const Taken& taken : all_) files.push_back(to_json(taken));
    for (const Error& problem : flushed_.problems) problems.push_back(error_json(problem));
    const ResultCounts sum = total();
    return {{"format", 1},
            {"files", files},
            {"results", sum.runs},
            {"failures", sum.failures},
            {"flaky", sum.flaky},
            {"passed_over", passed_over_},
            {"server_away", away_ ? error_json(*away_) : Json(nullptr)},
            {"outbox",
             {{"delivered", flushed_.delivered}, {"left", flushed_.left}, {"rejected", problems}}}};
  }

  const IngestCommand& command_;
  const Project& project_;
  Surroundings surroundings_;
  std::unique_ptr<Store> store_;  // none: to the server
  ServerAccess access_;
  std::string server_project_;
  std::optional<Error> away_;  // the server
  Outbox outbox_{default_outbox_folder()};
  Outbox::Flushed flushed_;
  std::vector<Taken> all_;
  int64_t passed_over_ = 0;
};

}  // namespace

int ingest_command(const Words& words) {
  CommandLine line("ingest", help);
  IngestCommand command;
  add_options(line.app(), command);
  if (const auto code = line.parse(words)) return *code;
  const auto project = find_project();
  if (!project) return report_error(project.error());
  const auto code = Ingestion(command, *project)();
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
