#pragma once

namespace unflake {

// This process adopts every descendant whose parent dies, however it was forked.
bool adopt_orphans();

// Kills and reaps every descendant of this process. Returns how many of them were alive.
int kill_all_descendants();

}  // namespace unflake
