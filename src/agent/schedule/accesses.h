#pragma once

#include <stdint.h>
#include <ucontext.h>

namespace unflake::agent {

// A thread of a controlled run is about to touch memory, by an access of the plan.
struct Touch {
  uint32_t access;
  uint32_t site;
  uint32_t stack;  // + 1; 0: none
  uint32_t visit;  // of the access, from 1, by whomever
};

// In an image that is loaded at `bias`. False: enough has been seen of this access.
bool take_touch(const Touch& touch, uint64_t bias, const gregset_t& registers);

// There will be two threads. Whether accesses of one that is alone again may be left out.
void expect_company(bool may_leave);

// Whether freed memory is not to be given out again, and an access is to have a stack.
bool watches_races();
bool needs_stack(uint32_t access);

// What this thread has locked: an access that all make with one lock is not a switch point.
void hold_lock(uint64_t object, bool is_shared);
void give_lock_back(uint64_t object);

}  // namespace unflake::agent
