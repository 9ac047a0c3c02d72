#pragma once

#include "model/trace.h"

namespace unflake {

// What a call can do, as data/timing-apis.toml has it (protocol::ApiTraits). A line or a function
// can do nothing.
uint16_t api_traits(const TracedSite& site);
bool may_wait(const TracedSite& site);
bool takes_time(const TracedSite& site);
bool can_wake(const TracedSite& site);

bool makes_thread(const TracedSite& site);
bool makes_process(const TracedSite& site);

// Whether only somebody else could end this wait.
bool is_untimed_wait(const TracedSite& site, const TracedEvent& event);

}  // namespace unflake
