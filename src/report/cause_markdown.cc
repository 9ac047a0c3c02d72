#include <fmt/format.h>

#include "model/cause_report.h"
#include "report/markdown_text.h"
#include "report/style.h"
#include "report/timestamp.h"
#include "stats/rates.h"

namespace unflake {
namespace {

class MarkdownWriter {
 public:
  std::string take() { return std::move(text_); }

  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  void facts(const ReportedCause& cause, Day today) {
    for (const CauseFact& fact : facts_of(cause, today))
      put("- **{}:** {}\n", fact.label,
          fact.is_foreign ? markdown_code(fact.text, 500) : fact.text);
    put("\n");
  }

  void tests(const ReportedCause& cause) {
    put("| test | failure | rate | builds | last seen (UTC) |\n|---|---|---|---:|---|\n");
    for (const ReportedTest& test : cause.tests)
      put("| {} | {} | {} | {} | {} |\n", markdown_code(to_string(test.test)),
          markdown_code(test.headline), rate_text(test.failures, test.runs), test.builds,
          timestamp_in_minutes(test.last));
    if (cause.tests_left_out > 0)
      put("\n{} not listed.\n",
          counted(static_cast<long long>(cause.tests_left_out), "more failure"));
    put("\n");
  }

  void repro(const ReportedRepro& repro) {
    put("**Reproduced:** {}", markdown_code(repro.how_often, 500));
    if (!repro.slack.empty()) put("; slack {}", markdown_code(repro.slack));
    put("\n\n");
    if (!repro.category.empty()) put("**Root cause:** {}. {}\n\n", repro.category, repro.advice);
    for (const std::string& line : repro.story) put("- {}\n", markdown_code(line, 500));
    put("\n{}\n", markdown_block(repro.replay + "\n" + repro.explain));
  }

  void what_next(const std::string& command) {
    if (command.empty()) return;
    put("Not reproduced yet. Next:\n\n{}\n", markdown_block(command));
  }

 private:
  std::string text_;
};

std::string heading_of(const ReportedCause& cause) {
  if (cause.tests.empty()) return fmt::format("cause {}", cause.id);
  const size_t more = cause.tests.size() - 1 + cause.tests_left_out;
  std::string heading = markdown_code(to_string(cause.tests.front().test), 150);
  if (more > 0) heading += " and " + counted(static_cast<long long>(more), "more test");
  if (cause.id != 0) heading += fmt::format(" (cause {})", cause.id);
  return heading;
}

}  // namespace

std::string cause_markdown(const ReportedCause& cause, Day today) {
  MarkdownWriter out;
  out.put("{}\n\n", markdown_code(cause.title, 300));
  out.facts(cause, today);
  out.tests(cause);
  if (cause.repro)
    out.repro(*cause.repro);
  else
    out.what_next(cause.next);
  return out.take();
}

std::string cause_report_markdown(const CauseReport& report) {
  MarkdownWriter out;
  out.put("# Flaky tests{}\n\n",
          report.project.empty() ? "" : " of " + markdown_code(report.project));
  out.put("Drawn from {}.\n\n", evidence_of(report));
  if (report.causes.empty()) out.put("No test failed and passed on the same code.\n");
  size_t number = 0;
  for (const ReportedCause& cause : report.causes)
    out.put("## {}. {}\n\n{}", ++number, heading_of(cause), cause_markdown(cause, report.today));
  if (report.causes_left_out > 0)
    out.put("{} hit fewer builds and are left out; `--most N` shows them.\n",
            counted(static_cast<long long>(report.causes_left_out), "more cause"));
  return out.take();
}

}  // namespace unflake
