#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>
#include <string>

#include "patch/repair/repair_patch.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::HasSubstr;

// One of each macro, in a file that any dialect accepts.
const char all_macros[] = R"(
#include "unflake_sync.h"
static int leave(void) {
  UNFLAKE_REACHED_AT_END(left);
  return 3;
}
int use_all(int x);
int use_all(int x) {
  UNFLAKE_SCOPE(left);
  UNFLAKE_SCOPE(passed);
  UNFLAKE_SCOPE_OF_PROCESSES(forked);
  if (x > 0) UNFLAKE_AWAIT_EACH(forked, 1);
  if (x > 0) UNFLAKE_REACHED(passed);
  UNFLAKE_AWAIT(passed, 1);
  if (x > 0)
    UNFLAKE_AWAIT(left, 0);
  else
    UNFLAKE_REACHED(left);
  return leave();
}
)";

class SyncHeader : public testing::Test {
 protected:
  SyncHeader() { write("unflake_sync.h", std::string(unflake_sync_header())); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder.file(name)) << text;
  }
  std::string output() const {
    std::ostringstream text;
    text << std::ifstream(folder.file("output.txt")).rdbuf();
    return text.str();
  }
  int shell(const std::string& command) {
    const int status =
        std::system(("cd '" + folder.path() + "' && (" + command + ") >output.txt 2>&1").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }
  bool has(const std::string& compiler) { return shell("command -v " + compiler) == 0; }

  void expect_clean(const std::string& compiler, const std::string& file,
                    const std::vector<std::string>& dialects) {
    if (!has(compiler)) return;
    for (const std::string& dialect : dialects)
      for (const char* off : {"", "-DUNFLAKE_SYNC_OFF "})
        EXPECT_EQ(shell(compiler +
                        " -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only " +
                        off + "-std=" + dialect + " " + file),
                  0)
            << output();
  }

  TempFolder folder;
};

TEST_F(SyncHeader, Every_dialect_of_C_takes_it_without_a_warning) {
  write("use.c", all_macros);
  for (const char* compiler : {"gcc", "clang"})
    expect_clean(compiler, "-Wmissing-prototypes use.c", {"c99", "c11", "c17", "gnu99"});
}

TEST_F(SyncHeader, Every_dialect_of_Cpp_takes_it_without_a_warning) {
  write("use.cc",
        std::string(all_macros) + "struct Fixture { UNFLAKE_SCOPE(member); int x = 1; };\n");
  for (const char* compiler : {"g++", "clang++"})
    expect_clean(compiler, "use.cc", {"c++11", "c++14", "c++17", "c++20"});
}

TEST_F(SyncHeader, Switched_off_nothing_is_left) {
  write("use.c", all_macros);
  ASSERT_EQ(shell("gcc -O0 -DUNFLAKE_SYNC_OFF -c use.c && nm use.o"), 0) << output();
  EXPECT_THAT(output(), testing::Not(HasSubstr("unflake")));
}

// Tests that run in turn, again and at the same time, in several languages and a shared library.
const char library_source[] = R"(
#include <stddef.h>
#include "unflake_sync.h"
struct letter { int sent; };
void *deliver(void *data);
void *deliver(void *data) {
  struct letter *letter = (struct letter *)data;
  __atomic_store_n(&letter->sent, 1, __ATOMIC_RELAXED);
  UNFLAKE_REACHED(delivered);
  return NULL;
}
)";

const char program_source[] = R"(
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "unflake_sync.h"
struct letter { int sent; };
extern "C" void* deliver(void* data);

static void require(bool holds, const char* what) {
  if (!holds) { fprintf(stderr, "%s\n", what); abort(); }
}

static bool arrives() {
  letter own = {0};
  UNFLAKE_SCOPE(delivered);
  pthread_t carrier;
  pthread_create(&carrier, nullptr, deliver, &own);
  UNFLAKE_AWAIT(delivered, 1);
  const bool has_arrived = __atomic_load_n(&own.sent, __ATOMIC_RELAXED) == 1;
  pthread_join(carrier, nullptr);
  return has_arrived;
}

static void* many(void*) {
  for (int i = 0; i < 20; ++i) require(arrives(), "another test's letter counted");
  return nullptr;
}

struct Fixture { UNFLAKE_SCOPE(set_up); Fixture() { UNFLAKE_REACHED(set_up); } };

static int returned() { UNFLAKE_REACHED_AT_END(returned); return 1; }

static int box = 0;

static void* take_each(void*) {
  for (int i = 1; i <= 20; ++i) {
    UNFLAKE_AWAIT_EACH(put_done, 0);
    require(__atomic_load_n(&box, __ATOMIC_RELAXED) == i, "a value was overwritten");
    UNFLAKE_REACHED(take_done);
  }
  return nullptr;
}

int main(int, char** argv) {
  if (strcmp(argv[1], "parallel") == 0) {
    pthread_t tests[8];
    for (pthread_t& test : tests) pthread_create(&test, nullptr, many, nullptr);
    for (pthread_t& test : tests) pthread_join(test, nullptr);
  } else if (strcmp(argv[1], "late") == 0) {
    UNFLAKE_SCOPE(never);
    for (int i = 0; i < 1000; ++i) UNFLAKE_AWAIT(never, 3);  // waits once
  } else if (strcmp(argv[1], "unused") == 0) {
    UNFLAKE_AWAIT(delivered, 5);  // no scope: nobody waits
    { UNFLAKE_SCOPE(other); UNFLAKE_AWAIT(delivered, 5); }
    { UNFLAKE_SCOPE(delivered); { UNFLAKE_SCOPE(delivered); UNFLAKE_REACHED(delivered); } UNFLAKE_AWAIT(delivered, 1); }
    { UNFLAKE_SCOPE(returned); returned(); UNFLAKE_AWAIT(returned, 1); }
    Fixture fixture;
    UNFLAKE_AWAIT(set_up, 1);
  } else if (strcmp(argv[1], "processes") == 0) {
    UNFLAKE_SCOPE_OF_PROCESSES(ready);
    UNFLAKE_SCOPE_OF_PROCESSES(answered);
    const pid_t child = fork();
    if (child == 0) {
      UNFLAKE_REACHED(ready);
      UNFLAKE_AWAIT(answered, 2);
      _exit(0);
    }
    UNFLAKE_AWAIT(ready, 1);
    UNFLAKE_REACHED(answered);
    int status = 0;
    require(waitpid(child, &status, WNOHANG) == 0, "it has not waited for the second answer");
    UNFLAKE_REACHED(answered);
    waitpid(child, &status, 0);
    require(status == 0, "the child failed");
  } else if (strcmp(argv[1], "turns") == 0) {
    UNFLAKE_SCOPE(put_done);
    UNFLAKE_SCOPE(take_done);
    pthread_t taker;
    pthread_create(&taker, nullptr, take_each, nullptr);
    for (int i = 1; i <= 20; ++i) {
      UNFLAKE_AWAIT_EACH(take_done, 1);
      __atomic_store_n(&box, i, __ATOMIC_RELAXED);
      UNFLAKE_REACHED(put_done);
    }
    pthread_join(taker, nullptr);
  } else {
    UNFLAKE_SCOPE(delivered);
    const pid_t child = fork();
    if (child == 0) {
      UNFLAKE_AWAIT(delivered, 1);  // the parent's
      _exit(arrives() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    require(status == 0, "a child has scopes of its own");
  }
}
)";

class SyncProgram : public SyncHeader {
 protected:
  void SetUp() override {
    write("library.c", library_source);
    write("program.cc", program_source);
    write("other.cc", all_macros);
    ASSERT_EQ(
        shell("gcc -std=c99 -g -O1 -fPIC -fvisibility=hidden -Wl,-Bsymbolic-functions -shared "
              "-include visible.h library.c -o liblibrary.so -pthread"),
        0)
        << output();
    ASSERT_EQ(shell("g++ -std=c++11 -g -O1 -DUNFLAKE_SYNC_SECONDS=300 program.cc other.cc "
                    "./liblibrary.so -o program -pthread"),
              0)
        << output();
  }
  SyncProgram() {
    write("visible.h", "__attribute__((visibility(\"default\"))) void *deliver(void *);\n");
  }
};

TEST_F(SyncProgram, Tests_of_one_name_take_turns_and_count_for_themselves) {
  EXPECT_EQ(shell("timeout 300 ./program parallel"), 0) << output();
  EXPECT_EQ(output(), "");
}

TEST_F(SyncProgram, A_wait_in_vain_ends_and_says_so_once) {
  ASSERT_EQ(
      shell(
          "g++ -std=c++11 -DUNFLAKE_SYNC_SECONDS=1 program.cc ./liblibrary.so -o program -pthread"),
      0)
      << output();
  EXPECT_EQ(shell("timeout 60 ./program late"), 0) << output();
  EXPECT_THAT(
      output(),
      testing::MatchesRegex(
          "program.cc:[0-9]+: unflake_sync: `never` was reached 0 of 3 times within 1 s\n"));
}

TEST_F(SyncProgram,
       Nobody_waits_without_a_scope_and_scopes_may_be_nested_members_or_left_by_return) {
  EXPECT_EQ(shell("timeout 60 ./program unused"), 0) << output();
  EXPECT_EQ(output(), "");
}

TEST_F(SyncProgram, A_child_process_has_scopes_of_its_own) {
  EXPECT_EQ(shell("timeout 60 ./program fork"), 0) << output();
  EXPECT_EQ(output(), "");
}

TEST_F(SyncProgram, With_a_scope_of_processes_both_wait_for_each_other) {
  EXPECT_EQ(shell("timeout 60 ./program processes"), 0) << output();
  EXPECT_EQ(output(), "");
}

TEST_F(SyncProgram, In_a_loop_each_turn_waits_for_the_one_before) {
  EXPECT_EQ(shell("timeout 60 ./program turns"), 0) << output();
  EXPECT_EQ(output(), "");
}

}  // namespace
}  // namespace unflake
