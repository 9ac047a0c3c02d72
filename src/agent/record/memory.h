#pragma once

#include <stdint.h>

#include "protocol/agent_protocol.h"

// The shared memory of this run, once it is mapped.
namespace unflake::agent {

// Maps the memory that `name` ("GENERATION:PATH") tells. Without one, or with one of another
// version, the agent stays out of the way: hooks pass through and there are no probes.
bool attach(const char* name);
bool attached();

const protocol::Plan& plan();
protocol::Report& report();

// A table of the plan. It was checked when the memory was mapped.
template <class T>
const T* plan_table(const protocol::Table& table);
template <class T>
T* shared_table(const protocol::Table& table);

const char* plan_text(uint32_t offset);

namespace detail {
extern char* base;
}

inline bool attached() {
  return detail::base != nullptr;
}
inline const protocol::Plan& plan() {
  return reinterpret_cast<const protocol::Header*>(detail::base)->plan;
}
inline protocol::Report& report() {
  return *reinterpret_cast<protocol::Report*>(detail::base + protocol::report_offset);
}
template <class T>
const T* plan_table(const protocol::Table& table) {
  return reinterpret_cast<const T*>(detail::base + table.offset);
}
template <class T>
T* shared_table(const protocol::Table& table) {
  return reinterpret_cast<T*>(detail::base + table.offset);
}
inline const char* plan_text(uint32_t offset) {
  return plan_table<char>(plan().text) + offset;
}

// Room for one more event of this thread, its oldest overwritten when there is no other; nullptr:
// the thread has no room at all. Lost events are counted.
protocol::Event* next_event();

}  // namespace unflake::agent
