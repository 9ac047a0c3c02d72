#pragma once

namespace unflake::agent {

// Makes the agent ready, while the process has one thread. Once; until then hooks pass through.
void start();

// Takes part in the run whose memory has this name; nullptr: there is none.
void join_run(const char* memory_name);

}  // namespace unflake::agent
