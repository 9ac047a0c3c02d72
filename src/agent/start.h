#pragma once

namespace unflake::agent {

// Makes the agent ready, while the process has one thread. Once; until then hooks pass through.
void start();

}  // namespace unflake::agent
