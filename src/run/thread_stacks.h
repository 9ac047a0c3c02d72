#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <vector>

#include "model/process_result.h"
#include "protocol/crash_protocol.h"
#include "symbols/project_code.h"

namespace unflake {

// For people, and for the failure's signature, whoever has walked the stack.
ThreadAtEnd::Frame frame_at_end(const Frame& frame, bool is_project_image,
                                const ProjectCode& policy);

// Where the threads of a test that ran out of time are, before it is killed: of its first process,
// then of everything else below the calling supervisor but these others. Bounded in time and size.
std::vector<ThreadAtEnd> stacks_at_timeout(pid_t first, const std::set<pid_t>& others,
                                           const ProjectCodeRules& code);

// Where a thread is that is about to die of a signal, and is let die as soon as that was seen.
std::vector<ThreadAtEnd> stack_at_crash(const protocol::CrashNotice& notice,
                                        const ProjectCodeRules& code,
                                        const std::function<void()>& let_die);

}  // namespace unflake
