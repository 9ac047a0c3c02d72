#include "report/trace_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unflake {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ThreadAtEnd::Frame library(const std::string& function) {
  return {function, "", 0, false};
}

ProcessResult hanging() {
  ThreadAtEnd waits{7, 7, "server_test", {}, ""};
  waits.frames = {library("futex_wait"),
                  library("pthread_cond_wait"),
                  {"Queue::pop", "/src/queue.cc", 57, true},
                  library("std::__invoke"),
                  library("testing::Test::Run"),
                  {"main", "/src/main.cc", 9, true},
                  library("_start")};
  ThreadAtEnd polls{7, 8, "event loop", {}, ""};
  polls.frames = {library("poll"), library("event_loop"), library("clone")};
  ProcessResult process;
  process.thread_stacks = {waits, polls};
  return process;
}

TEST(StacksAtTimeout, Are_cut_to_where_a_thread_waits_and_to_project_code) {
  EXPECT_THAT(
      timeout_stack_lines(hanging(), StackDetail::project),
      ElementsAre("main thread 7 (server_test) was at", "  futex_wait",
                  "  ... 1 frame of libraries", "  Queue::pop queue.cc:57",
                  "  ... 2 frames of libraries", "  main main.cc:9", "  ... 1 frame of libraries",
                  "thread 8 (event loop) was at", "  poll", "  ... 2 frames of libraries"));
}

TEST(StacksAtTimeout, Have_every_frame_when_that_is_wanted) {
  EXPECT_EQ(timeout_stack_lines(hanging(), StackDetail::full).size(), 2u + 7u + 3u);
}

TEST(StacksAtTimeout, Tell_an_endless_recursion_in_one_line) {
  ThreadAtEnd dives{7, 7, "server_test", {}, ""};
  dives.frames.assign(100, {"Tree::dive", "/src/tree.cc", 12, true});
  ProcessResult process;
  process.thread_stacks = {dives};
  EXPECT_THAT(
      timeout_stack_lines(process, StackDetail::project),
      ElementsAre("main thread 7 (server_test) was at", "  Tree::dive tree.cc:12 (100 times)"));
}

TracedFrame traced(const std::string& function, bool is_project) {
  TracedFrame frame{0, 0x1174, {{function, "", 0, 0x1000, false}}};
  if (is_project) frame.first_project = 0;
  return frame;
}

const std::vector<TracedImage> images = {{"/build/server_test", "", true}};

TEST(StackText, Has_project_code_and_how_much_is_between) {
  const TracedStack stack{{traced("testing::AssertHelper", false), traced("Test::TestBody", true),
                           traced("testing::Run", false), traced("main", true)}};
  EXPECT_EQ(stack_text(stack, images, StackDetail::project),
            "  ... 1 frame of libraries\n"
            "  #1  Test::TestBody\n"
            "  ... 1 frame of libraries\n"
            "  #3  main\n");
  EXPECT_THAT(stack_text(stack, images, StackDetail::full), HasSubstr("#2  testing::Run\n"));
}

TEST(StackText, Has_its_first_frames_when_none_is_project_code) {
  const TracedStack stack{std::vector(7, traced("library", false))};
  EXPECT_EQ(stack_text(stack, images, StackDetail::project),
            "  #0  library\n  #1  library\n  #2  library\n  ... 4 frames of libraries\n");
}

TEST(StackText, Tells_an_endless_recursion_in_one_line) {
  std::vector frames(63, traced("Tree::dive", true));
  frames.push_back(traced("main", true));
  EXPECT_EQ(stack_text({frames}, images, StackDetail::project),
            "  #0  Tree::dive (63 times)\n  #63 main\n");
  EXPECT_THAT(stack_text({frames}, images, StackDetail::full), HasSubstr("#62 Tree::dive\n"));
}

TEST(StackText, Names_code_without_names_by_image_and_address) {
  EXPECT_EQ(stack_text({{traced("", true)}}, images, StackDetail::project),
            "  #0  server_test+0x1174\n");
}

TEST(FailuresText, Tells_the_first_exceptions_thrown_before_without_their_stacks) {
  Trace trace;
  trace.failures.resize(9);
  for (TracedFailure& failure : trace.failures) {
    failure.kind = "thrown before";
    failure.stack.frames = {traced("thrower", true)};
  }
  trace.failures.back().kind = "assertion";
  const std::string cut = failures_text(trace, Style(false), StackDetail::project);
  EXPECT_THAT(cut, HasSubstr("and 3 more exceptions thrown before"));
  EXPECT_EQ(cut.find("thrower"), cut.rfind("thrower"));
}

}  // namespace
}  // namespace unflake
