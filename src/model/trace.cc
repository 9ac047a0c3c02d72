#include "model/trace.h"

#include <algorithm>

namespace unflake {

Duration end_of(const Trace& trace) {
  Duration end{};
  for (const TracedEvent& event : trace.events) end = std::max(end, event.exit);
  for (const TracedThread& thread : trace.threads) end = std::max(end, thread.ended);
  return end;
}

}  // namespace unflake
