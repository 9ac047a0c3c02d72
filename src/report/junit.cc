#include "report/consumers.h"

#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>
#include <set>

#include "report/layout.h"
#include "report/terminal.h"
#include "report/trace_text.h"
#include "util/files.h"
#include "util/text.h"
#include "util/time.h"

namespace unflake {
namespace {

// Where a framework's own name separates the suite from the test; npos: it does not.
size_t end_of_suite(const Test& test) {
  if (test.is_entry) return std::string::npos;  // its name comes from CTest, whatever it starts
  if (test.framework == Framework::gtest) return test.id.name.find('.');
  if (test.framework == Framework::boost_test) return test.id.name.rfind('/');
  return std::string::npos;
}

std::string name_part(std::string_view text) {
  return xml_text(printable(shorten(text, longest_name)));
}

JunitName name_of(const Test& test) {
  const size_t end = end_of_suite(test);
  const std::string target = name_part(test.id.target);
  if (end == std::string::npos) return {target, name_part(test.id.name)};
  return {target + "." + name_part(test.id.name.substr(0, end)),
          name_part(test.id.name.substr(end + 1))};
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string safe;
  for (size_t at; (at = text.find("\xEF\xBF")) != std::string_view::npos;) {
    const std::string_view character = text.substr(at, 3);
    const bool forbidden = character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF";
    safe += text.substr(0, at);
    safe += forbidden ? "?" : character;
    text.remove_prefix(at + character.size());
  }
  safe += text;
  return safe;
}

std::map<TestId, JunitName> junit_names(const std::vector<std::shared_ptr<const Test>>& tests) {
  std::map<TestId, const Test*> sorted;
  for (const auto& test : tests) sorted.emplace(test->id, test.get());
  std::map<TestId, JunitName> names;
  std::set<std::string> taken;
  for (const auto& [id, test] : sorted) {
    JunitName name = name_of(*test);
    const std::string plain = name.name;
    for (int i = 2; !taken.insert(name.classname + "." + name.name).second; ++i)
      name.name = fmt::format("{} ({})", plain, i);
    names.emplace(id, std::move(name));
  }
  return names;
}

namespace {

struct Totals {
  int tests = 0;
  int failures = 0;
  int errors = 0;
  int skipped = 0;
  Duration time{};

  void add(const Totals& other) {
    tests += other.tests;
    failures += other.failures;
    errors += other.errors;
    skipped += other.skipped;
    time += other.time;
  }
};

void set(pugi::xml_node node, const char* attribute, std::string_view text) {
  node.append_attribute(attribute).set_value(xml_text(text).c_str());
}

void set_seconds(pugi::xml_node node, Duration time) {
  set(node, "time", fmt::format("{:.6f}", static_cast<double>(time.count()) / 1e6));
}

void add_text(pugi::xml_node parent, const char* element, std::string_view text) {
  if (!text.empty()) parent.append_child(element).text().set(xml_text(text).c_str());
}

void add_property(pugi::xml_node properties, const char* name, std::string_view value) {
  if (value.empty()) return;
  pugi::xml_node property = properties.append_child("property");
  set(property, "name", name);
  set(property, "value", value);
}

bool is_error(OutcomeKind kind) {
  return kind == OutcomeKind::crash || kind == OutcomeKind::timeout;
}

void set_message(pugi::xml_node node, const JunitFailure& failure) {
  set(node, "message", failure.message);
  set(node, "type", failure.type);
}

// The failure that CI systems show for a failed test.
void add_main_failure(pugi::xml_node testcase, const JunitFailure& failure) {
  pugi::xml_node node = testcase.append_child(is_error(failure.kind) ? "error" : "failure");
  set_message(node, failure);
  node.text().set(xml_text(failure.details).c_str());
}

// `flaky` (the test passed in another run) or `rerun` (it did not), as Surefire names them.
void add_other_failure(pugi::xml_node testcase, const std::string& prefix,
                       const JunitFailure& failure) {
  const std::string element = prefix + (is_error(failure.kind) ? "Error" : "Failure");
  pugi::xml_node node = testcase.append_child(element.c_str());
  set_message(node, failure);
  add_text(node, "stackTrace", failure.details);
  add_text(node, "system-out", failure.output);
}

std::string runs_text(const JunitCase& found) {
  const int failures = found.tally.failures;
  const auto shown = static_cast<int>(found.failures.size());
  std::string text = fmt::format("{} of {} failed", failures, counted(found.tally.runs(), "run"));
  if (shown < failures) text += fmt::format("; the first {} failures are shown", shown);
  return text + "\n";
}

// Class and name together are the test's id, or XML cannot hold the id.
bool tells_name(const TestId& id, const JunitName& name) {
  const bool is_whole = name.classname + "." + name.name == id.target + "." + id.name;
  return is_whole || xml_text(printable(id.name)) != id.name;
}

void add_case_properties(pugi::xml_node testcase, const JunitCase& found, const JunitName& name) {
  const Tally& tally = found.tally;
  const bool is_told = tells_name(found.test->id, name);
  const bool decided = found.gate && found.gate->kind != GateKind::passed;
  if (tally.runs() < 2 && is_told && !decided) return;
  pugi::xml_node properties = testcase.append_child("properties");
  if (!is_told) add_property(properties, "unflake.test", found.test->id.name);
  if (tally.runs() > 1 || decided) {
    add_property(properties, "unflake.runs", std::to_string(tally.runs()));
    add_property(properties, "unflake.failures", std::to_string(tally.failures));
  }
  if (!decided) return;
  add_property(properties, "unflake.gate", to_string(found.gate->kind));
  add_property(properties, "unflake.gate.text", printable(found.gate->text));
  add_property(properties, "unflake.quarantined_until", found.gate->until);
  add_property(properties, "unflake.owner", printable(found.gate->owner));
  add_property(properties, "unflake.issue", printable(found.gate->issue));
}

void add_failures(pugi::xml_node testcase, const JunitCase& found, bool failed) {
  std::string output = found.tally.runs() > 1 ? runs_text(found) : "";
  if (failed && found.failures.empty())
    add_main_failure(testcase, {1, OutcomeKind::fail, "failed", found.reason, "", ""});
  for (size_t i = 0; i < found.failures.size(); ++i) {
    if (failed && i == 0) {
      add_main_failure(testcase, found.failures[i]);
      output += found.failures[i].output;
    } else {
      add_other_failure(testcase, failed ? "rerun" : "flaky", found.failures[i]);
    }
  }
  add_text(testcase, "system-out", output);
}

void add_skipped(pugi::xml_node testcase, const JunitCase& found) {
  const std::string reason = found.verdict == Verdict::skipped ? found.reason
                             : found.reason.empty()            ? "not run"
                                                               : "not run: " + found.reason;
  pugi::xml_node skipped = testcase.append_child("skipped");
  if (!reason.empty()) set(skipped, "message", reason);
}

// A failure that may not fail the build must not look like one: CI systems show a skipped test and
// why, and whoever reads the file finds every attempt.
void add_quarantined(pugi::xml_node testcase, const JunitCase& found) {
  set(testcase.append_child("skipped"), "message", printable(found.gate->text));
  for (const JunitFailure& failure : found.failures) add_other_failure(testcase, "rerun", failure);
  add_text(testcase, "system-out", runs_text(found));
}

bool counts_as_failed(const JunitCase& found, bool flaky_fails) {
  if (!found.gate)
    return found.verdict == Verdict::failed || (found.verdict == Verdict::flaky && flaky_fails);
  return fails_build(found.gate->kind) || (found.gate->kind == GateKind::flaky_new && flaky_fails);
}

// The time of one run, whatever the number of runs: CI systems compare it between builds.
Duration time_of(const JunitCase& found) {
  return found.total_time / std::max(1, found.tally.runs());
}

void set_identity(pugi::xml_node testcase, const JunitCase& found, const JunitName& name) {
  const Test& test = *found.test;
  set(testcase, "classname", name.classname);
  set(testcase, "name", name.name);
  set_seconds(testcase, time_of(found));
  if (!test.file.empty()) set(testcase, "file", bounded_text(test.file, longest_name));
  if (test.line > 0) set(testcase, "line", std::to_string(test.line));
}

Totals add_case(pugi::xml_node suite, const JunitCase& found, const JunitName& name,
                bool flaky_fails) {
  pugi::xml_node testcase = suite.append_child("testcase");
  set_identity(testcase, found, name);
  add_case_properties(testcase, found, name);
  Totals totals{.tests = 1, .time = found.total_time};
  if (found.verdict == Verdict::skipped || found.verdict == Verdict::not_run) {
    add_skipped(testcase, found);
    totals.skipped = 1;
    return totals;
  }
  if (found.gate && found.gate->kind == GateKind::quarantined) {
    add_quarantined(testcase, found);
    totals.skipped = 1;
    return totals;
  }
  add_failures(testcase, found, counts_as_failed(found, flaky_fails));
  totals.errors = testcase.child("error") ? 1 : 0;
  totals.failures = testcase.child("failure") ? 1 : 0;
  return totals;
}

void add_session_properties(pugi::xml_node suite, const SessionStarted& session,
                            const std::string& uuid) {
  pugi::xml_node properties = suite.append_child("properties");
  add_property(properties, "unflake.session", uuid);
  const Surroundings& surroundings = session.surroundings;
  add_property(properties, "unflake.version", printable(surroundings.unflake_version));
  add_property(properties, "unflake.command_line", printable(session.command_line));
  add_property(properties, "unflake.repeat", std::to_string(session.repeat));
  add_property(properties, "unflake.retries", std::to_string(session.retries));
  if (session.seed) add_property(properties, "unflake.seed", std::to_string(*session.seed));
  add_property(properties, "commit", printable(surroundings.commit));
  add_property(properties, "branch", printable(surroundings.branch));
  if (surroundings.dirty) add_property(properties, "dirty", "true");
}

void set_totals(pugi::xml_node node, const Totals& totals) {
  set(node, "tests", std::to_string(totals.tests));
  set(node, "failures", std::to_string(totals.failures));
  set(node, "errors", std::to_string(totals.errors));
}

struct Suite {
  std::string target;
  std::vector<const JunitCase*> cases;
};

std::vector<Suite> suites_of(const std::vector<JunitCase>& cases) {
  std::vector<Suite> suites;
  std::map<std::string, size_t> numbers;
  for (const JunitCase& found : cases) {
    const std::string& target = found.test->id.target;
    const auto [number, is_new] = numbers.try_emplace(target, suites.size());
    if (is_new) suites.push_back({target, {}});
    suites[number->second].cases.push_back(&found);
  }
  return suites;
}

Totals add_suite(pugi::xml_node root, const Suite& suite, const JunitSession& session,
                 const std::map<TestId, JunitName>& names, bool flaky_fails) {
  pugi::xml_node node = root.append_child("testsuite");
  set(node, "name", printable(shorten(suite.target, longest_name)));
  add_session_properties(node, session.started, session.uuid);
  Totals totals;
  for (const JunitCase* found : suite.cases)
    totals.add(add_case(node, *found, names.at(found->test->id), flaky_fails));
  set_totals(node, totals);
  set(node, "skipped", std::to_string(totals.skipped));
  set_seconds(node, totals.time);
  set(node, "timestamp", timestamp_in_seconds(session.started.at));
  const std::string& machine = session.started.surroundings.machine;
  if (!machine.empty()) set(node, "hostname", printable(machine));
  return totals;
}

struct StringWriter : pugi::xml_writer {
  std::string text;
  void write(const void* bytes, size_t size) override {
    text.append(static_cast<const char*>(bytes), size);
  }
};

}  // namespace

std::string junit_xml(const JunitSession& session, bool flaky_fails) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  set(declaration, "version", "1.0");
  set(declaration, "encoding", "UTF-8");
  pugi::xml_node root = document.append_child("testsuites");
  set(root, "name", "unflake");
  std::vector<std::shared_ptr<const Test>> tests;
  for (const JunitCase& found : session.cases) tests.push_back(found.test);
  const std::map<TestId, JunitName> names = junit_names(tests);
  Totals totals;
  for (const Suite& suite : suites_of(session.cases))
    totals.add(add_suite(root, suite, session, names, flaky_fails));
  set_totals(root, totals);
  set_seconds(root, session.ended.elapsed);
  StringWriter writer;
  document.save(writer, "  ");
  return std::move(writer.text);
}

namespace {

constexpr size_t most_failures_of_a_test = 10;
constexpr size_t longest_output_in_xml = 16 * 1024;
constexpr size_t most_output = 64 * 1024 * 1024;  // of a session, in memory until its end

std::string details_of(const Outcome& outcome) {
  std::string details;
  for (const Failure& failure : outcome.failures) {
    if (details.size() > longest_text) break;
    const std::string title = bounded_text(headline(failure), longest_text);
    const std::string message = bounded_text(trim(failure.message), longest_text);
    details += title + "\n";
    if (!title.ends_with(message)) details += message + "\n";
  }
  return details;
}

JunitFailure failure_of(const RunEnded& run) {
  const Outcome& outcome = run.result.outcome;
  JunitFailure failure{run.attempt, outcome.kind, std::string(to_string(outcome.kind)), "", "", ""};
  if (!outcome.failures.empty()) {
    failure.type = to_string(outcome.failures.front().kind);
    failure.message = bounded_text(headline(outcome.failures.front()), longest_text);
  }
  failure.details = details_of(outcome);
  return failure;
}

}  // namespace

Result<std::unique_ptr<JunitReport>> JunitReport::create(JunitOptions options) {
  const Result<void> prepared = prepare_output_file(options.path);
  if (!prepared) return prepared.error();
  return std::unique_ptr<JunitReport>(new JunitReport(std::move(options)));
}

void JunitReport::on(const Event& event) {
  std::visit([this](const auto& happened) { take(happened); }, event);
}

void JunitReport::take(const SessionStarted& session) {
  session_ = {.started = session, .ended = {}, .cases = {}, .uuid = {}};
  case_numbers_.clear();
  output_kept_ = 0;
  for (const auto& test : session.tests) case_of(test);
}

// The verdict is kept up to date here: an interrupted session may end without reporting the end of
// each test.
void JunitReport::take(const RunEnded& run) {
  if (was_cancelled(run)) return;
  JunitCase& found = case_of(run.test);
  const Outcome& outcome = run.result.outcome;
  found.tally.add(outcome);
  found.verdict = verdict_of(found.tally);
  found.total_time += outcome.duration;
  if (!outcome.reason.empty()) found.reason = bounded_text(outcome.reason, longest_text);
  if (outcome.failed()) keep_failure(found, run);
}

void JunitReport::keep_failure(JunitCase& found, const RunEnded& run) {
  if (found.failures.size() == most_failures_of_a_test) return;
  JunitFailure failure = failure_of(run);
  if (output_kept_ < most_output)
    failure.output = printable_output(run.result.process, longest_output_in_xml);
  output_kept_ += failure.output.size();
  found.failures.push_back(std::move(failure));
}

void JunitReport::take(const TestEnded& test) {
  JunitCase& found = case_of(test.test);
  found.verdict = test.verdict;
  found.gate = test.gate;
  if (!test.reason.empty()) found.reason = bounded_text(test.reason, longest_text);
}

void JunitReport::take(const SessionEnded& session) {
  session_.ended = session;
  if (options_.session_uuid) session_.uuid = options_.session_uuid();
  written_ = replace_file(options_.path, junit_xml(session_, options_.flaky_fails));
}

JunitCase& JunitReport::case_of(const std::shared_ptr<const Test>& test) {
  const auto [number, is_new] = case_numbers_.try_emplace(test->id, session_.cases.size());
  if (is_new) session_.cases.emplace_back().test = test;
  return session_.cases[number->second];
}

}  // namespace unflake
