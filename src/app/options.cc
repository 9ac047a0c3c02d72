#include "app/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "suite/frameworks.h"
#include "util/text.h"

namespace unflake {

int Page::write_out() const {
  const bool written = std::fwrite(text_.data(), 1, text_.size(), stdout) == text_.size();
  if ((written && std::fflush(stdout) == 0) || errno == EPIPE)
    return static_cast<int>(ExitCode::success);
  return report_error(
      internal_error(fmt::format("standard output cannot be written: {}", std::strerror(errno))));
}

namespace {

CLI::Option* add_duration(CLI::App& app, const std::string& names, std::optional<Duration>& value,
                          const std::string& description) {
  const auto read = [&value, names](const std::string& text) {
    const auto duration = parse_duration(text);
    if (!duration) throw CLI::ValidationError(names, to_string(duration.error()));
    value = *duration;
  };
  return app.add_option_function<std::string>(names, read, description)->type_name("DURATION");
}

}  // namespace

int report_error(const Error& error) {
  fmt::print(stderr, "unflake: {}\n", printable(error.what, LineFeeds::keep));
  if (!error.where.empty()) fmt::print(stderr, "  at: {}\n", printable(error.where));
  if (!error.next.empty())
    fmt::print(stderr, "  next: {}\n", printable(error.next, LineFeeds::keep));
  return static_cast<int>(exit_code_of(error));
}

Option Option::takes(const std::string& what) const {
  return Option(option_->type_name(what));
}

Option Option::required() const {
  return Option(option_->required());
}

Option Option::between(int least, int most) const {
  return Option(option_->check(CLI::Range(least, most)));
}

Option Option::one_of(const std::vector<std::string>& words) const {
  return Option(option_->check(CLI::IsMember(words)));
}

Option Option::excludes(const std::string& other) const {
  return Option(option_->excludes(other));
}

Option Option::from_environment(const std::string& variable) const {
  return Option(option_->envname(variable));
}

Option Option::separated_by(char delimiter) const {
  return Option(option_->delimiter(delimiter));
}

Option Option::one_at_a_time() const {
  return Option(option_->allow_extra_args(false));
}

CommandLine::CommandLine(const std::string& command, const std::string& help)
    : app_(std::make_unique<CLI::App>(help, "unflake " + command)) {
  app_->get_formatter()->column_width(34);
}

CommandLine::~CommandLine() = default;

template <OptionValue Value>
Option CommandLine::option(const std::string& names, Value& value, const std::string& description) {
  if constexpr (std::same_as<Value, std::optional<Duration>>)
    return Option(add_duration(*app_, names, value, description));
  else
    return Option(app_->add_option(names, value, description));
}

template Option CommandLine::option(const std::string&, std::string&, const std::string&);
template Option CommandLine::option(const std::string&, std::optional<std::string>&,
                                    const std::string&);
template Option CommandLine::option(const std::string&, std::vector<std::string>&,
                                    const std::string&);
template Option CommandLine::option(const std::string&, int&, const std::string&);
template Option CommandLine::option(const std::string&, std::optional<int>&, const std::string&);
template Option CommandLine::option(const std::string&, uint64_t&, const std::string&);
template Option CommandLine::option(const std::string&, std::optional<uint64_t>&,
                                    const std::string&);
template Option CommandLine::option(const std::string&, std::optional<Duration>&,
                                    const std::string&);

Option CommandLine::flag(const std::string& names, bool& value, const std::string& description) {
  return Option(app_->add_flag(names, value, description));
}

Option CommandLine::flag(const std::string& names, std::optional<bool>& value,
                         const std::string& description) {
  const auto read = [&value](int64_t times) { value = times > 0; };
  return Option(app_->add_flag_function(names, read, description));
}

std::optional<int> CommandLine::parse(const Words& words) {
  try {
    std::vector<std::string> reversed(words.options.rbegin(), words.options.rend());
    app_->parse(reversed);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app_->help());
    return static_cast<int>(ExitCode::success);
  } catch (const CLI::ParseError& error) {
    return report_error(usage_error(
        error.what(), "", fmt::format("`{} --help` shows what it takes", app_->get_name())));
  }
}

namespace {

Result<std::optional<Framework>> forced_framework(const std::string& name) {
  if (name.empty()) return std::optional<Framework>();
  if (const auto framework = framework_from(name)) return framework;
  return usage_error(fmt::format("there is no framework '{}'", printable(name)), "--framework",
                     "choose gtest, catch2, doctest, boost, ctest or command");
}

Target to_target(const TargetRecord& record, const Project& project) {
  Target target{record.name, record.framework, record.path, record.argv};
  if (record.framework == Framework::command)  // its record is named by the full id of its test
    target.name = record.name.substr(0, record.name.find(':'));
  if (!target.path.empty() && target.path[0] != '/') target.path = project.root + "/" + target.path;
  return target;
}

// Asks once per name, and keeps the error that the suite stage cannot pass on.
KnownTargets known_targets(const FindTarget& find, const Project& project,
                           std::optional<Error>& failed) {
  return [&find, &project, &failed](const std::string& name) -> std::optional<Target> {
    const auto found = find(name);
    if (!found) failed = found.error();
    if (!found || !*found) return std::nullopt;
    return to_target(**found, project);
  };
}

std::vector<std::shared_ptr<const Test>> share(std::vector<Test> tests) {
  std::vector<std::shared_ptr<const Test>> shared;
  for (Test& test : tests) shared.push_back(std::make_shared<const Test>(std::move(test)));
  return shared;
}

std::vector<std::shared_ptr<const Test>> pick(const std::vector<std::shared_ptr<const Test>>& all,
                                              const std::vector<Test>& wanted) {
  std::vector<std::shared_ptr<const Test>> picked;
  auto next = all.begin();  // both are in listing order
  for (const Test& test : wanted) {
    next = std::find_if(next, all.end(), [&](const auto& one) { return one->id == test.id; });
    if (next == all.end()) break;
    picked.push_back(*next);
  }
  return picked;
}

Result<Restriction> restriction_of(const TargetOptions& options) {
  Restriction restriction{{}, options.excluded};
  for (const std::string& text : options.sets) {
    auto set = TestSet::parse(text);
    if (!set) return set.error();
    restriction.sets.push_back(std::move(*set));
  }
  return restriction;
}

ListOptions list_options_of(const TargetOptions& options, const Restriction& restriction) {
  ListOptions list;
  list.open_cases = options.open_cases;
  list.ctest_config = options.ctest_config;
  list.labels = options.labels || std::ranges::any_of(restriction.sets, &TestSet::needs_labels);
  return list;
}

Result<std::vector<Test>> choose(const std::vector<Test>& listed,
                                 const std::vector<std::string>& patterns, bool include_disabled,
                                 const Restriction& restriction) {
  const auto chosen = select(listed, patterns, include_disabled);
  if (!chosen) return chosen.error();
  return narrow(listed, *chosen, restriction);
}

bool names_its_cases(const Test& test) {
  if (!test.is_entry || test.command.argv.empty()) return false;
  return selects_cases(test.framework, {test.command.argv.begin() + 1, test.command.argv.end()});
}

// What --cases does not do for entries that CMake's test discovery made, among others.
std::optional<Error> entries_left_closed(const std::vector<Test>& listed) {
  const auto count = std::ranges::count_if(listed, names_its_cases);
  if (count == 0) return std::nullopt;
  const auto first = std::ranges::find_if(listed, names_its_cases);
  return usage_error(
      fmt::format("--cases leaves {} as {}: the arguments name the cases, as those of {} do",
                  count == 1 ? "1 CTest entry" : fmt::format("{} CTest entries", count),
                  count == 1 ? "it is" : "they are", printable(to_string(first->id))),
      "", "name the executable as the target to run all of its cases");
}

Error nothing_to_run() {
  return usage_error("there is nothing to run", "",
                     "name a test executable, a CTest build folder, or a command after `--`");
}

}  // namespace

void StoreOptions::add_to(CommandLine& line) {
  line.option("--store", url, "the history: a file or postgres://... [.unflake/history.db]")
      .from_environment("UNFLAKE_STORE")
      .takes("URL");
  line.option("--project", project, "whose tests, in a history that several projects share")
      .from_environment("UNFLAKE_PROJECT")
      .takes("NAME");
}

void StoreOptions::add_recording_to(CommandLine& line) {
  add_to(line);
  line.flag("--no-history", no_history, "do not record the runs");
}

StoreAddress StoreOptions::address(const Project& project_here, const Config& config) const {
  StoreAddress address;
  address.url = !url.empty() ? url : config.history.store.value_or(project_here.path("history.db"));
  address.project = !project.empty() ? project : config.history.project.value_or("");
  if (address.project.empty() && is_postgres(address))
    address.project = repository_name(project_here);
  return address;
}

void QuarantineOptions::add_to(CommandLine& line) {
  line.option("--quarantine", path, "the quarantine's file [.unflake/quarantine.toml]")
      .from_environment("UNFLAKE_QUARANTINE")
      .takes("FILE");
}

std::string QuarantineOptions::file(const Project& project) const {
  return path.empty() ? project.path("quarantine.toml") : path;
}

void ConfigOptions::add_to(CommandLine& line) {
  line.option("--profile", profile, "a profile of the configuration [default]")
      .from_environment("UNFLAKE_PROFILE");
  line.option("--config", path, "the configuration's file [.unflake/config.toml]").takes("FILE");
}

std::string ConfigOptions::file(const Project& project) const {
  return path.empty() ? project.path("config.toml") : path;
}

Result<Config> ConfigOptions::load(const Project& project) const {
  return load_config(file(project), profile, path.empty());
}

Result<ConfiguredProject> ConfigOptions::find() const {
  auto project = find_project();
  if (!project) return project.error();
  auto config = load(*project);
  if (!config) return config.error();
  return ConfiguredProject{std::move(*project), std::move(*config)};
}

int act_on_history(CommandLine& line, const Words& words,
                   const std::function<Result<int>(const ConfiguredProject& project,
                                                   const StoreAddress& history)>& work) {
  StoreOptions history;
  ConfigOptions configuration;
  history.add_to(line);
  configuration.add_to(line);
  if (const auto done = line.parse(words)) return *done;
  const auto known = configuration.find();
  if (!known) return report_error(known.error());
  const auto code = work(*known, history.address(known->project, known->config));
  return code ? *code : report_error(code.error());
}

void TargetOptions::add_to(CommandLine& line) {
  line.option("target", words,
              "TARGET [NAME-OR-GLOB...]: a test executable or a CTest build folder, then the "
              "tests in it; or a full id target:name")
      .takes("");
  line.option("-E,--filterset", sets,
              "only tests of this set: name(GLOB), target(), suite(), label(), tag(), file(), with "
              "and, or, not; of any of them when repeated; see `unflake list --help`")
      .takes("SET")
      .one_at_a_time();
  line.option("--exclude", excluded, "leave out tests with this name or glob; may be repeated")
      .takes("NAME-OR-GLOB")
      .one_at_a_time();
  line.option(
      "--framework", framework,
      "use this framework instead of recognising it: gtest, catch2, doctest, boost or ctest");
  line.option("--target-name", target_name, "the target's name in ids [the file's name]");
  line.option("--test-arg", test_args, "an argument for the test executable; may be repeated")
      .one_at_a_time();
  line.option("--ctest-config", ctest_config, "a CTest configuration, as for ctest -C");
  line.flag("--cases", open_cases, "open CTest entries that are test executables into cases");
}

FindTarget find_target_in(const StoreAddress& history) {
  return [history](const std::string& name) -> Result<std::optional<TargetRecord>> {
    std::error_code failed;
    const bool is_file = !is_postgres(history);
    if (is_file && !std::filesystem::exists(history.url, failed))
      return std::optional<TargetRecord>();
    auto store = open_store_to_read(history);
    if (!store) return store.error();
    return (*store)->find_target(name);
  };
}

Result<SelectedTests> select_tests(const TargetOptions& options, const Words& words,
                                   const std::string& default_target, const Project& project,
                                   const FindTarget& find_target, Launcher& launcher) {
  const auto forced = forced_framework(options.framework);
  if (!forced) return forced.error();
  const auto restriction = restriction_of(options);
  if (!restriction) return restriction.error();
  TargetWords target_words{options.words, words.command, *forced, options.target_name};
  if (options.words.empty() && !words.has_command) {
    if (default_target.empty()) return nothing_to_run();
    target_words.words = {default_target};
  }
  std::optional<Error> lookup_failed;
  auto selection = resolve(target_words, known_targets(find_target, project, lookup_failed));
  if (!selection) return lookup_failed.value_or(selection.error());
  if (!options.test_args.empty()) {
    const Framework framework = selection->target.framework;
    if (framework == Framework::command || framework == Framework::ctest)
      return usage_error("--test-arg is for test executables", "",
                         "put a command's arguments after it; CTest entries have their own");
    selection->target.argv = options.test_args;
  }

  auto listed = adapter_for(selection->target.framework)
                    .list(selection->target, list_options_of(options, *restriction), launcher);
  if (!listed) return listed.error();
  const auto selected =
      choose(*listed, selection->patterns, options.include_disabled, *restriction);
  if (!selected) return selected.error();
  const auto with_disabled = choose(*listed, selection->patterns, true, *restriction);
  auto unmatched = unmatched_parts(*listed, *restriction);
  if (options.open_cases)
    if (auto left = entries_left_closed(*listed)) unmatched.push_back(std::move(*left));
  SelectedTests tests{selection->target, share(std::move(*listed)), {}, 0, std::move(unmatched)};
  tests.selected = pick(tests.all, *selected);
  if (with_disabled) tests.left_out = with_disabled->size() - selected->size();
  return tests;
}

namespace {

namespace chrono = std::chrono;

Error not_a_time(std::string_view text) {
  return usage_error(fmt::format("'{}' is not a time", printable(shorten(text, 100))), "",
                     "write a date, as 2026-03-01, or a time, as 2026-03-01T12:00:00Z (UTC)");
}

// Reads fields of fixed width from the front of a text.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : rest_(text) {}

  std::optional<int> number(size_t width) {
    int value = 0;
    if (rest_.size() < width) return std::nullopt;
    const char* end = rest_.data() + width;
    const auto [stop, failed] = std::from_chars(rest_.data(), end, value);
    if (failed != std::errc() || stop != end || value < 0) return std::nullopt;
    rest_.remove_prefix(width);
    return value;
  }

  bool skip(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_[0]) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

std::optional<chrono::sys_days> read_day(FieldReader& fields) {
  const auto year = fields.number(4);
  if (!year || !fields.skip("-")) return std::nullopt;
  const auto month = fields.number(2);
  if (!month || !fields.skip("-")) return std::nullopt;
  const auto day = fields.number(2);
  if (!day || *year < 1970 || *year > 2200) return std::nullopt;
  const chrono::year_month_day date{chrono::year(*year),
                                    chrono::month(static_cast<unsigned>(*month)),
                                    chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return chrono::sys_days(date);
}

std::optional<chrono::seconds> read_time_of_day(FieldReader& fields) {
  if (fields.at_end()) return chrono::seconds(0);
  if (!fields.skip("T ")) return std::nullopt;
  const auto hour = fields.number(2);
  if (!hour || *hour > 23 || !fields.skip(":")) return std::nullopt;
  const auto minute = fields.number(2);
  if (!minute || *minute > 59) return std::nullopt;
  std::optional<int> second = 0;
  if (fields.skip(":")) second = fields.number(2);
  if (!second || *second > 60) return std::nullopt;
  fields.skip("Z");
  return chrono::hours(*hour) + chrono::minutes(*minute) + chrono::seconds(*second);
}

}  // namespace

Result<chrono::system_clock::time_point> parse_time(std::string_view text) {
  FieldReader fields(trim(text));
  const auto day = read_day(fields);
  if (!day) return not_a_time(text);
  const auto time = read_time_of_day(fields);
  if (!time || !fields.at_end()) return not_a_time(text);
  return chrono::system_clock::time_point(*day + *time);
}

}  // namespace unflake
