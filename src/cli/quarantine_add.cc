#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "app/project.h"
#include "cli/quarantine_command.h"
#include "lifecycle/gate.h"
#include "lifecycle/owners.h"
#include "lifecycle/quarantine.h"
#include "run/interrupts.h"
#include "run/local_executor.h"
#include "util/result.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* quarantine_add_help =
    R"(Puts a flaky failure of a test into the quarantine, or extends the time that it stays there.

  unflake quarantine add server_test:Server.Push --reason 'races with the acceptor'
  unflake quarantine add Server.Push --signature 8c7b35ab158e3e23 --days 14

Without --signature it is the most recent failure that history shows as flaky: the test passed on
the same code. A test that fails always is broken, and refused.)";

constexpr int most_days = 366;
constexpr size_t most_failures = 100'000;
constexpr size_t looked_at = 10;  // runs, to tell broken from flaky
constexpr size_t longest_headline = 200;

struct AddWords {
  std::string test, signature, reason, owner, issue, expires;
  std::optional<int> days;
  bool force = false;
};

// A failure that is to be added.
struct KnownFailure {
  std::string signature;
  std::optional<Failure> failure;
};

class Addition {
 public:
  Addition(const QuarantineDesk& desk, const AddWords& words, Launcher& launcher)
      : desk_(desk), words_(words), launcher_(launcher) {}

  Result<int> operator()() {
    auto store = desk_.read_history();
    if (!store) return store.error();
    store_ = std::move(*store);
    const auto quarantine = load_quarantine(desk_.file);
    if (!quarantine) return quarantine.error();
    auto test = find_test(words_.test, store_.get(), *quarantine);
    if (!test) return test.error();
    test_ = std::move(*test);
    if (const auto read = read_summary(); !read) return read.error();
    const auto failure = choose_failure(*quarantine);
    if (!failure) return failure.error();
    if (const auto fit = check_fit(*failure); !fit) return fit.error();
    auto entry = entry_for(*failure, quarantine->find(test_, failure->signature));
    if (!entry) return entry.error();
    const auto edited = edit_quarantine(
        desk_.file, [&](const std::string& text) { return with_entry(text, desk_.file, *entry); });
    if (!edited) return edited.error();
    const QuarantineEntry* old = quarantine->find(test_, failure->signature);
    const std::string past = past_of(entry->signature);
    desk_.note({lifecycle_step(LifecycleStep::Kind::quarantined, *entry, desk_.now)});
    return tell(*entry, old, past);
  }

 private:
  Result<void> read_summary() {
    if (!store_) return {};
    auto summary = store_->summarise_test(test_);
    if (!summary) return summary.error();
    summary_ = std::move(*summary);
    return {};
  }

  Result<KnownFailure> choose_failure(const Quarantine& quarantine) {
    if (!words_.signature.empty()) return given_failure();
    if (!summary_)
      return usage_error(fmt::format("the history has no test {}", printable(to_string(test_))), "",
                         similar_tests(words_.test, store_.get(), quarantine)
                             .value_or("name its failure with --signature"));
    if (summary_->failures == 0)
      return usage_error(
          fmt::format("the history has no failure of {}", printable(to_string(test_))), "",
          "name the failure with --signature");
    const auto flaky = store_->lifecycle().flaky_failures({}, most_failures);
    if (!flaky) return flaky.error();
    const FlakyFailure* newest = nullptr;
    for (const FlakyFailure& failure : *flaky)
      if (failure.test == test_ && (!newest || failure.last > newest->last)) newest = &failure;
    if (newest) return KnownFailure{newest->signature, newest->failure};
    if (words_.force) return latest_failure();
    return no_flaky_failure();
  }

  Error no_flaky_failure() const {
    const std::string test = printable(to_string(test_));
    if (summary_->passes == 0)
      return usage_error(
          summary_->failures == 1
              ? test + " is not known to be flaky: it failed in its only run"
              : fmt::format("{} looks broken, not flaky: it failed in all of its {} "
                            "runs",
                            test, summary_->failures),
          "",
          "fix it; --force quarantines its latest failure anyway, --force --signature another one");
    return usage_error(
        fmt::format("{} failed in {} of {} runs, but no failure is known to be flaky: it never "
                    "passed on the same code",
                    test, summary_->failures, summary_->failures + summary_->passes),
        "",
        "if it is flaky and not broken, name the failure with --signature (`unflake history TEST` "
        "lists them), or take the latest one with --force");
  }

  Result<KnownFailure> given_failure() const {
    if (!is_signature(words_.signature))
      return usage_error(fmt::format("'{}' is not a signature", printable(words_.signature)), "",
                         "give the 16 hexadecimal digits that `unflake history TEST` shows");
    KnownFailure given{words_.signature, std::nullopt};
    if (!summary_) return given;
    const auto found =
        std::ranges::find(summary_->signatures, given.signature, &SignatureSummary::signature);
    const bool all_known = std::ssize(summary_->signatures) >= summary_->signature_count;
    if (found != summary_->signatures.end())
      given.failure = found->failure;
    else if (all_known && !words_.force)
      return usage_error(fmt::format("the history has no failure {} of {}", given.signature,
                                     printable(to_string(test_))),
                         "", "`unflake history TEST` lists them; --force takes it anyway");
    return given;
  }

  Result<KnownFailure> latest_failure() const {
    const auto latest = std::ranges::max_element(summary_->signatures, {}, &SignatureSummary::last);
    if (latest == summary_->signatures.end())
      return usage_error("history has no signature of its failures", "", "give --signature");
    return KnownFailure{latest->signature, latest->failure};
  }

  // Quarantine is for tests that also pass; it must not become a home for broken ones.
  Result<void> check_fit(const KnownFailure& failure) {
    if (words_.force || !summary_) return {};
    if (failure.failure && is_sanitizer(failure.failure->kind))
      return usage_error("what a sanitizer reports is a defect, not a flake",
                         printable(headline(*failure.failure)), "fix it, or use --force");
    if (failure.failure && is_without_place(*failure.failure))
      return usage_error(
          fmt::format("\"{}\" does not say where, so that it would cover every future one of {}",
                      printable(headline(*failure.failure)), printable(to_string(test_))),
          "", how_to_get_a_place(*failure.failure));
    const auto recent = store_->recent_runs(test_, looked_at);
    if (!recent) return recent.error();
    const auto failed = std::ranges::count_if(*recent, [](const RecentRun& run) {
      return run.outcome != OutcomeKind::pass && run.outcome != OutcomeKind::skipped;
    });
    if (failed < 2 || failed < std::ssize(*recent)) return {};
    return usage_error(fmt::format("{} is broken, not flaky: it failed in all of its last {} runs",
                                   printable(to_string(test_)), failed),
                       "", "fix it, or use --force");
  }

  static std::string how_to_get_a_place(const Failure& failure) {
    if (failure.kind == FailureKind::timeout)
      return "run it with `unflake run` until it hangs again, which tells where its threads are; "
             "or use --force";
    if (!has_crash_place(failure))
      return "it comes from outside of the code that it ends, so that no run will tell where: find "
             "out who sends it, or use --force";
    return "it may be from a report or an older recording: run it with `unflake run` until it "
           "fails "
           "again, which tells where, unless the stack was used up or overwritten; or use --force";
  }

  static bool has_crash_place(const Failure& failure) {
    constexpr int told_with_place[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
    return std::ranges::any_of(told_with_place, [&](int signal) {
      return failure.message.starts_with(signal_name(signal));
    });
  }

  // What is not given again stays as it was.
  Result<QuarantineEntry> entry_for(const KnownFailure& failure, const QuarantineEntry* old) {
    QuarantineEntry entry = old ? *old : QuarantineEntry();
    entry.test = test_;
    entry.signature = failure.signature;
    if (failure.failure)
      entry.failure = printable(shorten(headline(*failure.failure), longest_headline));
    if (!words_.reason.empty()) entry.reason = words_.reason;
    if (!words_.owner.empty()) entry.owner = words_.owner;
    if (entry.owner.empty() && failure.failure) entry.owner = owner_of(failure.failure->file);
    if (!words_.issue.empty()) entry.issue = words_.issue;
    if (!old) entry.since = desk_.today;
    if (!old) entry.commit = survey(desk_.project, launcher_).commit;
    const auto expires = last_day();
    if (!expires) return expires.error();
    entry.expires = *expires;
    return entry;
  }

  Result<Day> last_day() const {
    const int days = words_.days.value_or(desk_.config.ci.quarantine_days.value_or(30));
    if (words_.expires.empty()) return desk_.today + std::chrono::days(days);
    const auto day = parse_day(words_.expires);
    if (!day)
      return usage_error(fmt::format("'{}' is not a day", printable(words_.expires)), "",
                         "write it like 2026-03-31");
    if (*day < desk_.today)
      return usage_error(fmt::format("{} is over", words_.expires), "", "choose a later day");
    return *day;
  }

  // Failures often name their file without its folder; git knows where it is.
  std::string owner_of(const std::string& file) {
    const Owners owners = load_owners(desk_.project.root);
    if (owners.empty() || file.empty()) return "";
    std::string path = repository_path(file, desk_.project.root);
    std::error_code failed;
    if (path.empty() || !std::filesystem::exists(desk_.project.root + "/" + path, failed)) {
      Command git;
      const std::string name = std::filesystem::path(file).filename();
      git.argv = {"git", "ls-files", "-z", "--", ":(glob)**/" + name};
      git.cwd = desk_.project.root;
      const auto result = launcher_.launch(git, std::chrono::seconds(30));
      const auto found = split(result.output.text(), '\0');
      path = found.size() == 2 ? found[0] : "";  // one, and what comes after its end
    }
    return join(owners.of(path), " ");
  }

  std::string past_of(const std::string& signature) {
    if (!store_) return "";
    const auto steps = store_->lifecycle().steps({});
    if (!steps) return "";
    const std::string past = past_quarantine(*steps, test_, signature);
    if (past.empty()) return "";
    return past + (failed_since_the_end_in(*steps, signature) ? "; failed again"
                                                              : "; no failure is known since");
  }

  bool failed_since_the_end_in(const std::vector<LifecycleStep>& steps,
                               const std::string& signature) {
    using Kind = LifecycleStep::Kind;
    TimePoint ended = TimePoint::min();
    for (const LifecycleStep& step : steps) {
      const bool is_end = step.kind == Kind::lifted || step.kind == Kind::expired;
      const bool is_about_it = step.signature.empty() || step.signature == signature;
      if (is_end && is_about_it && step.test == test_) ended = std::max(ended, step.at);
    }
    const auto since = store_->count_runs(test_, signature, {ended, TimePoint::max()});
    return since && since->with_signature > 0;
  }

  static std::string change_text(const QuarantineEntry& entry, const QuarantineEntry* old) {
    if (!old) return "";
    const std::string before = format_day(old->expires);
    if (entry.expires > old->expires) return fmt::format(", extended: it was until {}", before);
    if (entry.expires < old->expires) return fmt::format(", shortened: it was until {}", before);
    return ", as before: the entry was there";
  }

  int tell(const QuarantineEntry& entry, const QuarantineEntry* old,
           const std::string& past) const {
    Page page;
    page.print("{} {} is in quarantine until {}{}\n", printable(to_string(entry.test)),
               entry.signature, format_day(entry.expires), change_text(entry, old));
    if (!entry.failure.empty()) page.print("  failure: {}\n", entry.failure);
    if (!entry.owner.empty()) page.print("  owner:   {}\n", printable(entry.owner));
    if (!past.empty()) page.print("  again:   {}\n", past);
    page.print("  next:    commit {}\n", printable(path_from_here(desk_.file)));
    return page.write_out();
  }

  const QuarantineDesk& desk_;
  const AddWords& words_;
  Launcher& launcher_;
  std::unique_ptr<Store> store_;
  TestId test_;
  std::optional<TestSummary> summary_;
};

Result<int> add(const QuarantineDesk& desk, const AddWords& words) {
  if (words.days && !words.expires.empty())
    return usage_error("--days and --expires cannot be used together");
  Interrupts interrupts;
  const auto executor = LocalExecutor::create({}, interrupts);
  if (!executor) return executor.error();
  return Addition(desk, words, **executor)();
}

}  // namespace

int quarantine_add(const Words& words) {
  AddWords add_words;
  CommandLine line("quarantine add", quarantine_add_help);
  line.option("test", add_words.test, "target:name, or a name that only one has").required();
  line.option("--signature", add_words.signature, "which failure [the most recent flaky one]");
  line.option("--reason", add_words.reason, "what is known about it");
  line.option("--owner", add_words.owner, "who fixes it [CODEOWNERS]");
  line.option("--issue", add_words.issue, "where that is tracked").takes("URL");
  line.option("--days", add_words.days, "for how long [30]").between(0, most_days);
  line.option("--expires", add_words.expires, "the last day").takes("DAY");
  line.flag("--force", add_words.force, "though the test seems to be broken");
  return act_at_desk(line, words, [&](const auto& desk) { return add(desk, add_words); });
}

}  // namespace unflake
