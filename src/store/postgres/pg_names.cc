#include "store/postgres/pg_parts.h"

#include <algorithm>
#include <map>
#include <set>

#include "store/values.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr int64_t no_row = 0;  // of signatures

void insert_signatures(PgConnection& connection,
                       const std::map<std::string, const RunRecord*>& runs) {
  std::vector<std::string> signatures, files, functions, expressions, messages;
  std::vector<int64_t> kinds, lines;
  for (const auto& [signature, run] : runs) {
    const Failure failure = run != nullptr ? run->failure.value_or(Failure{}) : Failure{};
    signatures.push_back(signature);
    kinds.push_back(code_of(failure.kind));
    files.push_back(shorten(failure.file, 4096));
    lines.push_back(failure.line);
    functions.push_back(shorten(failure.function, 4096));
    expressions.push_back(shorten(failure.expression, 16384));
    messages.push_back(shorten(failure.message, 65536));
  }
  // A suppression may name a signature before a run shows what it stands for.
  connection.run(R"sql(
      INSERT INTO signatures AS known (signature, kind, file, line, function, expression, message)
      SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[],
                           $6::text[], $7::text[])
      ON CONFLICT (md5(signature)) DO UPDATE SET
        kind = excluded.kind, file = excluded.file, line = excluded.line,
        function = excluded.function, expression = excluded.expression, message = excluded.message
      WHERE (known.kind, known.file, known.line, known.function, known.expression, known.message)
            = (0, '', 0, '', '', '') AND known.id <> 0)sql",
                 signatures, kinds, files, lines, functions, expressions, messages);
}

}  // namespace

std::vector<RunRow> PgNames::rows_of(SessionId session, std::span<const RunRecord> runs) {
  forget_what_may_be_wrong();
  std::vector<TestId> unknown;
  for (const RunRecord& run : runs)
    if (!tests_.contains(run.test)) unknown.push_back(run.test);
  learn_tests(std::move(unknown));
  learn_signatures(runs);
  std::vector<RunRow> rows;
  rows.reserve(runs.size());
  for (const RunRecord& run : runs)
    rows.push_back({.test = tests_.at(run.test),
                    .started_us = to_microseconds(run.started),
                    .session = session,
                    .attempt = run.attempt,
                    .duration_us = recorded_us(run.duration),
                    .outcome = code_of(run.outcome),
                    .signature = has_signature(run) ? signatures_.at(run.signature) : no_row});
  return rows;
}

int64_t PgNames::test_row(const TestId& test) {
  forget_what_may_be_wrong();
  if (!tests_.contains(test)) learn_tests({test});
  return tests_.at(test);
}

int64_t PgNames::signature_row(const std::string& signature) {
  if (signature.empty()) return no_row;
  insert_signatures(connection_, {{signature, nullptr}});
  return connection_.run("SELECT id FROM signatures WHERE md5(signature) = md5($1)", signature)
      .integer(0, 0);
}

void PgNames::learn_tests(std::vector<TestId> tests) {
  std::ranges::sort(tests);
  tests.erase(std::unique(tests.begin(), tests.end()), tests.end());
  const std::vector<TestId> missing = look_up(std::move(tests));
  if (missing.empty()) return;
  std::vector<std::string> targets, names;
  for (const TestId& test : missing) {
    targets.push_back(test.target);
    names.push_back(test.name);
  }
  connection_.run(
      "INSERT INTO tests (project, target, name)"
      " SELECT $1::bigint, * FROM unnest($2::text[], $3::text[]) ON CONFLICT DO NOTHING",
      project_, targets, names);
  if (!look_up(missing).empty()) connection_.fail({"XX001", "a test that was added is not there"});
}

std::vector<TestId> PgNames::look_up(std::vector<TestId> tests) {
  if (tests.empty()) return tests;
  std::vector<std::string> targets, names;
  for (const TestId& test : tests) {
    targets.push_back(test.target);
    names.push_back(test.name);
  }
  const PgRows rows = connection_.run(R"sql(
      SELECT number, id FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS wanted
             (target, name, number)
      JOIN tests ON project = $1::bigint AND md5(tests.target) = md5(wanted.target)
        AND md5(tests.name) = md5(wanted.name))sql",
                                      project_, targets, names);
  std::set<size_t> found;
  for (int row = 0; row < rows.size(); ++row) {
    const auto number = static_cast<size_t>(rows.integer(row, 0) - 1);
    tests_[tests.at(number)] = rows.integer(row, 1);
    found.insert(number);
  }
  std::vector<TestId> missing;
  for (size_t number = 0; number < tests.size(); ++number)
    if (!found.contains(number)) missing.push_back(std::move(tests[number]));
  return missing;
}

void PgNames::learn_signatures(std::span<const RunRecord> runs) {
  std::map<std::string, const RunRecord*> unknown;
  for (const RunRecord& run : runs)
    if (has_signature(run) && !signatures_.contains(run.signature))
      unknown.try_emplace(run.signature, &run);
  if (unknown.empty()) return;
  insert_signatures(connection_, unknown);
  std::vector<std::string> signatures;
  for (const auto& [signature, run] : unknown) signatures.push_back(signature);
  const PgRows rows = connection_.run(
      "SELECT signature, id FROM signatures"
      " WHERE md5(signature) = ANY (SELECT md5(unnest($1::text[])))",
      signatures);
  for (int row = 0; row < rows.size(); ++row) signatures_[rows.text(row, 0)] = rows.integer(row, 1);
}

// Another connection may be to a database that was made anew meanwhile. And whoever takes in
// millions of tests must not keep all their names in memory.
void PgNames::forget_what_may_be_wrong() {
  constexpr size_t many = 200'000;
  const bool is_much = tests_.size() + signatures_.size() > many;
  if (generation_ == connection_.generation() && !is_much) return;
  generation_ = connection_.generation();
  tests_.clear();
  signatures_.clear();
}

}  // namespace unflake
