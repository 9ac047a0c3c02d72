#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ingest/case_handler.h"
#include "model/outcome.h"
#include "model/test.h"
#include "store/store.h"

namespace unflake {

// Whose words a case is written in, as far as that changes how it is read.
enum class CaseDialect { other, unflake, gtest, catch2, doctest, boost_test, ctest, bazel };

CaseDialect dialect_of(const ReportedCase& reported, const CaseContext& context);

// What the report's surroundings say about the program whose tests it is about.
struct ReportOrigin {
  std::string path;           // of the file, as it was given; empty: there is none
  std::string target;         // as the user says; empty: by the rules
  std::string cmake_project;  // of the build folder around the file, when there is one
};

// The same for the same test in every build, and the same as `unflake run` gives it where the
// report says enough. docs/formats.md has the rules.
// `file_target` is what target_from_path() makes of the origin's path.
TestId identity_of(const ReportedCase& reported, const CaseContext& context, CaseDialect dialect,
                   const ReportOrigin& origin, std::string_view file_target);

// The file's name where it says what was tested: "server_test.xml" does, "results.xml" does not.
std::string target_from_path(const std::string& path);

// The runs that a case describes, in their order, without test and start: one, or one for each time
// that it was tried.
void runs_of_case(const ReportedCase& reported, CaseDialect dialect, std::vector<RunRecord>& runs);

// What a <failure> or <error> says that no framework for native code wrote: pytest, JUnit, Rust,
// Go and everybody else. The place is the last one in the test's own code that the text shows. Some
// reports of Go's have its words only in the output of the case.
Failure read_language_failure(const ReportedFailure& reported, std::string_view classname,
                              std::string_view output);

// The runner ended the test because it took too long.
bool tells_timeout(const ReportedFailure& reported);

}  // namespace unflake
