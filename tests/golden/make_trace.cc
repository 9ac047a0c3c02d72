#include "golden/make_trace.h"

#include "support/site_names.h"

namespace unflake::golden {
namespace {

TracedFrame frame(const std::string& function, const std::string& file, int line) {
  return {0, 0x1000 + static_cast<uint64_t>(line), {{function, file, line, 0x1000, false}}, 0};
}

TracedCall call(uint32_t thread, uint32_t site, int enter, int exit) {
  TracedCall call;
  call.thread = thread;
  call.site = site;
  call.enter = Duration(enter);
  call.exit = Duration(exit);
  call.object = 0x7ffe1000;
  return call;
}

TracedFailure failure() {
  TracedFailure failure;
  failure.kind = "assertion";
  failure.thread = 0;
  failure.at = Duration(21'000);
  failure.file = "/src/queue_test.cc";
  failure.line = 45;
  failure.message = "expected \x1b[31m1\x1b[0m";
  failure.stack.frames = {frame("Queue_Test::TestBody", "/src/queue_test.cc", 45), {1, 0x2345, {}}};
  failure.stack.frames[0].source[0].inlined = true;
  failure.stack.frames[0].source.push_back({"run", "/src/run.cc", 9, 0x1000, false});
  return failure;
}

void add_threads(Trace& trace) {
  trace.threads = {
      {0, 101, no_index, {"main", 1, 1}, no_index, Duration(20), {}, 0},
      {0, 102, 0, {"pool.cc:31#1", 71, 7}, 0, Duration(500), Duration(9'500), 12},
      {1, 201, no_index, {"server!main", 1, 1}, no_index, Duration(2'000), Duration(8'000), 0}};
  trace.visits = {{0, 0, 3, Duration(1'500)},
                  {1, 0, 40, Duration(7'000)},
                  {0, 1, 1, Duration{}},
                  {2, 2, 2, Duration(12)}};
}

}  // namespace

Trace make_trace() {
  Trace trace;
  trace.images = {{"/build/queue_test", "\xab\xcd", true}, {"/usr/lib/libc.so.6", "", false}};
  trace.processes = {
      {100, no_index, 0, "queue_test", Duration{}, {}},
      {200, 0, no_index, "server \x1b]0;x\a", Duration(2'000), {"some calls could not be hooked"}}};
  trace.sites = {
      {call_site("queue.cc", 57, "pthread_cond_wait"), "condition", "src/queue.cc:57 in Queue::pop",
       0, 0x1057, 0},
      {call_site("pool.cc", 31, "pthread_create"), "thread", "src/pool.cc:31 in Pool::start", 0,
       0x1031, 0},
      {call_site("net.cc", 8, "accept"), "socket", "net/net.cc:8 in main", no_index, 8, 0}};
  trace.sites[2].name.image = "server";
  trace.stacks = {{{frame("Pool::start", "/src/pool.cc", 31)}}};
  add_threads(trace);
  trace.calls = {call(0, 1, 400, 480), call(0, 0, 1'000, 2'500), call(1, 0, 600, 7'600),
                 call(2, 2, 2'100, 2'112)};
  trace.calls[0].stack = 0;
  trace.calls[2].timed_out = trace.calls[2].delayed = true;
  trace.calls[2].value = 5'000'000;
  trace.failures = {failure()};
  trace.functions = {{0, 0x1057, "Queue::pop"}, {0, 0x1031, "Pool::start"}, {0, 0x9, ""}};
  trace.drops = {{"events", 12}};
  trace.problems = {"2 stacks lie outside of their memory"};
  trace.code_notes = {{"queue_test has no debug \x1b[2Jinformation", "build it with -g"}};
  return trace;
}

}  // namespace unflake::golden
