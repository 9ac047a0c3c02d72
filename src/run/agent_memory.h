#pragma once

#include <memory>
#include <string>

#include "trace/lowering.h"
#include "trace/raw_trace.h"
#include "util/result.h"
#include "util/unique_fd.h"

namespace unflake {

// The memory that one run shares with the agents in its processes. unflake itself never maps it:
// nothing that a test writes there can change while unflake reads it.
class AgentMemory {
 public:
  static Result<AgentMemory> create(const LoweredPlan& plan);

  // What the agent finds it by: GENERATION:PATH. Valid as long as this object lives.
  std::string address() const;

  // Copies what was written so far, then checks the copy: a process that outlives its run may
  // still write.
  Result<RawTrace> read() const;

  // Where whoever watches the test from outside finds protocol::Quiescence; 0: nowhere.
  uint64_t quiescence_offset() const;

  int file() const { return file_.get(); }
  size_t size() const { return header_.size; }

 private:
  AgentMemory() = default;

  UniqueFd file_;
  protocol::Header header_{};
  uint64_t made_ns_ = 0;
};

}  // namespace unflake
