#pragma once

#include <stddef.h>
#include <stdint.h>

// The timing APIs, numbered in the order of data/timing-apis.toml, whose head says what its columns
// mean.
namespace unflake::protocol {

enum class Api : uint16_t {
#define TIMING_GROUP(name, traits, drawn)
#define TIMING_API(name, group, traits, edge, timer, argument, unit) name,
#include "protocol/timing_apis.def"
#undef TIMING_GROUP
#undef TIMING_API
  count
};

enum class Group : uint16_t {
#define TIMING_GROUP(name, traits, drawn) name##_group,
#define TIMING_API(name, group, traits, edge, timer, argument, unit)
#include "protocol/timing_apis.def"
#undef TIMING_GROUP
#undef TIMING_API
  count
};
static_assert(static_cast<size_t>(Group::count) <= 32);  // Plan::groups has a bit for each

enum ApiTraits : uint16_t {
  api_wait = 1,
  api_timed = 2,
  api_wakes = 4,
  api_claims = 8,
};

enum GroupTraits : uint16_t {
  group_locks = 1,
  group_guards = 2,
  group_forgets = 4,
  group_sleeps = 8,
  group_polls = 16,
  group_timers = 32,
  group_clocks = 64,
  group_looks = 128,
  group_crosses = 256,
};

enum class Edge : uint8_t {
  none,
  creates,
  forks,
  spawns,
  joins,
  reaps,
  posts,
  takes,
  meets,
  notified,
};

enum class Timer : uint8_t { none, file, socket, signal, read, closed };

enum class Drawn : uint8_t { lock, signal, thread, sleep, io, other };

struct GroupFacts {
  const char* name;
  uint16_t traits;    // bits of GroupTraits
  const char* drawn;  // as Drawn spells it
};

inline constexpr GroupFacts group_facts[] = {
#define TIMING_GROUP(name, traits, drawn) \
  {#name, traits, (static_cast<void>(Drawn::drawn), #drawn)},
#define TIMING_API(name, group, traits, edge, timer, argument, unit)
#include "protocol/timing_apis.def"
#undef TIMING_GROUP
#undef TIMING_API
};
static_assert(sizeof(group_facts) / sizeof(group_facts[0]) == static_cast<size_t>(Group::count));

struct ApiFacts {
  const char* name;
  const char* group_name;
  Group group;
  uint16_t traits;  // bits of ApiTraits
  Edge edge;
  Timer timer;
  uint8_t time_argument;  // from 1; 0: none
  uint32_t time_unit_ns;  // of a plain number there

  constexpr const GroupFacts& group_facts() const {
    return protocol::group_facts[static_cast<size_t>(group)];
  }
};

inline constexpr ApiFacts api_facts[] = {
#define TIMING_GROUP(name, traits, drawn)
#define TIMING_API(name, group, traits, edge, timer, argument, unit) \
  {#name, #group, Group::group##_group, traits, Edge::edge, Timer::timer, argument, unit},
#include "protocol/timing_apis.def"
#undef TIMING_GROUP
#undef TIMING_API
};
static_assert(sizeof(api_facts) / sizeof(api_facts[0]) == static_cast<size_t>(Api::count));

// What the columns of one call must say together. A call for which it is false does not compile.
constexpr bool is_complete(const ApiFacts& api) {
  const bool waits = api.traits & api_wait, wakes = api.traits & api_wakes;
  const bool is_timed = api.traits & api_timed;
  const bool sets_time =
      api.timer == Timer::file || api.timer == Timer::socket || api.timer == Timer::signal;
  if (!is_timed && (api.time_argument != 0 || sets_time)) return false;
  if (is_timed && waits == sets_time) return false;  // it waits until then, or goes on
  switch (api.edge) {
    case Edge::none:
      return true;
    case Edge::creates:
    case Edge::forks:
    case Edge::spawns:
    case Edge::posts:
      return wakes && !waits;
    case Edge::joins:
    case Edge::reaps:
    case Edge::notified:
      return waits && !wakes;
    case Edge::takes:
      return !wakes;
    case Edge::meets:
      return waits && wakes;
  }
  return false;
}

constexpr bool are_complete() {
  for (const ApiFacts& api : api_facts)
    if (!is_complete(api)) return false;
  return true;
}
static_assert(are_complete(), "data/timing-apis.toml: the columns of a call do not fit together");

}  // namespace unflake::protocol
