#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/test.h"
#include "suite/adapter.h"
#include "util/result.h"

namespace unflake {

// A set of tests in the manner of cargo-nextest: `name(Server.*) and not label(slow)`. Texts may be
// hostile: they are bounded in length and depth.
class TestSet {
 public:
  // An error points at the column and says what is expected there.
  static Result<TestSet> parse(std::string_view text);

  bool contains(const Test& test) const;

  // Whether it asks for labels, which some suites list only on request.
  bool needs_labels() const;

  // The parts that no test is in, each as an error that says what exists.
  std::vector<Error> unmatched_parts(const std::vector<Test>& tests) const;

 private:
  friend class SetParser;
  struct Node;
  explicit TestSet(std::shared_ptr<const Node> root) : root_(std::move(root)) {}

  std::shared_ptr<const Node> root_;
};

// Whether a pattern may mean `target:name`. Without a colon, `*net*` would mean all tests of a
// target that is called net_test.
bool means_id(std::string_view pattern);

// "did you mean 'a' or 'b'?" for an unknown word; empty: none is close.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known, size_t most);

// What the user wrote: `TARGET [NAME-OR-GLOB...]`, or `-- COMMAND ARGS...`.
struct TargetWords {
  std::vector<std::string> words;
  std::vector<std::string> command;
  std::optional<Framework> forced;
  std::string target_name;  // empty: after the file, the CMake project or `command`
};

struct Selection {
  Target target;
  std::vector<std::string> patterns;  // none: every test
};

// A target of an earlier session, by its name.
using KnownTargets = std::function<std::optional<Target>(const std::string& target_name)>;

// The first word is a path when there is a target at it; else the name of a known target, or a
// test's full id: split at the first colon into a target, which is looked up the same way, and the
// test's name. A plain command is known by its full id. The target itself is not started.
Result<Selection> resolve(const TargetWords& words, const KnownTargets& known);

// The tests that the patterns mean, in listing order. A pattern is first taken for the exact name
// or id of a test, disabled or not, then for a glob over names and ids. Every pattern has to match.
Result<std::vector<Test>> select(const std::vector<Test>& tests,
                                 const std::vector<std::string>& patterns, bool include_disabled);

// What stays of the tests that patterns mean.
struct Restriction {
  std::vector<TestSet> sets;          // those in any of them; none: all
  std::vector<std::string> excluded;  // except what one of these patterns matches
};

// What stays of `chosen`, which are some of `tests`. An error when nothing does.
Result<std::vector<Test>> narrow(const std::vector<Test>& tests, const std::vector<Test>& chosen,
                                 const Restriction& restriction);

// The parts of the restriction that match no test at all, each with what it could have meant.
std::vector<Error> unmatched_parts(const std::vector<Test>& tests, const Restriction& restriction);

}  // namespace unflake
