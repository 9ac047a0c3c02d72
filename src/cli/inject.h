#pragma once

#include <string>
#include <vector>

#include "model/plan.h"
#include "model/trace.h"
#include "util/result.h"

namespace unflake {

// What the user wants to happen, in the words of the command line.
struct InjectWords {
  std::vector<std::string> delays;     // SITE[@THREAD]=DURATION [at visit N] [once SITE[@THREAD]]
  std::vector<std::string> holds;      // SITE[@THREAD] until SITE[@THREAD] [x N] [for DURATION]
  std::vector<std::string> set_times;  // SITE[@THREAD]=DURATION
  std::vector<std::string> watches;    // SITE[@THREAD]
  std::vector<std::string> scale_times{};  // SITE[@THREAD]=FACTOR, as 0.5 or 50%
  std::vector<std::string> orders{};       // SITE[@THREAD] [visit N] after SITE[@THREAD] [visit N]
};

struct NamedIntervention {
  Intervention intervention;
  std::string text;  // as the user wrote it; of a watch that a hold needs, its site
};

// Understands the words with the names of the threads that an earlier run of the test has shown.
Result<std::vector<NamedIntervention>> parse_interventions(const InjectWords& words,
                                                           const Trace& known);

// "random:7": a sampler and a seed.
Result<Schedule> parse_schedule(std::string_view text);

// What can be told to be wrong with the words before any run has shown threads.
Result<void> check_interventions(const InjectWords& words);

}  // namespace unflake
