#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/agent_command.h"
#include "app/options.h"
#include "app/project.h"
#include "app/repro_file.h"
#include "report/study_pages.h"
#include "run/interrupts.h"
#include "run/local_executor.h"
#include "study/study.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* stats_help =
    R"(A study of flaky tests on your own data: how common they are, how often they fail, how long until they
are fixed, what fixes do, and which claimed fixes changed nothing.

  unflake stats                       everything, of the last 30 days where a time matters
  unflake stats --table 1 --table fixes
  unflake stats --since 2026-01-01 --until 2026-04-01 --html study.html
  unflake stats --all-projects        every project of the store

Tables 1 to 7 are those of "A Study on the Lifecycle of Flaky Tests" (Lam and others 2020), whose figures stand
beside yours where that makes sense.)";

struct StatsCommand {
  int days = 30;
  std::string since, until;
  bool all_projects = false, json = false;
  std::vector<std::string> tables;
  std::string html;
  std::string colour = "auto";
};

Result<Window> window_of(const StatsCommand& command) {
  Window window;
  window.until = std::chrono::system_clock::now();
  if (!command.until.empty()) {
    const auto until = parse_time(command.until);
    if (!until) return until.error();
    window.until = *until;
  }
  window.from = window.until - std::chrono::days(command.days);
  if (command.since.empty()) return window;
  const auto since = parse_time(command.since);
  if (!since) return since.error();
  if (*since >= window.until)
    return usage_error("--since is not before --until", "",
                       "give two times, the earlier one first");
  window.from = *since;
  return window;
}

// Reads each fix's commit with git, which is started when there is one to read.
class CommitReader {
 public:
  explicit CommitReader(const Project& project) : project_(project) {}

  std::optional<CommitChange> operator()(const std::string& commit) {
    if (!executor_) {
      interrupts_ = std::make_unique<Interrupts>();
      auto made = LocalExecutor::create({}, *interrupts_);
      if (!made) return std::nullopt;
      executor_ = std::move(*made);
    }
    if (stop_signal() != 0) return std::nullopt;
    return change_of_commit(project_, commit, *executor_);
  }

  int stop_signal() const { return interrupts_ ? interrupts_->stop_signal() : 0; }

 private:
  const Project& project_;
  std::unique_ptr<Interrupts> interrupts_;
  std::unique_ptr<LocalExecutor> executor_;
};

Result<std::vector<std::string>> projects_of(const StatsCommand& command,
                                             const StoreAddress& address) {
  if (!command.all_projects) return std::vector<std::string>{address.project};
  auto store = open_store_to_read(address);
  if (!store) return store.error();
  const auto rows = (*store)->lifecycle().prevalence({});
  if (!rows) return rows.error();
  std::vector<std::string> names;
  for (const Prevalence& row : *rows)
    if (row.runs > 0) names.push_back(row.project);
  return names;
}

bool wants(const StatsCommand& command, std::initializer_list<std::string_view> tables) {
  if (command.json || command.tables.empty()) return true;
  return std::ranges::any_of(command.tables, [&](const std::string& wanted) {
    return std::ranges::find(tables, wanted) != tables.end();
  });
}

Result<Study> study_of(const StatsCommand& command, const Project& project,
                       const StoreAddress& address, CommitReader& commits) {
  const auto window = window_of(command);
  if (!window) return window.error();
  const auto names = projects_of(command, address);
  if (!names) return names.error();
  std::vector<ProjectFacts> projects;
  for (const std::string& name : *names) {
    auto store = open_store_to_read({address.url, name});
    if (!store) return store.error();
    StudyQuestion question;
    question.window = *window;
    question.project = name;
    question.change_of = [&](const std::string& commit) { return commits(commit); };
    question.with_runs = wants(command, {"3", "4", "5", "7"});
    question.with_claims = wants(command, {"reoccurrence", "fixes"});
    question.with_commits = wants(command, {"5", "7"});
    if (name == address.project) question.repros = categories_of_repros(project);
    auto facts = gather_facts(**store, question);
    if (!facts) return facts.error();
    projects.push_back(std::move(*facts));
  }
  return compute_study(projects, *window);
}

Result<int> show(const StatsCommand& command, const Study& study) {
  const std::vector<StudyTable> tables = study_tables(study, command.tables);
  if (!command.html.empty())
    if (auto written = replace_file(command.html, study_html(tables, study.notes)); !written)
      return written.error();
  Page page;
  page.print("{}", command.json ? study_json(study)
                                : study_text(tables, study.notes, style_for(command.colour)));
  if (!command.html.empty() && !command.json)
    page.print("\nThe same is in {}\n", printable(command.html));
  return page.write_out();
}

Result<int> run(const StatsCommand& command, const Project& project, const StoreAddress& history) {
  if (!command.html.empty())
    if (auto ready = prepare_output_file(command.html); !ready) return ready.error();
  CommitReader commits(project);
  const auto study = study_of(command, project, history, commits);
  if (commits.stop_signal() != 0) return exit_code_of_signal(commits.stop_signal());
  if (!study) return study.error();
  return show(command, *study);
}

}  // namespace

int stats_command(const Words& words) {
  StatsCommand command;
  CommandLine line("stats", stats_help);
  line.option("--days", command.days, "how far table 1 looks back [30]").between(1, 36'500);
  line.option("--since", command.since, "the same as a date, as 2026-01-01 (UTC)")
      .takes("TIME")
      .excludes("--days");
  line.option("--until", command.until, "leave out what came later [now]").takes("TIME");
  line.flag("--all-projects", command.all_projects, "a row for every project of the store");
  line.option("--table", command.tables, "only this one: 1 to 7, reoccurrence, fixes; repeatable")
      .one_of(study_table_ids())
      .one_at_a_time();
  line.flag("--json", command.json, "JSON instead of text: all tables");
  line.option("--html", command.html, "write a page, too").takes("FILE");
  line.option("--color", command.colour, "auto, always or never")
      .one_of({"auto", "always", "never"});
  return act_on_history(line, words, [&](const auto& known, const auto& history) {
    return run(command, known.project, history);
  });
}

}  // namespace unflake
