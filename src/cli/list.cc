#include <fmt/format.h>

#include "app/options.h"
#include "run/local_executor.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::json;

constexpr const char* list_help =
    R"(Lists the tests of a target, one id a line.

  unflake list ./server_test                 every test of an executable
  unflake list ./server_test 'Server.*'      those that match
  unflake list ./server_test -E 'tag(net) and not name(*Live*)'    a set
  unflake list build --cases                 a CTest build folder, its executables opened
  unflake list ./server_test --json          with command, file, time-out and properties

Sets, as -E takes them in every command: name(x), target(x), suite(x), file(x), label(x) or tag(x), all(), none();
not a; a and b; a - b; a or b; (a). Of these, what stands further left binds more tightly. x is a glob (* and ?),
=exact, ~contains, or /a regular expression/ (POSIX, extended).)";

Json printable_list(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(printable(text));
  return list;
}

Json json_of(const Test& test) {
  Json json = {{"test", printable(to_string(test.id))},
               {"framework", to_string(test.framework)},
               {"disabled", test.disabled}};
  json["command"] = printable_list(test.command.argv);
  if (!test.command.cwd.empty()) json["working_directory"] = printable(test.command.cwd);
  if (!test.obstacle.empty()) json["obstacle"] = printable(test.obstacle);
  if (!test.disabled_reason.empty()) json["disabled_reason"] = printable(test.disabled_reason);
  if (!test.file.empty()) json["file"] = printable(test.file), json["line"] = test.line;
  if (test.timeout) json["timeout_us"] = test.timeout->count();
  if (!test.suite.empty()) json["suite"] = printable(test.suite);
  if (!test.labels.empty()) json["labels"] = printable_list(test.labels);
  if (!test.locks.empty()) json["locks"] = printable_list(test.locks);
  if (test.serial) json["serial"] = true;
  if (test.processors != 1) json["processors"] = test.processors;
  return json;
}

void print_json(Page& page, const SelectedTests& tests) {
  Json all = Json::array();
  for (const auto& test : tests.selected) all.push_back(json_of(*test));
  const Json whole = {{"format", 1},
                      {"target", printable(tests.target.name)},
                      {"framework", to_string(tests.target.framework)},
                      {"tests", std::move(all)}};
  page.print("{}\n", json_text(whole, 2));
}

void warn_of(const std::vector<Error>& unmatched) {
  for (const Error& part : unmatched)
    fmt::print(stderr, "unflake: {}\n  next: {}\n", printable(part.what), printable(part.next));
}

void print_lines(Page& page, const SelectedTests& tests) {
  for (const auto& test : tests.selected) {
    page.print("{}", printable(to_string(test->id)));
    if (!test->obstacle.empty()) page.print("  (cannot run: {})", printable(test->obstacle));
    if (test->disabled) page.print("  (disabled: {})", printable(test->disabled_reason));
    page.print("\n");
  }
}

}  // namespace

int list_command(const Words& words) {
  TargetOptions target;
  target.include_disabled = true;
  StoreOptions history;
  ConfigOptions configuration;
  bool json = false;
  CommandLine line("list", list_help);
  target.add_to(line);
  history.add_to(line);
  configuration.add_to(line);
  line.flag("--json", json, "JSON instead of lines");
  if (const auto done = line.parse(words)) return *done;
  target.labels = json;

  const auto known = configuration.find();
  if (!known) return report_error(known.error());
  const auto& [project, config] = *known;
  Interrupts interrupts;
  auto executor = LocalExecutor::create({}, interrupts);
  if (!executor) return report_error(executor.error());
  const auto tests = select_tests(target, words, config.settings.target.value_or(""), project,
                                  find_target_in(history.address(project, config)), **executor);
  if (interrupts.stop_signal() != 0) return exit_code_of_signal(interrupts.stop_signal());
  if (!tests) return report_error(tests.error());
  warn_of(tests->unmatched);
  Page page;
  json ? print_json(page, *tests) : print_lines(page, *tests);
  return page.write_out();
}

}  // namespace unflake
