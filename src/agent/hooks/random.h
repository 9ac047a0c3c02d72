#pragma once

namespace unflake::agent {

// Whether the program has asked the system for random numbers so far: what it made of them before
// its main, all forks of a server would share.
bool random_was_drawn();

}  // namespace unflake::agent
