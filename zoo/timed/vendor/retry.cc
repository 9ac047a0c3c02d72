#include "retry.h"

#include <chrono>
#include <thread>

namespace retry {

bool twice(const std::function<bool()>& attempt) {
  if (attempt()) return true;
  std::this_thread::sleep_for(std::chrono::milliseconds(140));
  return attempt();
}

}  // namespace retry
