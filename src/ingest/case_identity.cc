#include "ingest/case_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>

#include "output/ci_log/junit_log.h"
#include "util/fnv1a.h"
#include "util/scan.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t longest_id_part = 1000;
constexpr std::string_view nameless = "junit";

// Names that people and tools give to reports of any program.
constexpr std::string_view common_names[] = {
    "test", "tests",  "test_detail", "testresults", "testreport", "result",       "results",
    "out",  "report", "reports",     "output",      "junit",      "testsuites",   "unittests",
    "xml",  "gtest",  "catch2",      "ctest",       "boost",      "junitresults", "junitreport"};

const ReportedSuite* outermost(const CaseContext& context) {
  return context.suites.empty() ? nullptr : &context.suites.front();
}

// Letters and digits of a name, small: "Test-Results" and "test_results" are one.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const unsigned char c : name)
    if (std::isalnum(c) || c == '_') letters += static_cast<char>(std::tolower(c));
  return letters;
}

bool is_common(std::string_view stem) {
  std::string letters = letters_of(stem);
  if (letters == "test_detail") return true;
  std::erase(letters, '_');
  return letters.empty() || std::ranges::find(common_names, letters) != std::end(common_names);
}

// bazel-testlogs/server/server_test/shard_1_of_4/test.xml -> server/server_test
std::string target_from_bazel(std::string_view path) {
  const auto parts = split_at(path, "testlogs/");
  if (!parts) return "";
  std::string target;
  for (const std::string& part : split(parts->after, '/')) {
    if (part.ends_with(".xml") || part.starts_with("shard_") || part.starts_with("run_") ||
        part == "test_attempts")
      break;
    target += (target.empty() ? "" : "/") + part;
  }
  return target;
}

std::string first_of(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (!name.empty()) return std::string(name);
  return std::string(nameless);
}

// "prog.global", "prog.Fixture"
std::string_view catch2_program(std::string_view classname) {
  std::string_view program = classname;
  if (!consume_end(program, ".global")) program = program.substr(0, program.find('.'));
  return program;
}

std::string target_of(const ReportedCase& reported, const CaseContext& context, CaseDialect dialect,
                      const ReportOrigin& origin, std::string_view file) {
  const ReportedSuite* around = outermost(context);
  const std::string_view suite = around ? std::string_view(around->name) : "";
  switch (dialect) {
    case CaseDialect::catch2:
      return first_of({suite, catch2_program(reported.classname), file});
    case CaseDialect::doctest:
      return first_of({base_name(suite), file});
    case CaseDialect::gtest:
      return first_of({file});  // its outer names are "AllTests" and the suite's
    case CaseDialect::boost_test:
      return first_of({file, suite});
    case CaseDialect::ctest:
      return first_of({origin.cmake_project, file, "ctest"});
    default:
      return first_of({suite, context.root_name, file});
  }
}

// Suites within suites are part of the name where no class tells more.
std::string inner_suites(const CaseContext& context) {
  std::string path;
  for (size_t i = 1; i < context.suites.size(); ++i)
    path += (path.empty() ? "" : "/") + context.suites[i].name;
  return path;
}

std::string unflake_name(const ReportedCase& reported, const std::string& target) {
  if (!reported.full_name.empty()) return reported.full_name;
  std::string_view suite = reported.classname;
  if (consume(suite, target)) consume(suite, ".");
  return suite.empty() ? reported.name : fmt::format("{}.{}", suite, reported.name);
}

std::string name_of(const ReportedCase& reported, const CaseContext& context, CaseDialect dialect,
                    const std::string& target) {
  switch (dialect) {
    case CaseDialect::unflake:
      return unflake_name(reported, target);
    case CaseDialect::catch2:
      return case_name(reported.classname, reported.name, Framework::catch2);
    case CaseDialect::doctest:
      return case_name(reported.classname, reported.name, Framework::doctest);
    case CaseDialect::boost_test:
      return case_name(reported.classname, reported.name, Framework::boost_test);
    default:
      break;
  }
  std::string classname = reported.classname;
  if (classname.empty()) classname = inner_suites(context);
  if (classname == target) classname.clear();
  return case_name(classname, reported.name, Framework::gtest);
}

// Two long names that differ at their ends stay two.
std::string bounded_part(std::string text) {
  if (text.size() <= longest_id_part) return text;
  return fmt::format("{} #{:016x}", shorten(text, longest_id_part - 20), fnv1a(text));
}

}  // namespace

CaseDialect dialect_of(const ReportedCase& reported, const CaseContext& context) {
  const ReportedSuite* suite = outermost(context);
  if (context.root_name == "unflake") return CaseDialect::unflake;
  if (suite && suite->of_doctest) return CaseDialect::doctest;
  if (suite && suite->of_catch2) return CaseDialect::catch2;
  if (reported.has_result || context.root_name == "AllTests") return CaseDialect::gtest;
  if (reported.has_assertions && suite && suite->has_id) return CaseDialect::boost_test;
  if (reported.of_ctest) return CaseDialect::ctest;
  if (suite && suite->name == reported.name && reported.classname.empty())
    return CaseDialect::bazel;
  return CaseDialect::other;
}

std::string target_from_path(const std::string& path) {
  if (const std::string bazel = target_from_bazel(path); !bazel.empty()) return bazel;
  std::string_view stem = base_name(path);
  if (!consume_end(stem, ".xml")) consume_end(stem, ".XML");
  return is_common(stem) ? "" : std::string(stem);
}

TestId identity_of(const ReportedCase& reported, const CaseContext& context, CaseDialect dialect,
                   const ReportOrigin& origin, std::string_view file_target) {
  const std::string target = target_of(reported, context, dialect, origin, file_target);
  std::string name = name_of(reported, context, dialect, target);
  if (name.empty()) name = "(no name)";
  return {bounded_part(origin.target.empty() ? target : origin.target),
          bounded_part(std::move(name))};
}

}  // namespace unflake
