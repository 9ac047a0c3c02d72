#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace unflake {

// The names in a folder that are numbers, as processes, threads and descriptors are in /proc.
std::vector<int> numbered_entries(const std::string& folder);

// This process adopts every descendant whose parent dies, however it was forked.
bool adopt_orphans();

// Everything below this process, parents before their children, except these children and what is
// below them.
std::vector<pid_t> all_descendants(const std::set<pid_t>& spared);

// The same by the kernel's own lists, which is fast, but may miss some while processes come and go.
std::vector<pid_t> listed_descendants(const std::set<pid_t>& spared);

// Whether this process has a child, dead or alive, except these.
bool has_descendants(const std::set<pid_t>& spared);

// Kills and reaps every descendant of this process except these children and what is below them.
// Returns how many it killed.
int kill_all_descendants(const std::set<pid_t>& spared = {});

}  // namespace unflake
