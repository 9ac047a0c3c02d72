#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "run/local_executor.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::json;

constexpr const char* help =
    R"(Lists the tests of a target, one id a line.

  unflake list ./server_test                 every test of an executable
  unflake list ./server_test 'Server.*'      those that match
  unflake list build --cases                 a CTest build folder, its executables opened
  unflake list ./server_test --json          with command, file, time-out and properties)";

Json json_of(const Test& test) {
  Json json = {{"test", printable(to_string(test.id))},
               {"framework", to_string(test.framework)},
               {"disabled", test.disabled}};
  Json argv = Json::array();
  for (const std::string& word : test.command.argv) argv.push_back(printable(word));
  json["command"] = std::move(argv);
  if (!test.command.cwd.empty()) json["working_directory"] = printable(test.command.cwd);
  if (!test.disabled_reason.empty()) json["disabled_reason"] = printable(test.disabled_reason);
  if (!test.file.empty()) json["file"] = printable(test.file), json["line"] = test.line;
  if (test.timeout) json["timeout_us"] = test.timeout->count();
  if (!test.labels.empty()) json["labels"] = test.labels;
  if (!test.locks.empty()) json["locks"] = test.locks;
  if (test.serial) json["serial"] = true;
  if (test.processors != 1) json["processors"] = test.processors;
  return json;
}

void print_json(const SelectedTests& tests) {
  Json all = Json::array();
  for (const auto& test : tests.selected) all.push_back(json_of(*test));
  const Json whole = {{"format", 1},
                      {"target", printable(tests.target.name)},
                      {"framework", to_string(tests.target.framework)},
                      {"tests", std::move(all)}};
  fmt::print("{}\n", whole.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_lines(const SelectedTests& tests) {
  for (const auto& test : tests.selected) {
    fmt::print("{}", printable(to_string(test->id)));
    if (test->disabled) fmt::print("  (disabled: {})", printable(test->disabled_reason));
    fmt::print("\n");
  }
}

}  // namespace

int list_command(const Words& words) {
  TargetOptions target;
  target.include_disabled = true;
  HistoryOptions history;
  bool json = false;
  CommandLine line("list", help);
  target.add_to(line.app());
  history.add_to(line.app());
  line.app().add_flag("--json", json, "JSON instead of lines");
  if (const auto done = line.parse(words)) return *done;

  const Project project = find_project();
  const auto config = load_config(project.path("config.toml"), "default");
  if (!config) return report_error(config.error());
  Interrupts interrupts;
  auto executor = LocalExecutor::create({}, interrupts);
  if (!executor) return report_error(executor.error());
  // A listing needs history only for targets that are given by name, and does not make one.
  std::unique_ptr<Store> store;
  std::error_code failed;
  if (std::filesystem::exists(history.file(project), failed))
    if (auto opened = open_sqlite_store(history.file(project))) store = std::move(*opened);

  const auto tests = select_tests(target, words, config->settings.target.value_or(""), project,
                                  store.get(), **executor);
  if (!tests) return report_error(tests.error());
  json ? print_json(*tests) : print_lines(*tests);
  return static_cast<int>(ExitCode::success);
}

}  // namespace unflake
