#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/repro.h"
#include "stats/intervals.h"

namespace unflake {

// What runs of a test, built at one commit, have shown.
struct CommitLook {
  enum class Answer {
    fails,  // as it does at the bad end
    holds,
    untold,  // it does not build, or no run says anything
  };
  Answer answer = Answer::untold;
  Count failures;   // as recorded, of the runs that could have shown it
  int runs = 0;     // all that it took, those that only look included
  std::string how;  // what was run, or why nothing was
};

std::string_view to_string(CommitLook::Answer answer);

// The search for the first of several commits, oldest first, at which a test fails.
struct CommitBisection {
  enum class Answer {
    found,
    several,       // those between the two that tell cannot be told
    fails_before,  // at the good end, too
    never_fails,   // at the bad end
    unfinished,    // stopped, or out of time
  };
  struct Step {
    size_t commit = 0;
    bool is_thorough = false;
    CommitLook look;
  };
  Answer answer = Answer::unfinished;
  size_t last_holding = 0, first_failing = 0;
  std::vector<Step> steps;

  int runs() const;
};

struct BisectReport {
  struct Commit {
    std::string id, subject;
  };
  TestId test;
  std::string from, to;         // as they were named
  std::vector<Commit> commits;  // the good end first, the bad end last
  CommitBisection bisection;
  // How it fails at the bad end; none: only in plain runs, or not at all.
  std::optional<Repro> repro;
  std::string headline, signature;
  std::string how;   // what makes it fail, in words
  Count at_bad_end;  // plain runs there, where those had to tell
  int runs = 0;      // all of them, the search at the bad end included
  int builds = 0;
  Duration in_builds{}, elapsed{};
  std::vector<std::string> notes;

  // That introduced the failure; none: not known.
  const Commit* first() const;
};

// "1a2b3c4d5e"
std::string short_id(const BisectReport::Commit& commit);

}  // namespace unflake
