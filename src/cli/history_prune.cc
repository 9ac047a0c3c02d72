#include <fmt/format.h>

#include "cli/history.h"
#include "cli/options.h"
#include "cli/page.h"
#include "cli/transfer_progress.h"
#include "report/style.h"
#include "store/values.h"

namespace unflake {
namespace {

constexpr const char* help =
    R"(Forgets single runs that are older than is worth keeping. The sums over all runs stay: rates, durations,
signatures, and which builds were hit by flaky failures.

  unflake history prune --keep-passing-runs 90d --keep-failing-runs 365d --keep-outputs 30d
  unflake history prune              as [history] of the configuration says
  unflake history prune --dry-run    only count

No other command forgets anything: run this one at night.)";

struct PruneCommand {
  Retention retention;
  bool dry_run = false;
  StoreOptions history;
  ConfigOptions configuration;
};

void inherit(Retention& retention, const Retention& configured) {
  if (!retention.passing_runs) retention.passing_runs = configured.passing_runs;
  if (!retention.failing_runs) retention.failing_runs = configured.failing_runs;
  if (!retention.outputs) retention.outputs = configured.outputs;
}

struct PruneCount {
  RetentionCount going, staying;
};

// Reads every run: a store knows what it has forgotten only when it has.
Result<PruneCount> look(Store& store, const Retention& retention, TimePoint now) {
  PruneCount count;
  TransferProgress progress("looked at");
  int64_t runs = 0;
  const auto is_old = [&](const RunRecord& run, const std::optional<Duration>& kept) {
    return kept && run.started < now - *kept;
  };
  const Store::Visitor visitor{
      .session = [](const SessionRecord&) { return Result<void>(); },
      .run =
          [&](const RunRecord& run) {
            progress.show(++runs);
            const auto& kept =
                is_failing(run.outcome) ? retention.failing_runs : retention.passing_runs;
            ++(is_old(run, kept) ? count.going : count.staying).runs;
            if (!run.output.empty())
              ++(is_old(run, retention.outputs) ? count.going : count.staying).outputs;
            return Result<void>();
          },
      .suppression = {}};
  const auto visited = store.visit(visitor);
  if (!visited) return visited.error();
  return count;
}

std::string kept_text(const char* what, const std::optional<Duration>& kept) {
  return kept ? fmt::format("{} of the last {:.4g} days", what,
                            static_cast<double>(kept->count()) / 86400e6)
              : fmt::format("all {}", what);
}

std::string policy_text(const Retention& retention) {
  return fmt::format("kept: {}, {}, {}", kept_text("passing runs", retention.passing_runs),
                     kept_text("failing runs", retention.failing_runs),
                     kept_text("outputs", retention.outputs));
}

std::string text_of(const RetentionCount& count) {
  return fmt::format("{} and {}", counted(count.runs, "run"), counted(count.outputs, "output"));
}

Result<void> prune(Page& page, const PruneCommand& command, const StoreAddress& address) {
  const Retention& retention = command.retention;
  const auto now = std::chrono::system_clock::now();
  auto store = command.dry_run ? open_store_to_read(address) : open_store(address);
  if (!store) return store.error();
  if (command.dry_run) {
    const auto count = look(**store, retention, now);
    if (!count) return count.error();
    page.print("{} would go, {} would stay\n", text_of(count->going), text_of(count->staying));
  } else {
    const auto gone = (*store)->forget(retention, now);
    if (!gone) return gone.error();
    page.print("{} went\n", text_of(*gone));
  }
  page.print("{}; the sums over all runs stay\n", policy_text(retention));
  return {};
}

}  // namespace

int history_prune_command(const Words& words) {
  PruneCommand command;
  CommandLine line("history prune", help);
  line.option("--keep-passing-runs", command.retention.passing_runs,
              "forget passing and skipped runs that are older");
  line.option("--keep-failing-runs", command.retention.failing_runs,
              "forget failing runs that are older");
  line.option("--keep-outputs", command.retention.outputs,
              "forget the output of failing runs that are older");
  line.flag("--dry-run", command.dry_run, "only count what would go");
  command.history.add_to(line);
  command.configuration.add_to(line);
  if (const auto done = line.parse(words)) return *done;

  const auto project = find_project();
  if (!project) return report_error(project.error());
  const auto config = command.configuration.load(*project);
  if (!config) return report_error(config.error());
  inherit(command.retention, config->history.retention);
  if (!command.retention.passing_runs && !command.retention.failing_runs &&
      !command.retention.outputs)
    return report_error(
        usage_error("nothing says what may be forgotten", "",
                    "give --keep-passing-runs 90d, or set keep_passing_runs in [history] of " +
                        command.configuration.file(*project)));
  Page page;
  const auto pruned = prune(page, command, command.history.address(*project, *config));
  const int written = page.write_out();
  return pruned ? written : report_error(pruned.error());
}

}  // namespace unflake
