#include "trace/roles.h"

#include <gtest/gtest.h>

#include "support/trace_builder.h"
#include "trace/names.h"

namespace unflake {
namespace {

TEST(ThreadRoles, Are_what_threads_run) {
  const Trace trace = TraceBuilder()
                          .thread("main")
                          .thread("pool.cc:31#1", "main", 1)
                          .thread("pool.cc:31#2", "main", 1)
                          .thread("log.cc:5#1", "main", 1)
                          .call("pool.cc:31#1", "pool.cc:40:read", 2, 3)
                          .in("read", "", 0)
                          .called_at("Pool::work", "/src/pool.cc", 40)
                          .call("pool.cc:31#2", "pool.cc:40:read", 2, 3)
                          .in("read", "", 0)
                          .called_at("Pool::work", "/src/pool.cc", 40)
                          .call("log.cc:5#1", "log.cc:9:read", 2, 3)
                          .in("read", "", 0)
                          .called_at("Log::start::{lambda()#1}::operator()", "/src/log.cc", 9)
                          .trace();
  EXPECT_EQ(role_of(trace, 0), "");
  EXPECT_EQ(role_of(trace, 1), "thread 1 of 2 that run `Pool::work`");
  EXPECT_EQ(role_of(trace, 2), "thread 2 of 2 that run `Pool::work`");
  EXPECT_EQ(role_of(trace, 3), "the thread that `Log::start` started");
  EXPECT_EQ(ThreadRoles(trace).shared_by(2), "Pool::work");
}

// As a library that starts all its threads in one place.
TEST(ThreadRoles, Are_counted_among_those_that_run_the_same) {
  TraceBuilder builder;
  builder.thread("main");
  for (const char* name : {"port.c:62~0a1b#1", "port.c:62~0a1b#2", "port.c:62~77ff#1"}) {
    const bool is_reader = std::string_view(name).ends_with("77ff#1");
    builder.thread(name, "main", 1)
        .call(name, "desk.c:40:read", 2, 3)
        .in("read", "", 0)
        .called_at(is_reader ? "reader_body" : "writer_body", "/src/desk.c", is_reader ? 20 : 40);
  }
  const Trace trace = builder.trace();
  EXPECT_EQ(role_of(trace, 2), "thread 2 of 2 that run `writer_body`");
  EXPECT_EQ(role_of(trace, 3), "the thread that runs `reader_body`");
}

TEST(ThreadRoles, Are_the_names_that_the_program_has_for_them) {
  Trace trace = TraceBuilder()
                    .thread("main")
                    .thread("pool.cc:31#1", "main", 1)
                    .thread("pool.cc:31#2", "main", 1)
                    .thread("log.cc:5#1", "main", 1)
                    .trace();
  trace.threads[0].title = "server";
  trace.threads[1].title = trace.threads[2].title = "io";
  trace.threads[3].title = "flusher";
  EXPECT_EQ(role_of(trace, 0), "");
  EXPECT_EQ(role_of(trace, 2), "thread 2 of 2 named `io`");
  EXPECT_EQ(role_of(trace, 3), "the thread `flusher`");
}

TEST(ThreadRoles, Numbers_in_names_tell_threads_of_a_kind_apart) {
  Trace trace = TraceBuilder()
                    .thread("main")
                    .thread("pool.cc:31~0a1b#1", "main", 1)
                    .thread("pool.cc:31~77ff#1", "main", 1)
                    .trace();
  trace.threads[1].title = "worker-1";
  trace.threads[2].title = "worker-12";
  const ThreadRoles roles(trace);
  EXPECT_EQ(roles.of(2), "the thread `worker-12`");
  EXPECT_EQ(roles.shared_by(2), "worker");
  EXPECT_EQ(roles.kind_of(1), roles.kind_of(2));
}

TEST(ThreadRoles, Are_empty_where_nothing_is_known) {
  const Trace trace = TraceBuilder().thread("main").thread("a.cc:1#1", "main", 1).trace();
  EXPECT_EQ(role_of(trace, 1), "");
  EXPECT_EQ(role_of(trace, 99), "");
  EXPECT_EQ(ThreadRoles(trace).shared_by(1), "a.cc:1");
}

// As a library that has a function of its own for it.
TEST(StartedBy, Sees_through_wrappers) {
  TraceBuilder builder;
  builder.thread("main").thread("port.c:62#1", "main", 1).thread("port.c:62#2", "main", 1);
  for (const int line : {20, 30})
    builder.call("main", "port.c:62:pthread_create", line, line, static_cast<uint64_t>(line))
        .in("pthread_create", "", 0)
        .called_at("port_thread_start", "/src/port.c", 62)
        .called_at(line == 20 ? "start_clerk" : "start_courier", "/src/desk.c", line);
  Trace trace = builder.trace();
  trace.threads[1].spawn_stack = trace.calls[0].stack;
  EXPECT_EQ(started_by(trace, 1), "main at desk.c:20");
  EXPECT_EQ(started_by(trace, 2), "main at port.c:62");
}

// A loop looks at the clock through a wrapper that stands in its file, and does other things in a
// function that does several.
TEST(Wrappers, Are_none_of_the_functions_that_do_more_than_one_thing) {
  TraceBuilder builder;
  builder.thread("main");
  const auto calls = [&](const char* site, int at) -> TraceBuilder& {
    const std::string name = site;
    return builder.call("main", name, at, at + 0.1, static_cast<uint64_t>(at))
        .in(name.substr(name.rfind(':') + 1), "", 0);
  };
  for (const int line : {20, 30})
    calls("core.c:5:close", line)
        .called_at("core_close", "/src/core.c", 5)
        .called_at(line == 20 ? "stream_close" : "file_close", "/src/stream.c", line);
  calls("time.c:7:clock_gettime", 40)
      .called_at("now", "/src/time.c", 7)
      .called_at("run_loop", "/src/core.c", 50)
      .called_at("test", "/src/test.c", 9);
  calls("time.c:7:clock_gettime", 41)
      .called_at("now", "/src/time.c", 7)
      .called_at("run_loop", "/src/core.c", 52)
      .called_at("test", "/src/test.c", 9);
  for (const char* site : {"poll.c:3:epoll_ctl", "poll.c:4:epoll_wait"})
    calls(site, 42)
        .called_at("poll", "/src/poll.c", 3)
        .called_at("run_loop", "/src/core.c", 51)
        .called_at("test", "/src/test.c", 9);
  Trace trace = builder.trace();
  for (TracedSite& site : trace.sites)
    if (site.name.api == "clock_gettime") site.group = "clock";
  const Wrappers wrappers({&trace});
  const auto is_wrapper = [&](const char* function, const char* file) {
    return wrappers.contains({function, file, 1, 0, false});
  };
  EXPECT_TRUE(is_wrapper("core_close", "/src/core.c"));
  EXPECT_TRUE(is_wrapper("now", "/src/time.c"));
  EXPECT_FALSE(is_wrapper("run_loop", "/src/core.c"));
}

}  // namespace
}  // namespace unflake
