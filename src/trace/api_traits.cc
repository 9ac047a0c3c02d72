#include "trace/api_traits.h"

#include <iterator>

#include "protocol/agent_protocol.h"

namespace unflake {
namespace {

bool has(const TracedSite& site, uint16_t trait) {
  return !site.name.api.empty() && site.api < std::size(protocol::api_facts) &&
         (protocol::api_facts[site.api].traits & trait) != 0;
}

}  // namespace

bool may_wait(const TracedSite& site) {
  return has(site, protocol::api_wait);
}

bool takes_time(const TracedSite& site) {
  return has(site, protocol::api_timed);
}

bool can_wake(const TracedSite& site) {
  return has(site, protocol::api_wakes);
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
