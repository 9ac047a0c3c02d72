#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "cli/quarantine_command.h"
#include "lifecycle/gate.h"
#include "lifecycle/quarantine.h"
#include "report/layout.h"
#include "stats/rates.h"
#include "util/json.h"
#include "util/text.h"
#include "util/time.h"

namespace unflake {
namespace {

constexpr const char* quarantine_help =
    R"(Known failures that do not fail builds for a while, in .unflake/quarantine.toml, which
belongs in version control. Their tests still run; another failure of such a test fails the build.

  unflake quarantine add TEST         its most recent flaky failure, for 30 days
  unflake quarantine list             what is in it, for how long, and what may leave
  unflake quarantine expire           takes out what has expired
  unflake quarantine lift TEST        takes out a test that was fixed

An entry of the file:

  [[test]]
  id = "server_test:Server.Push"
  signature = "8c7b35ab158e3e23"
  failure = "server_test.cc:42: queue.size() == 1"
  reason = "races with the acceptor"
  owner = "@net"
  issue = "https://example.com/issues/7"
  since = 2026-03-01
  expires = 2026-03-31
  commit = "0123abcd"

`unflake quarantine add --help` and so on show the options.)";

constexpr const char* expire_help =
    R"(Takes the entries out whose last day is over. A failure that they were about then fails the
build like any other.)";

constexpr const char* lift_help =
    R"(Takes a test's entries out, and remembers how it left: when such a failure comes back, it is
told that it was thought to be fixed.

  unflake quarantine lift server_test:Server.Push --fixed-by 0123abcd)";

std::string line_of(const QuarantineEntry& entry) {
  return fmt::format("{} {} ({}..{})", printable(to_string(entry.test)), entry.signature,
                     format_day(entry.since), format_day(entry.expires));
}

using Goes = std::function<bool(const QuarantineEntry&)>;

// Returns what was removed.
Result<std::vector<QuarantineEntry>> take_out(const QuarantineDesk& desk, const Goes& goes) {
  std::vector<QuarantineEntry> gone;
  const auto edited =
      edit_quarantine(desk.file, [&](const std::string& text) -> Result<std::string> {
        gone.clear();
        return without_entries(text, desk.file, [&](const QuarantineEntry& entry) {
          if (goes(entry)) gone.push_back(entry);
          return goes(entry);
        });
      });
  if (!edited) return edited.error();
  return gone;
}

Result<int> expire(const QuarantineDesk& desk, bool dry_run) {
  const auto quarantine = load_quarantine(desk.file);
  if (!quarantine) return quarantine.error();
  const Goes goes = [&](const QuarantineEntry& entry) { return entry.has_expired(desk.today); };
  std::vector<QuarantineEntry> gone;
  std::ranges::copy_if(quarantine->entries(), std::back_inserter(gone), goes);
  if (!dry_run && !gone.empty()) {
    auto taken = take_out(desk, goes);
    if (!taken) return taken.error();
    gone = std::move(*taken);
    std::vector<LifecycleStep> steps;
    for (const QuarantineEntry& entry : gone)
      steps.push_back(lifecycle_step(LifecycleStep::Kind::expired, entry, desk.now));
    desk.note(steps);
  }
  Page page;
  for (const QuarantineEntry& entry : gone) page.print("{}\n", line_of(entry));
  page.print("{} {}\n",
             gone.size() == 1 ? "1 entry has" : fmt::format("{} entries have", gone.size()),
             dry_run ? "expired" : "expired and been taken out");
  return page.write_out();
}

struct LiftWords {
  std::string test, signature, fixed_by, reason;
};

Result<int> lift(const QuarantineDesk& desk, const LiftWords& words) {
  const auto quarantine = load_quarantine(desk.file);
  if (!quarantine) return quarantine.error();
  const auto test = find_test(words.test, nullptr, *quarantine);
  if (!test) return test.error();
  const auto gone = take_out(desk, [&](const QuarantineEntry& entry) {
    return entry.test == *test && (words.signature.empty() || entry.signature == words.signature);
  });
  if (!gone) return gone.error();
  if (gone->empty())
    return usage_error(fmt::format("{} has no such entry in the quarantine", printable(words.test)),
                       desk.file,
                       similar_tests(words.test, nullptr, *quarantine)
                           .value_or("`unflake quarantine list` shows what is in it"));
  std::vector<LifecycleStep> steps;
  Page page;
  for (const QuarantineEntry& entry : *gone) {
    steps.push_back(lifecycle_step(LifecycleStep::Kind::lifted, entry, desk.now));
    steps.back().commit = words.fixed_by;
    steps.back().reason = words.reason;
    page.print("lifted {}\n", line_of(entry));
  }
  desk.note(steps);
  return page.write_out();
}

int expire_command(const Words& words) {
  bool dry_run = false;
  CommandLine line("quarantine expire", expire_help);
  line.flag("--dry-run", dry_run, "show them and leave them in");
  return act_at_desk(line, words, [&](const auto& desk) { return expire(desk, dry_run); });
}

int lift_command(const Words& words) {
  LiftWords lifted;
  CommandLine line("quarantine lift", lift_help);
  line.option("test", lifted.test, "target:name, or a name that only one has").required();
  line.option("--signature", lifted.signature, "only this failure [all of the test]");
  line.option("--fixed-by", lifted.fixed_by, "the commit that fixed it");
  line.option("--reason", lifted.reason, "why it may leave");
  return act_at_desk(line, words, [&](const auto& desk) { return lift(desk, lifted); });
}

struct Action {
  const char* name;
  int (*run)(const Words& words);
};

constexpr Action actions[] = {{"add", quarantine_add},
                              {"list", quarantine_list},
                              {"expire", expire_command},
                              {"lift", lift_command}};

}  // namespace

Result<std::unique_ptr<Store>> QuarantineDesk::read_history() const {
  std::error_code failed;
  if (!is_postgres(history) && !std::filesystem::exists(history.url, failed))
    return std::unique_ptr<Store>();
  return open_store_to_read(history);
}

void QuarantineDesk::note(const std::vector<LifecycleStep>& steps) const {
  auto store = open_store(history);
  Result<void> noted = store ? Result<void>() : Result<void>(store.error());
  for (const LifecycleStep& step : steps)
    if (noted) noted = (*store)->lifecycle().note(step);
  if (!noted)
    fmt::print(stderr, "unflake: the history does not know of this: {}\n",
               to_string(noted.error()));
}

namespace {

// What every action on the quarantine takes.
struct QuarantineWords {
  QuarantineOptions quarantine;
  StoreOptions history;
  ConfigOptions configuration;
};

Result<QuarantineDesk> open_desk(const QuarantineWords& words) {
  QuarantineDesk desk;
  auto known = words.configuration.find();
  if (!known) return known.error();
  desk.project = std::move(known->project);
  desk.config = std::move(known->config);
  desk.file = words.quarantine.file(desk.project);
  desk.history = words.history.address(desk.project, desk.config);
  desk.now = std::chrono::system_clock::now();
  desk.today = day_of(desk.now);
  make_folder(desk.project);
  return desk;
}

}  // namespace

int act_at_desk(CommandLine& line, const Words& words,
                const std::function<Result<int>(const QuarantineDesk& desk)>& work) {
  QuarantineWords common;
  common.quarantine.add_to(line);
  common.history.add_to(line);
  common.configuration.add_to(line);
  if (const auto done = line.parse(words)) return *done;
  const auto desk = open_desk(common);
  if (!desk) return report_error(desk.error());
  const auto code = work(*desk);
  return code ? *code : report_error(code.error());
}

Result<TestId> find_test(const std::string& word, Store* store, const Quarantine& quarantine) {
  const auto id = test_id_from(word);
  if (id && !quarantine.of(*id).empty()) return *id;
  std::set<TestId> found;
  for (const QuarantineEntry& entry : quarantine.entries())
    if (entry.test.name == word) found.insert(entry.test);
  if (store) {
    const auto exact = store->summarise_test(id.value_or(TestId()));
    if (!exact) return exact.error();
    if (id && *exact) return *id;
    const auto tests = store->summarise("*:" + word, 3);
    if (!tests) return tests.error();
    for (const TestSummary& test : *tests)
      if (test.test.name == word) found.insert(test.test);
  }
  if (found.size() == 1) return *found.begin();
  if (found.size() > 1)
    return usage_error(fmt::format("several targets have a test '{}'", printable(word)), "",
                       fmt::format("write {}", printable(to_string(*found.begin()))));
  if (id) return *id;
  return usage_error(
      fmt::format("no test '{}' is known", printable(word)), "",
      similar_tests(word, store, quarantine)
          .value_or("write target:name; `unflake history` lists the recorded tests"));
}

namespace {

std::set<TestId> known_tests(Store* store, const Quarantine& quarantine) {
  constexpr size_t most = 20'000;
  std::set<TestId> known;
  for (const QuarantineEntry& entry : quarantine.entries()) known.insert(entry.test);
  if (!store) return known;
  const auto recorded = store->summarise("*", most);
  if (!recorded) return known;
  for (const TestSummary& test : *recorded) known.insert(test.test);
  return known;
}

}  // namespace

std::optional<std::string> similar_tests(const std::string& word, Store* store,
                                         const Quarantine& quarantine) {
  constexpr size_t shown = 3, longest = 500;
  std::map<std::string, std::string> id_of;  // by what the user may have meant to write
  const bool is_id = word.find(':') != word.npos;
  for (const TestId& test : known_tests(store, quarantine))
    if (test.name.size() <= longest)
      id_of.emplace(is_id ? to_string(test) : test.name, to_string(test));
  std::vector<std::string> names, near;
  for (const auto& [name, id] : id_of) names.push_back(name);
  for (const std::string& name : nearest(word.substr(0, longest), names, shown))
    near.push_back("'" + printable(id_of[name]) + "'");
  if (near.empty()) return std::nullopt;
  return "did you mean " + join(near, " or ") + "?";
}

int quarantine_command(const Words& words) {
  if (!words.options.empty())
    for (const Action& action : actions)
      if (words.options.front() == action.name) {
        Words rest = words;
        rest.options.erase(rest.options.begin());
        return action.run(rest);
      }
  CommandLine line("quarantine", quarantine_help);
  if (const auto done = line.parse(words)) return *done;
  return report_error(usage_error("the quarantine needs an action", "",
                                  "write add, list, expire or lift after it"));
}

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* list_help =
    R"(Lists what is in the quarantine: how many days are left, in how many builds the failure was
suppressed, when it was last seen, how many runs since then were clean and what rate these leave
open, and which entries may be lifted or are stale.

SUPPRESSED IN counts the builds since the entry began that would have failed by this failure alone.
One of them may still have failed by another test.)";

constexpr std::chrono::days stale_after{30};

struct ListedEntry {
  QuarantineEntry entry;
  int64_t days_left = 0;
  std::optional<QuarantinedPast> past;  // none: the history does not say
  int64_t suppressed_builds = 0;
  bool may_be_lifted = false;
  bool stale = false;  // its test has not run for long
};

Result<ListedEntry> looked_up(const QuarantineEntry& entry, const QuarantineDesk& desk,
                              Store* store) {
  ListedEntry listed;
  listed.entry = entry;
  listed.days_left = (entry.expires - desk.today).count();
  if (!store) return listed;
  const auto past = past_of(*store, entry);
  if (!past) return past.error();
  listed.past = *past;
  const auto builds = store->lifecycle().count_suppressed_builds(
      entry.test, entry.signature, {TimePoint(entry.since), TimePoint::max()});
  if (!builds) return builds.error();
  listed.suppressed_builds = *builds;
  LiftRule rule;
  rule.least_runs = desk.config.ci.lift_runs.value_or(static_cast<int>(rule.least_runs));
  listed.may_be_lifted = may_be_lifted(past->runs, rule);
  listed.stale = past->last_run.value_or(TimePoint(entry.since)) + stale_after < desk.now;
  return listed;
}

Result<std::vector<ListedEntry>> look_up_all(const QuarantineDesk& desk) {
  const auto quarantine = load_quarantine(desk.file);
  if (!quarantine) return quarantine.error();
  const auto store = desk.read_history();
  if (!store) return store.error();
  std::vector<ListedEntry> all;
  for (const QuarantineEntry& entry : quarantine->entries()) {
    auto listed = looked_up(entry, desk, store->get());
    if (!listed) return listed.error();
    all.push_back(std::move(*listed));
  }
  return all;
}

std::string left_text(int64_t days) {
  return days < 0 ? "expired" : fmt::format("{}", days);
}

std::string bound_text(const CleanRuns& runs) {
  if (runs.clean == 0) return "0";
  return fmt::format("{} (below {:.1f} %)", runs.clean,
                     100 * upper_bound_zero_failures(runs.clean));
}

void print_table(Page& page, const std::vector<ListedEntry>& all) {
  if (all.empty()) return page.print("nothing is in quarantine\n");
  Table table({"TEST", "SIGNATURE", "UNTIL", "DAYS LEFT", "OWNER", "SUPPRESSED IN",
               "LAST SEEN (UTC)", "CLEAN RUNS SINCE"});
  for (const ListedEntry& listed : all) {
    const QuarantineEntry& entry = listed.entry;
    const bool seen = listed.past && listed.past->last_seen;
    table.add({to_string(entry.test), entry.signature, format_day(entry.expires),
               left_text(listed.days_left), entry.owner.empty() ? "-" : entry.owner,
               listed.past ? counted(listed.suppressed_builds, "build") : "-",
               seen ? timestamp_in_minutes(*listed.past->last_seen) : "-",
               listed.past ? bound_text(listed.past->runs) : "-"});
  }
  page.print("{}", table.text());
  for (const ListedEntry& listed : all) {
    const std::string test = printable(to_string(listed.entry.test));
    if (listed.may_be_lifted)
      page.print("\n{} may be lifted: {}\n  next: unflake quarantine lift {} --signature {}\n",
                 test, clean_runs_text(listed.past->runs),
                 shell_quote(to_string(listed.entry.test)), listed.entry.signature);
    if (listed.stale)
      page.print("\n{} is stale: it has not run for {} days\n", test, stale_after.count());
  }
}

Json json_of(const ListedEntry& listed) {
  const QuarantineEntry& entry = listed.entry;
  Json object{{"test", printable(to_string(entry.test))}, {"signature", entry.signature},
              {"failure", printable(entry.failure)},      {"reason", printable(entry.reason)},
              {"owner", printable(entry.owner)},          {"issue", printable(entry.issue)},
              {"since", format_day(entry.since)},         {"expires", format_day(entry.expires)},
              {"commit", printable(entry.commit)},        {"days_left", listed.days_left},
              {"expired", listed.days_left < 0}};
  if (!listed.past) return object;
  const CleanRuns& runs = listed.past->runs;
  object["suppressed_builds"] = listed.suppressed_builds;
  if (listed.past->last_seen) object["last_seen"] = timestamp_in_seconds(*listed.past->last_seen);
  object["clean_runs"] = runs.clean;
  object["clean_rate_below_95"] = upper_bound_zero_failures(runs.clean);
  object["earlier_failures"] = runs.earlier_failures;
  object["earlier_runs"] = runs.earlier_runs;
  object["may_be_lifted"] = listed.may_be_lifted;
  object["stale"] = listed.stale;
  return object;
}

void print_json(Page& page, const std::vector<ListedEntry>& all) {
  Json entries = Json::array();
  for (const ListedEntry& listed : all) entries.push_back(json_of(listed));
  const Json whole{{"format", 1}, {"entries", std::move(entries)}};
  page.print("{}\n", json_text(whole, 2));
}

}  // namespace

int quarantine_list(const Words& words) {
  bool json = false;
  CommandLine line("quarantine list", list_help);
  line.flag("--json", json, "JSON instead of a table");
  return act_at_desk(line, words, [&](const QuarantineDesk& desk) -> Result<int> {
    const auto all = look_up_all(desk);
    if (!all) return all.error();
    Page page;
    if (json)
      print_json(page, *all);
    else
      print_table(page, *all);
    return page.write_out();
  });
}

}  // namespace unflake
