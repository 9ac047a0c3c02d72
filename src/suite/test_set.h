#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/test.h"
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

}  // namespace unflake
