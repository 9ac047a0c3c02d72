#include "trace/api_traits.h"

#include <iterator>

#include "protocol/agent_protocol.h"

namespace unflake {

uint16_t api_traits(const TracedSite& site) {
  const bool is_call = !site.name.api.empty() && site.api < std::size(protocol::api_facts);
  return is_call ? protocol::api_facts[site.api].traits : 0;
}

bool may_wait(const TracedSite& site) {
  return api_traits(site) & protocol::api_wait;
}

bool takes_time(const TracedSite& site) {
  return api_traits(site) & protocol::api_timed;
}

bool can_wake(const TracedSite& site) {
  return api_traits(site) & protocol::api_wakes;
}

bool makes_thread(const TracedSite& site) {
  return site.name.api == "pthread_create" || site.name.api == "thrd_create";
}

bool makes_process(const TracedSite& site) {
  return site.name.api == "fork" || site.name.api.starts_with("posix_spawn");
}

bool is_untimed_wait(const TracedSite& site, const TracedEvent& event) {
  return may_wait(site) && !(takes_time(site) && event.value >= 0);
}

}  // namespace unflake
