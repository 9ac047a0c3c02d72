#pragma once

#include <optional>
#include <string>
#include <vector>

#include "util/result.h"

namespace unflake::eval {

// A way to fail: the kind of mistake, what must run first, and what must wait for it.
struct WayToFail {
  std::string category, critical, barrier;
};

// What is known about a program of the zoo; zoo/README.md describes the fields.
struct Truth {
  std::string family;  // its folder below zoo/; empty: none
  std::string program;
  std::string framework;
  std::string test;
  std::string category;
  std::string failure;
  std::string critical, barrier;
  std::optional<WayToFail> other_way;  // with the same failure
  std::string expect;
  bool lateness_can_cause_it = false;
  int delays_needed = 0;
  double plain_failure_rate = 0;
  int plain_runs = 0;

  std::string path() const { return family.empty() ? program : family + "/" + program; }
  bool fails_often() const { return lateness_can_cause_it && plain_failure_rate >= 0.2; }
  // Whether what `unflake explain` says of it counts.
  bool is_explained() const { return family.empty() || family == "layers"; }
  // As `unflake reproduce --failure` takes it.
  std::string failure_word() const;
};

// Of the NAME.toml in the folder, in order; or those of `only`, which must be there.
Result<std::vector<std::string>> truth_names(const std::string& folder,
                                             const std::vector<std::string>& only);

// Of all NAME.toml in the zoo, by family and name; or of those that are named.
Result<std::vector<Truth>> read_truths(const std::string& zoo,
                                       const std::vector<std::string>& only);

// How a command line names a test: the words that come first, or those after `--`.
struct TestWords {
  std::vector<std::string> words, command;
};
TestWords test_words(const std::string& framework, const std::string& executable,
                     const std::string& test);

}  // namespace unflake::eval
