#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "symbols/probe_plan.h"

namespace unflake {

// The probes that a program is run with.
class ProbeSet {
 public:
  enum class Where { entries, lines, instructions };

  // Probes all functions of an image; returns how many places could not be probed.
  std::vector<Unprobeable> add(const std::string& path, Where where, uint8_t flags);
  // Lets the agent do all that it does at a probe that the plan asks for, instead of counting.
  void give_sites();

  struct Named {
    std::string path;
    std::string build_id;
  };
  std::vector<Named> images;
  std::vector<protocol::Probe> probes;  // ordered
  bool with_sites = false;
};

struct ProbedRun {
  std::string output;
  int status = 0;              // as waitpid() tells
  std::vector<uint32_t> hits;  // of each probe
  uint32_t degraded = 0;       // of all processes together
  double seconds = 0;
  double cpu_seconds = 0;  // of the program and its children
};

uint64_t total(const std::vector<uint32_t>& hits);

// Runs a program with the agent and these probes. `agent` empty: without.
ProbedRun run_probed(const std::string& agent, const ProbeSet& set,
                     const std::vector<std::string>& command,
                     const std::vector<std::string>& environment = {});

}  // namespace unflake
