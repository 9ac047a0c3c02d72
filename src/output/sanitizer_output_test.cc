#include <gtest/gtest.h>

#include "output/output_parsers.h"

namespace unflake {
namespace {

Failure only_report(std::string_view text) {
  const auto reports = parse_sanitizer_reports(text);
  EXPECT_EQ(reports.size(), 1u);
  return reports.empty() ? Failure{} : reports.front();
}

TEST(SanitizerOutput, Places_a_bad_access_at_its_first_frame) {
  EXPECT_EQ(only_report(R"(=================================================================
==5082==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000014 at pc 0x56350e852cfe bp 0x7fff9f5c1220 sp 0x7fff9f5c1218
READ of size 4 at 0x602000000014 thread T0
    #0 0x56350e852cfd in app::Server::push(int) src/server.cc:9
    #1 0x56350e850fd2 in main src/server.cc:13
    #2 0x7f4bfd245249 in __libc_start_call_main ../sysdeps/nptl/libc_start_call_main.h:58

0x602000000014 is located 4 bytes inside of 16-byte region [0x602000000010,0x602000000020)
freed by thread T0 here:
    #0 0x7f4bfe0ba038 in operator delete[](void*) ../../../../src/libsanitizer/asan/asan_new_delete.cpp:155
    #1 0x56350e850fbd in main src/server.cc:13

SUMMARY: AddressSanitizer: heap-use-after-free src/server.cc:9 in app::Server::push(int)
==5082==ABORTING
)"),
            (Failure{FailureKind::address_sanitizer, "src/server.cc", 9, "app::Server::push(int)",
                     "", "heap-use-after-free"}));
}

TEST(SanitizerOutput, Passes_over_frames_of_the_run_time_library) {
  EXPECT_EQ(
      only_report(
          R"(==5094==ERROR: AddressSanitizer: attempting double-free on 0x602000000010 in thread T0:
    #0 0x7f06ea4ba038 in operator delete[](void*) ../../../../src/libsanitizer/asan/asan_new_delete.cpp:155
    #1 0x55f89267347a in main src/server.cc:18
    #2 0x7f06ea245249 in __libc_start_call_main ../sysdeps/nptl/libc_start_call_main.h:58

SUMMARY: AddressSanitizer: double-free ../../../../src/libsanitizer/asan/asan_new_delete.cpp:155 in operator delete[](void*)
)"),
      (Failure{FailureKind::address_sanitizer, "src/server.cc", 18, "main", "", "double-free"}));
}

TEST(SanitizerOutput, Reads_leaks) {
  EXPECT_EQ(only_report(R"(==5091==ERROR: LeakSanitizer: detected memory leaks

Direct leak of 48 byte(s) in 3 object(s) allocated from:
    #0 0x7f340e4b9628 in operator new[](unsigned long) ../../../../src/libsanitizer/asan/asan_new_delete.cpp:98
    #1 0x55ed26ad1cbc in make() src/server.cc:10
    #2 0x55ed26ad2429 in main src/server.cc:17

SUMMARY: AddressSanitizer: 48 byte(s) leaked in 3 allocation(s).
)"),
            (Failure{FailureKind::leak_sanitizer, "src/server.cc", 10, "make()", "",
                     "detected memory leaks"}));
}

constexpr std::string_view race_head = "WARNING: ThreadSanitizer: data race (pid=5144)\n";
constexpr std::string_view read_side = R"(  Read of size 4 at 0x55f84fec7138 by thread T2:
    #0 reader() src/server.cc:30 (st+0x2362)
    #1 __invoke_impl<void> /usr/include/c++/12/bits/invoke.h:61 (st+0x2362)

)";
constexpr std::string_view write_side =
    R"(  Previous write of size 4 at 0x55f84fec7138 by thread T1:
    #0 writer() src/server.cc:22 (st+0x23ce)
    #1 <null> <null> (libstdc++.so.6+0xd44a2)

)";
constexpr std::string_view creation = R"(  Thread T2 (tid=5148, running) created by main thread at:
    #0 pthread_create ../../../../src/libsanitizer/tsan/tsan_interceptors_posix.cpp:1001 (libtsan.so.2+0x5e686)
    #1 main src/server.cc:2 (st+0x23ce)

SUMMARY: ThreadSanitizer: data race src/server.cc:30 in reader()
)";

TEST(SanitizerOutput, Names_a_race_by_both_sides_whichever_comes_first) {
  const std::string head(race_head), read(read_side), write(write_side), end(creation);
  const Failure race = only_report(head + read + write + end);
  EXPECT_EQ(race, (Failure{FailureKind::thread_sanitizer, "src/server.cc", 22, "writer()",
                           "and server.cc:30", "data race"}));
  EXPECT_EQ(race, only_report(head + write + read + end));
}

TEST(SanitizerOutput, Reads_a_lock_order_inversion) {
  EXPECT_EQ(
      only_report(R"(WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=5149)
  Cycle in lock order graph: M9 (0x7ffdcb0bda80) => M10 (0x7ffdcb0bdab0) => M9

  Mutex M10 acquired here while holding mutex M9 in main thread:
    #0 pthread_mutex_lock ../../../../src/libsanitizer/sanitizer_common/sanitizer_common_interceptors.inc:4324 (libtsan.so.2+0x558e1)
    #1 __gthread_mutex_lock /usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h:749 (st+0x2d77)
    #2 std::mutex::lock() /usr/include/c++/12/bits/std_mutex.h:100 (st+0x2d77)
    #3 main src/server.cc:23 (st+0x2b1d)

SUMMARY: ThreadSanitizer: lock-order-inversion (potential deadlock) /usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h:749 in __gthread_mutex_lock
)"),
      (Failure{FailureKind::thread_sanitizer, "src/server.cc", 23, "main", "",
               "lock-order-inversion (potential deadlock)"}));
}

TEST(SanitizerOutput, Reads_uninitialised_values) {
  EXPECT_EQ(only_report(R"(==5190==WARNING: MemorySanitizer: use-of-uninitialized-value
    #0 0x5633661e945b in main src/server.cc:25:43
    #1 0x563366160350 in _start (server+0x23350) (BuildId: 8c09c58204ec80cec48c5eb37f1150f06113bba8)

SUMMARY: MemorySanitizer: use-of-uninitialized-value src/server.cc:25:43 in main
)"),
            (Failure{FailureKind::memory_sanitizer, "src/server.cc", 25, "main", "",
                     "use-of-uninitialized-value"}));
}

TEST(SanitizerOutput, Reads_undefined_behaviour) {
  const auto reports = parse_sanitizer_reports(
      R"(src/server.cc:21:49: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type 'int'
SUMMARY: UndefinedBehaviorSanitizer: undefined-behavior src/server.cc:21:49 in
src/server.cc:21:76: runtime error: shift exponent 40 is too large for 32-bit type 'int'
)");
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1], (Failure{FailureKind::undefined_behaviour_sanitizer, "src/server.cc", 21,
                                 "", "", "shift exponent 40 is too large for 32-bit type 'int'"}));
}

TEST(SanitizerOutput, Falls_back_on_the_summary) {
  EXPECT_EQ(
      only_report("==7==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000000\n"
                  "SUMMARY: AddressSanitizer: SEGV src/server.cc:20 in Server::stop()\n"),
      (Failure{FailureKind::address_sanitizer, "src/server.cc", 20, "Server::stop()", "", "SEGV"}));
}

TEST(SanitizerOutput, Keeps_reports_apart_that_have_no_summary) {
  const auto reports = parse_sanitizer_reports(
      "==7==ERROR: AddressSanitizer: SEGV on unknown address 0x0\n    #0 0x1 in a() a.cc:1\n"
      "==7==ERROR: LeakSanitizer: detected memory leaks\n    #0 0x1 in b() b.cc:2\n");
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].file, "a.cc");
  EXPECT_EQ(reports[1].file, "b.cc");
}

TEST(SanitizerOutput, Places_a_report_without_symbols_at_an_address_in_a_module) {
  EXPECT_EQ(
      only_report(R"(==9==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000014
    #0 0x7f4bfe0ba038  (/usr/lib/x86_64-linux-gnu/libasan.so.8+0xba038)
    #1 0x56350e852cfd  (/home/ann/build/pthread_server+0x1cfd) (BuildId: 8c09c58204ec80)
    #2 0x7f4bfd245249  (/lib/x86_64-linux-gnu/libc.so.6+0x27249)

SUMMARY: AddressSanitizer: heap-use-after-free (/home/ann/build/pthread_server+0x1cfd)
)"),
      (Failure{FailureKind::address_sanitizer, "", 0, "pthread_server+0x1cfd", "",
               "heap-use-after-free"}));
}

TEST(SanitizerOutput, Names_both_sides_of_a_race_without_symbols) {
  const std::string sides[] = {
      "  Write of size 4 at 0x55f84fec7138 by thread T2:\n"
      "    #0 <null> <null> (server+0x2362)\n    #1 <null> <null> (libstdc++.so.6+0xd44a2)\n\n",
      "  Previous read of size 4 at 0x55f84fec7138 by thread T1:\n"
      "    #0 <null> <null> (server+0x23ce)\n\n"};
  const Failure race = only_report(std::string(race_head) + sides[0] + sides[1]);
  EXPECT_EQ(race, (Failure{FailureKind::thread_sanitizer, "", 0, "server+0x2362",
                           "and server+0x23ce", "data race"}));
  EXPECT_EQ(race, only_report(std::string(race_head) + sides[1] + sides[0]));
}

TEST(StackFrame, Takes_the_run_time_library_for_what_it_is_only_by_its_own_name) {
  const auto is_runtime = [](std::string_view line) {
    return is_runtime_frame(parse_sanitizer_frame(line).value());
  };
  EXPECT_TRUE(is_runtime("#0 0x1  (/lib/libc.so.6+0x1)"));
  EXPECT_TRUE(is_runtime("#0 0x1  (<unknown module>)"));
  EXPECT_TRUE(is_runtime("#0 0x1 in f() (/usr/lib/libm.so.6+0x1)"));
  EXPECT_FALSE(is_runtime("#0 0x1 in f() (/usr/lib/libfilm.so.6+0x1)"));
  EXPECT_FALSE(is_runtime("#0 0x1 in f() (/src/libc.so-work/server+0x1)"));
}

TEST(StackFrame, Reads_functions_with_blanks_and_drops_what_the_optimiser_added) {
  EXPECT_EQ(
      parse_sanitizer_frame(
          "    #1 0x55 in std::map<int, int>::at(int const&) [clone .cold] a/b.cc:3:4 (m+0x1)"),
      (StackFrame{"std::map<int, int>::at(int const&)", "a/b.cc", 3, "m"}));
  EXPECT_FALSE(parse_sanitizer_frame("#include <map>"));
  EXPECT_FALSE(parse_sanitizer_frame("no frame"));
}

TEST(ValgrindOutput, Reads_memory_errors_and_leaks) {
  const auto reports = parse_valgrind_reports(R"(==5160== Memcheck, a memory error detector
==5160== Command: ./server uninit
==5160== 
==5160== Invalid read of size 4
==5160==    at 0x10B607: app::Server::push(int) (server.cc:9)
==5160==    by 0x10A485: main (server.cc:13)
==5160==  Address 0x4d6fc84 is 4 bytes inside a block of size 16 free'd
==5160==    at 0x484575B: operator delete[](void*) (in /usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so)
==5160==    by 0x10A471: main (server.cc:13)
==5160== 
==5160== Thread 2 worker:
==5160== Invalid free() / delete / delete[] / realloc()
==5160==    at 0x484417B: free (in /usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so)
==5160==    by 0x10AA2E: main (server.cc:26)
==5160== 
==5160== HEAP SUMMARY:
==5160==     in use at exit: 48 bytes in 3 blocks
==5160== 
==5160== 48 bytes in 3 blocks are definitely lost in loss record 1 of 1
==5160==    at 0x484320F: operator new[](unsigned long) (in /usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so)
==5160==    by 0x10A362: make() (server.cc:10)
==5160== 
==5160== ERROR SUMMARY: 3 errors from 3 contexts (suppressed: 0 from 0)
)");
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_EQ(reports[0], (Failure{FailureKind::valgrind, "server.cc", 9, "app::Server::push(int)",
                                 "", "Invalid read of size 4"}));
  EXPECT_EQ(reports[1], (Failure{FailureKind::valgrind, "server.cc", 26, "main", "",
                                 "Invalid free() / delete / delete[] / realloc()"}));
  EXPECT_EQ(reports[2],
            (Failure{FailureKind::valgrind, "server.cc", 10, "make()", "", "definitely lost"}));
}

constexpr std::string_view use_after_free =
    R"(==9==ERROR: AddressSanitizer: heap-use-after-free on address 0x60 at pc 0x55 bp 0x7f sp 0x7f
WRITE of size 4 at 0x602000000010 thread T2
    #0 0x55ab933b829b in use() /src/session.cc:6
    #1 0x7f01eb0a71f4 in start_thread nptl/pthread_create.c:442

0x602000000010 is located 0 bytes inside of 4-byte region [0x602000000010,0x602000000014)
freed by thread T1 (closer) here:
    #0 0x7f01eb6ba3c8 in operator delete(void*, unsigned long) ../../asan/asan_new_delete.cpp:164
    #1 0x55ab933b82c1 in drop() /src/session.cc:7

previously allocated by thread T0 here:
    #0 0x7f01eb6b94c8 in operator new(unsigned long) ../../asan/asan_new_delete.cpp:95
    #1 0x55ab933b83a1 in main /src/session.cc:9

Thread T2 created by T0 here:
    #0 0x7f01eb649726 in __interceptor_pthread_create ../../asan/asan_interceptors.cpp:207
    #1 0x55ab933b842c in main /src/session.cc:13

SUMMARY: AddressSanitizer: heap-use-after-free /src/session.cc:6 in use()
)";

TEST(MemoryHistory, Tells_who_used_and_who_freed) {
  EXPECT_EQ(
      memory_history(use_after_free),
      (std::vector<std::string>{"it was written by thread T2 at session.cc:6 in use()",
                                "it was freed by thread T1 (closer) at session.cc:7 in drop()",
                                "it was allocated by the main thread at session.cc:9 in main",
                                "thread T2 was created at session.cc:13 in main"}));
}

TEST(MemoryHistory, Tells_both_who_freed) {
  const auto told = memory_history(
      "==9==ERROR: AddressSanitizer: attempting double-free on 0x602000000010 in thread T0:\n"
      "    #0 0x7f in operator delete(void*, unsigned long) ../../asan/asan_new_delete.cpp:164\n"
      "    #1 0x55 in finish() /src/session.cc:12\n\n"
      "freed by thread T1 here:\n"
      "    #0 0x7f in operator delete(void*, unsigned long) ../../asan/asan_new_delete.cpp:164\n"
      "    #1 0x55 in drop() /src/session.cc:7\n");
  EXPECT_EQ(told, (std::vector<std::string>{
                      "it was freed again by the main thread at session.cc:12 in finish()",
                      "it was freed by thread T1 at session.cc:7 in drop()"}));
}

TEST(MemoryHistory, Says_where_nobody_knows) {
  const auto told = memory_history("free(): double free detected in tcache 2\n");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("-fsanitize=address"), std::string::npos);
}

TEST(MemoryHistory, Is_empty_for_other_reports) {
  EXPECT_TRUE(memory_history("").empty());
  EXPECT_TRUE(memory_history("==9==ERROR: AddressSanitizer: stack-overflow on address 0x7f\n"
                             "    #0 0x55 in f() /src/a.cc:3\n")
                  .empty());
  EXPECT_TRUE(memory_history("freed by thread T1 here:\n    #0 0x55 in f() /src/a.cc:3\n").empty());
}

TEST(ValgrindOutput, Names_a_race_by_both_sides) {
  const auto reports = parse_valgrind_reports(
      R"(==5163== ---Thread-Announcement------------------------------------------
==5163== 
==5163== Thread #3 was created
==5163==    at 0x4BA8B3F: clone (clone.S:76)
==5163==    by 0x10A7D2: main (server.cc:2)
==5163== 
==5163== ----------------------------------------------------------------
==5163== 
==5163== Possible data race during read of size 4 at 0x10F130 by thread #3
==5163== Locks held: none
==5163==    at 0x10A3A9: reader() (server.cc:30)
==5163==    by 0x4B291F4: start_thread (pthread_create.c:442)
==5163== 
==5163== This conflicts with a previous write of size 4 by thread #2
==5163== Locks held: none
==5163==    at 0x10A380: writer() (server.cc:22)
==5163==  Address 0x10f130 is 0 bytes inside data symbol "counter"
==5163== 
)");
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0], (Failure{FailureKind::valgrind, "server.cc", 22, "writer()",
                                 "and server.cc:30", "Possible data race"}));
}

TEST(ValgrindOutput, Names_the_other_side_of_a_race_without_its_folder) {
  const auto reports = parse_valgrind_reports(
      "==5== Possible data race during read of size 4 at 0x10F130 by thread #3\n"
      "==5==    at 0x10A3A9: reader() (/home/ann/server.cc:30)\n==5== \n"
      "==5== This conflicts with a previous write of size 4 by thread #2\n"
      "==5==    at 0x10A380: writer() (/home/ann/server.cc:22)\n==5== \n");
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].expression, "and server.cc:30");
}

}  // namespace
}  // namespace unflake
