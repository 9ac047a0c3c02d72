#pragma once

#include <memory>
#include <string>

#include "trace/lowering.h"
#include "trace/raw_trace.h"
#include "util/result.h"
#include "util/unique_fd.h"

namespace unflake {

// The memory that one run shares with the agents in its processes. unflake itself never maps it:
// nothing that a test writes there can change under unflake's eyes.
class AgentMemory {
 public:
  static Result<AgentMemory> create(const LoweredPlan& plan);

  // What the agent finds it by: GENERATION:PATH. Good as long as this object lives.
  std::string address() const;

  // Copies what was written so far, then checks the copy: a process that outlives its run may
  // still write.
  Result<RawTrace> read() const;

  int file() const { return file_.get(); }
  size_t size() const { return size_; }

 private:
  AgentMemory() = default;

  UniqueFd file_;
  size_t size_ = 0;
  uint64_t generation_ = 0;
  uint64_t made_ns_ = 0;
  size_t rules_ = 0;
  size_t probes_ = 0;
  size_t probe_hits_offset_ = 0;
};

}  // namespace unflake
