#include <fmt/format.h>

#include "app/options.h"
#include "cli/report_parts.h"
#include "report/layout.h"
#include "run/interrupts.h"
#include "run/local_executor.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* report_help =
    R"(Tells what makes tests flaky, cause by cause: failures that look alike, of one test or of
several, are one cause. How often, since which commit, how many builds it hit, what it cost, who
owns it, and how to make it happen again.

  unflake report                                   of the last 30 days, as Markdown
  unflake report --format html --out flaky.html    one page, with the trend of each cause
  unflake report --github OWNER/REPO               which issues would be opened, updated, closed
  unflake report --github OWNER/REPO --send        does it; needs GITHUB_TOKEN
  unflake report --gitlab GROUP/PROJECT --send     the same; needs GITLAB_TOKEN

Exit code 0: told; 2: bad usage, or the server refuses; 4: unflake itself or the server failed.)";

struct ReportCommand {
  int days = 30;
  size_t most = 50;
  std::string format = "md", out;
  IssueOptions issues;
  StoreOptions history;
  ConfigOptions configuration;
  QuarantineOptions quarantine;
};

// Asks git, and only when a fix was claimed.
class CommitOrder {
 public:
  explicit CommitOrder(const Project& project) : project_(project) {}

  bool contains(const std::string& commit, const std::string& earlier) {
    if (!is_commit(commit) || !is_commit(earlier)) return true;
    if (!executor_) {
      auto made = LocalExecutor::create({}, interrupts_);
      if (!made) return true;
      executor_ = std::move(*made);
    }
    Command git;
    git.argv = {"git", "merge-base", "--is-ancestor", earlier, commit};
    git.cwd = project_.root;
    const ProcessResult result = executor_->launch(git, std::chrono::seconds(5));
    return result.end != ProcessResult::End::exited || result.code != 1;
  }

 private:
  static bool is_commit(const std::string& text) {
    return text.size() >= 7 && text.size() <= 64 &&
           text.find_first_not_of("0123456789abcdef") == std::string::npos;
  }

  const Project& project_;
  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> executor_;
};

std::string written(const CauseReport& report, const std::string& format) {
  if (format == "html") return cause_report_html(report);
  if (format == "json") return cause_report_json(report);
  return cause_report_markdown(report);
}

class Reporting {
 public:
  Reporting(const ReportCommand& command, const Project& project)
      : command_(command), project_(project), order_(project) {}

  Result<int> operator()() {
    if (auto checked = check(); !checked) return checked.error();
    auto config = command_.configuration.load(project_);
    if (!config) return config.error();
    address_ = command_.history.address(project_, *config);
    auto store = open_store_to_read(address_);
    if (!store) return store.error();
    store_ = std::move(*store);
    request_ = {command_.days, command_.most, command_.format != "md",
                std::chrono::system_clock::now(), command_.quarantine.file(project_)};
    contains_ = [this](const std::string& commit, const std::string& earlier) {
      return order_.contains(commit, earlier);
    };
    auto gathered = gather_report(*store_, project_, address_.project, request_, contains_);
    if (!gathered) return gathered.error();
    return command_.issues.any() ? care(*gathered) : tell(*gathered);
  }

 private:
  Result<void> check() const {
    const IssueOptions& issues = command_.issues;
    if (!issues.github.empty() && !issues.gitlab.empty())
      return usage_error("--github and --gitlab cannot be used together");
    if ((issues.send || !issues.api.empty()) && !issues.any())
      return usage_error("--send and --api are for issues", "", "add --github or --gitlab");
    if (command_.out.empty()) return {};
    return prepare_output_file(command_.out);
  }

  Result<int> tell(GatheredReport& gathered) {
    const std::string text = written(gathered.report, command_.format);
    if (command_.out.empty()) {
      Page page;
      page.print("{}", text);
      return page.write_out();
    }
    if (auto replaced = replace_file(command_.out, text); !replaced) return replaced.error();
    Page page;
    page.print("{} in {}\n", counted_causes(gathered), printable(command_.out));
    return page.write_out();
  }

  static std::string counted_causes(const GatheredReport& gathered) {
    return counted(static_cast<long long>(gathered.report.causes.size()), "cause");
  }

  Result<int> care(GatheredReport& gathered) {
    if (command_.issues.send) {
      auto store = open_store(address_);
      if (!store) return store.error();
      store_ = std::move(*store);
      if (auto saved = save_causes(*store_, gathered, request_.now); !saved) return saved.error();
    }
    Page page;
    const auto cared = care_for_issues(page, *store_, gathered, address_.project, command_.issues,
                                       request_, contains_);
    const int shown = page.write_out();
    if (!cared) return cared.error();
    return shown;
  }

  const ReportCommand& command_;
  const Project& project_;
  CommitOrder order_;
  Contains contains_;
  StoreAddress address_;
  std::unique_ptr<Store> store_;
  ReportRequest request_;
};

}  // namespace

int report_command(const Words& words) {
  ReportCommand command;
  CommandLine line("report", report_help);
  line.option("--days", command.days, "how far to look back [30]").between(1, 3650);
  line.option("--most", command.most, "how many causes to tell of [50]").between(1, 100'000);
  line.option("--format", command.format, "md, html or json").one_of({"md", "html", "json"});
  line.option("--out", command.out, "write to a file").takes("FILE");
  line.option("--github", command.issues.github, "look after the issues of this repository")
      .takes("OWNER/REPO");
  line.option("--gitlab", command.issues.gitlab, "look after the issues of this project")
      .takes("GROUP/PROJECT");
  line.option("--api", command.issues.api, "the REST API of a server of your own").takes("URL");
  line.flag("--send", command.issues.send, "do it, instead of saying what would be done");
  command.history.add_to(line);
  command.configuration.add_to(line);
  command.quarantine.add_to(line);
  if (const auto done = line.parse(words)) return *done;
  const auto project = find_project();
  if (!project) return report_error(project.error());
  const auto code = Reporting(command, *project)();
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
