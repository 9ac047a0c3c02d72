#pragma once

#include <stdint.h>

#include "protocol/agent_protocol.h"

namespace unflake::agent {

// A thread at a site, before or after its action there.
struct Moment {
  uint16_t plan_site;
  protocol::Position position;
  uint64_t visit;         // of this thread at this site, from 0
  bool has_time = false;  // the call was given one that is not zero
  bool has_wrong_time = false;
};

// Whether rules other than a change of the time value are due. Counts this visit for all of them,
// so ask once.
struct Due {
  uint64_t delay_ns = 0;
  const protocol::Rule* hold = nullptr;
  const protocol::Rule* delay = nullptr;
  const protocol::Rule* replace = nullptr;
  const protocol::Rule* scale = nullptr;
  const protocol::Rule* time_change() const { return replace != nullptr ? replace : scale; }
  bool any() const { return hold != nullptr || delay != nullptr; }
};
Due due_at(const Moment& moment);

// The end of main, or exit(): before any handler or destructor of the program runs. Once in a
// process.
void visit_exit();
// The same of a thread that ends; whoever waits for that goes on.
void visit_thread_end();
// Whether the plan has to do with it.
bool plans_exit();

// Whether what a hold waits for has happened; or that, or never will.
bool has_matched(const protocol::Rule& hold);
bool is_over(const protocol::Rule& hold);

// Makes the thread late, and records that it did. In a controlled run that takes virtual time.
void perform(const Due& due, uint32_t site);

}  // namespace unflake::agent
