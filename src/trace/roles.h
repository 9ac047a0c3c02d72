#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"

namespace unflake {

// Whether a framework, or whoever wrote the test, calls the body of a test so.
bool is_test_itself(const std::string& function);

// What people call the threads of a trace: by the title that the program gave them, else by what
// they were seen to run.
class ThreadRoles {
 public:
  explicit ThreadRoles(const Trace& trace);

  // "the thread `flusher`", "thread 2 of 4 that run `Pool::work`". Empty for the first one of a
  // process, and where nothing shows it.
  std::string of(uint32_t thread) const;

  // What several have in common: "flusher", "Pool::work", else what started them.
  std::string shared_by(uint32_t thread) const;
  // The same for threads that a picture may draw as one.
  const std::string& kind_of(uint32_t thread) const { return kinds_[thread]; }

 private:
  struct Place {
    size_t number = 0, all = 0;  // among those of its kind
  };

  const Trace& trace_;
  std::vector<std::string> routines_;  // the project's outermost function that each was seen in
  std::vector<std::string> kinds_;
  std::vector<Place> places_;
};

// Of one thread.
std::string role_of(const Trace& trace, uint32_t thread);
// The same, or its name where it has no role: what sentences call it.
std::string who_is(const Trace& trace, uint32_t thread);

}  // namespace unflake
