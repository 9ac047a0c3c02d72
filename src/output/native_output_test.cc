#include <gtest/gtest.h>

#include "output/output_parsers.h"

namespace unflake {
namespace {

Failure only_abort(std::string_view text) {
  const auto aborts = parse_native_aborts(text);
  EXPECT_EQ(aborts.size(), 1u) << text;
  return aborts.empty() ? Failure{} : aborts.front();
}

Failure library_message(FailureKind kind, std::string message) {
  Failure failure;
  failure.kind = kind;
  failure.message = std::move(message);
  return failure;
}

TEST(NativeOutput, Reads_assert) {
  EXPECT_EQ(only_abort("server: src/server.cc:10: void ns::S::push(int, const char*): Assertion "
                       "`x > 0 && \"x must be positive\"' failed.\n"),
            (Failure{FailureKind::assertion, "src/server.cc", 10,
                     "void ns::S::push(int, const char*)", "x > 0 && \"x must be positive\"", ""}));
}

TEST(NativeOutput, Reads_assertions_that_spell_their_line) {
  const Failure failure =
      only_abort("# Assertion failed in test/test-udp.c on line 143: `called == 2` (3 == 2)\n");
  EXPECT_EQ(failure, (Failure{FailureKind::assertion, "test/test-udp.c", 143, "", "called == 2",
                              "  (3 == 2)"}));
}

TEST(NativeOutput, Reads_assertions_of_the_standard_library) {
  const Failure failure = only_abort(
      "/usr/include/c++/12/bits/stl_vector.h:1123: std::vector<_Tp, _Alloc>::reference "
      "std::vector<_Tp, _Alloc>::operator[](size_type) [with _Tp = int]: Assertion '__n < "
      "this->size()' failed.\n");
  EXPECT_EQ(failure.line, 1123);
  EXPECT_EQ(failure.expression, "__n < this->size()");
}

TEST(NativeOutput, Reads_the_debug_mode_of_the_standard_library) {
  EXPECT_EQ(only_abort(R"(/usr/include/c++/12/debug/vector:442:
In function:
    std::debug::vector<_Tp, _Allocator>::reference std::debug::vector<_Tp, 
    _Allocator>::operator[](size_type) [with _Tp = int]

Error: attempt to subscript container with out-of-bounds index 3, but 
container only holds 0 elements.

Objects involved in the operation:
)"),
            (Failure{FailureKind::assertion, "/usr/include/c++/12/debug/vector", 442, "", "",
                     "Error: attempt to subscript container with out-of-bounds index 3, but\n"
                     "container only holds 0 elements."}));
}

TEST(NativeOutput, Reads_uncaught_exceptions) {
  EXPECT_EQ(only_abort("terminate called after throwing an instance of 'std::logic_error'\n"
                       "  what():  in a thread\nsecond line\n"),
            library_message(FailureKind::exception, "std::logic_error: in a thread"));
  EXPECT_EQ(only_abort("terminate called after throwing an instance of 'int'\n"),
            library_message(FailureKind::exception, "int"));
  EXPECT_EQ(
      only_abort("terminate called without an active exception\n"),
      library_message(FailureKind::exception, "terminate called without an active exception"));
  EXPECT_EQ(only_abort("libc++abi: terminating due to uncaught exception of type E: text\n"),
            library_message(FailureKind::exception, "E: text"));
}

TEST(NativeOutput, Reads_complaints_of_the_c_library) {
  for (const char* line :
       {"free(): double free detected in tcache 2", "free(): invalid pointer",
        "malloc(): corrupted top size", "*** stack smashing detected ***: terminated",
        "*** buffer overflow detected ***: terminated", "pure virtual method called"})
    EXPECT_EQ(only_abort(line), library_message(FailureKind::signal, line));
}

TEST(NativeOutput, Reads_fatal_checks) {
  EXPECT_EQ(
      only_abort("F0102 12:00:00.123456 1234 server.cc:12] Check failed: a == b (1 vs. 2) "
                 "no route\n"),
      (Failure{FailureKind::assertion, "server.cc", 12, "", "a == b", "  (1 vs. 2)\nno route"}));
  EXPECT_EQ(only_abort("F20240102 12:00:00.123456 1234 server.cc:12] out of ports\n"),
            (Failure{FailureKind::assertion, "server.cc", 12, "", "", "out of ports"}));
  EXPECT_EQ(only_abort("[12:34:0102/120000.123456:FATAL:server.cc(9)] Check failed: ready. \n"),
            (Failure{FailureKind::assertion, "server.cc", 9, "", "", "Check failed: ready."}));
}

TEST(NativeOutput, Reads_assertions_of_qt_and_musl) {
  EXPECT_EQ(only_abort("ASSERT: \"x > 0\" in file queue.cpp, line 3\n"),
            (Failure{FailureKind::assertion, "queue.cpp", 3, "", "x > 0", ""}));
  EXPECT_EQ(only_abort("ASSERT failure in push: \"is closed\", file queue.cpp, line 3\n"),
            (Failure{FailureKind::assertion, "queue.cpp", 3, "", "", "push: \"is closed\""}));
  EXPECT_EQ(only_abort("Assertion failed: x > 0 (queue.c: push: 12)\n"),
            (Failure{FailureKind::assertion, "queue.c", 12, "push", "x > 0", ""}));
}

TEST(NativeOutput, Reads_nothing_into_ordinary_output) {
  EXPECT_TRUE(parse_native_aborts("Freed 3 blocks\nFATAL: nothing\nF 12\nAll assertions hold\n"
                                  "I0102 12:00:00.123456 1234 server.cc:12] Check passed\n")
                  .empty());
}

}  // namespace
}  // namespace unflake
