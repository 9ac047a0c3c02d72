#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace unflake::eval {

// What `unflake balance --json` said about one test.
struct BalanceAnswer {
  struct Value {
    std::string site;
    std::string kind;
    std::string change;
    std::string reason;
    int64_t now_us = 0, proposed_us = 0;

    std::string line() const;  // FILE:LINE of the site
    bool is_changed() const { return change == "shorten" || change == "raise"; }
  };
  std::string test;
  std::string error;  // why there is no answer; empty: there is one
  std::vector<Value> values;
  std::vector<std::string> notes;
  int runs = 0;
  int64_t elapsed_us = 0;
  double before_ms = 0, saved_ms = 0;

  const Value* at(const std::string& line) const;
};

struct SuiteAnswer {
  std::string suite;
  std::string error;
  int runs = 0;
  int64_t elapsed_us = 0;
  std::vector<BalanceAnswer> tests;
};

// Never fails: what cannot be read is an answer with an error.
BalanceAnswer read_balance(const std::string& json);
SuiteAnswer read_suite_balance(const std::string& json);

}  // namespace unflake::eval
