#include "patch/time_literal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// One file for all, because libclang takes half a second for its headers. A comment at the end of a
// line is the line's name.
constexpr const char* source = R"cc(#include <chrono>
#include <condition_variable>
#include <future>
#include <thread>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "waits.h"
                                    using namespace std::chrono_literals;
                                    using std::chrono::milliseconds;
#define DELAY_MS 200
#define SHARED_DELAY_MS (200)
#define CHECK(x)       \
                                      do {                 \
                                        if (!(x)) throw 1; \
                                      } while (false)
                                    constexpr auto kDelay = 200ms;
                                    constexpr auto kShared = 200ms;
                                    const int kDelayMs = 200;
                                    struct Options {
                                      static constexpr int poll_ms = 200;
                                      int field_ms = 200;
                                    };
                                    struct Config {
                                      std::chrono::milliseconds delay;
                                    } config;
                                    inline void wait_ms(int ms) {
                                      usleep(static_cast<unsigned>(ms) * 1000);
                                    }
                                    void wait_default(std::chrono::milliseconds time = 200ms) {
                                      std::this_thread::sleep_for(time);
                                    }  // in wait_default
                                    void once(int ms) {
                                      std::this_thread::sleep_for(milliseconds(ms));
                                    }  // in once

                                    void sleeps(int argument) {
                                      std::this_thread::sleep_for(200ms);  // suffix
                                      std::this_thread::sleep_for(1s);     // seconds
                                      std::this_thread::sleep_for(0.5s);   // floating
                                      std::this_thread::sleep_for(std::chrono::milliseconds(200));  // named
                                      std::this_thread::sleep_for(std::chrono::seconds(1));  // named
                                                                                             // seconds
                                      std::this_thread::sleep_for(milliseconds{200});  // braces
                                      std::this_thread::sleep_for(std::chrono::duration<double>(0.2));  // double
                                      std::this_thread::sleep_until(std::chrono::steady_clock::now() + 200ms);  // until
                                      std::this_thread::sleep_for(kDelay);   // constant
                                      std::this_thread::sleep_for(kShared);  // shared
                                      std::this_thread::sleep_for(kShared);
                                      std::this_thread::sleep_for(milliseconds(DELAY_MS));  // macro
                                      usleep(SHARED_DELAY_MS * 1000);  // shared macro
                                      usleep(SHARED_DELAY_MS * 1000);
                                      usleep(200 * 1000);                         // product
                                      usleep(200'000);                            // separators
                                      usleep(0x30d40);                            // hexadecimal
                                      sleep(1);                                   // whole seconds
                                      usleep(kDelayMs * 1000);                    // plain constant
                                      std::this_thread::sleep_for(config.delay);  // run time
                                      std::this_thread::sleep_for(milliseconds(argument));  // parameter
                                      wait_ms(200);    // wrapper
                                      wait_default();  // default
                                      once(200);
                                      std::this_thread::sleep_for(kInHeader);  // header
                                      std::this_thread::sleep_for(2 * 100ms);  // two literals
                                      usleep(200000);
                                      usleep(200000);  // two calls
                                      usleep(300000);
                                      usleep(200000);  // another call
                                    }

                                    void variables() {
                                      std::chrono::seconds typed = 1s;
                                      std::this_thread::sleep_for(typed);  // typed
                                      auto changed = 200ms;
                                      changed += 5ms;
                                      std::this_thread::sleep_for(changed);  // changed
                                      auto untouched = 200ms;
                                      std::this_thread::sleep_for(untouched);  // untouched
                                      Options options;
                                      usleep(options.field_ms * 1000);  // field
                                    }

                                    void waits(std::condition_variable& cv, std::unique_lock<std::mutex>& lock, pollfd* fds) {
                                      CHECK(cv.wait_for(lock, 200ms) == std::cv_status::timeout);  // in a macro
                                      const bool done =  // statement
                                          cv.wait_for(lock,
                                                      200ms,  // second line
                                                      [] { return false; });
                                      std::async([] { return done_later(); }).wait_for(2s);  // future
                                      poll(fds, 1, 1000);                                    // poll
                                      poll(fds, 1, Options::poll_ms);  // member
                                      (void)done;
                                    }

                                    void structures(int fd) {
                                      timespec ts{0, 200000000};
                                      nanosleep(&ts, nullptr);  // timespec
                                      timeval tv = {2, 0};
                                      select(0, nullptr, nullptr, nullptr, &tv);  // timeval
                                      timeval designated = {.tv_sec = 2, .tv_usec = 0};
                                      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &designated, sizeof designated);  // designated
                                      timespec assigned;
                                      assigned.tv_sec = 2;
                                      assigned.tv_nsec = 500 * 1000 * 1000;
                                      nanosleep(&assigned, nullptr);  // assigned
                                      timespec deadline;
                                      clock_gettime(CLOCK_REALTIME, &deadline);
                                      deadline.tv_sec += 2;
                                      pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
                                      pthread_mutex_timedlock(&mutex, &deadline);  // deadline
                                      const itimerval timer{{0, 0}, {1, 0}};
                                      setitimer(ITIMER_REAL, &timer, nullptr);  // timer
                                    }

                                    template <class T>
                                    void in_template(T value) {
                                      std::this_thread::sleep_for(200ms);  // template
                                      (void)value;
                                    }

                                    int broken = no_such_name;
)cc";

constexpr const char* header = R"cc(#pragma once
                                    constexpr std::chrono::milliseconds kInHeader{200};
                                    bool done_later();
)cc";

struct Change {
  std::string old_text, new_text, caution;
  bool operator==(const Change&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Change& change) {
  return out << change.old_text << " -> " << change.new_text << " (" << change.caution << ")";
}

class TimeLiteral : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = new TempFolder;
    std::ofstream(folder->file("some test.cc")) << source;
    std::ofstream(folder->file("waits.h")) << header;
  }
  static void TearDownTestSuite() { delete folder; }

  static int line_of(const std::string& name) {
    const std::string text = source;
    const size_t at = text.find("// " + name + "\n");
    if (at == std::string::npos) throw std::runtime_error("no line " + name);
    return 1 +
           static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
  }

  static Result<SourceEdit> edit(const std::string& name, const std::string& api,
                                 Duration old_value, Duration new_value) {
    return edit_time_literal({folder->file("some test.cc"), line_of(name), api, old_value},
                             new_value, "");
  }

  static Change change(const std::string& name, const std::string& api, Duration old_value,
                       Duration new_value) {
    const auto found = edit(name, api, old_value, new_value);
    if (!found) return {to_string(found.error()), "", ""};
    return {found->old_text, found->new_text, found->caution};
  }

  static std::string refusal(const std::string& name, const std::string& api, Duration old_value,
                             Duration new_value) {
    const auto found = edit(name, api, old_value, new_value);
    return found ? found->old_text + " -> " + found->new_text : to_string(found.error());
  }

  static TempFolder* folder;
};

TempFolder* TimeLiteral::folder = nullptr;

TEST_F(TimeLiteral, A_literal_with_a_unit_keeps_it_when_the_number_stays_whole) {
  EXPECT_EQ(change("suffix", "nanosleep", 200ms, 53ms), (Change{"200ms", "53ms", ""}));
  EXPECT_EQ(change("seconds", "nanosleep", 1s, 2s), (Change{"1s", "2s", ""}));
}

TEST_F(TimeLiteral, A_finer_unit_is_taken_when_it_does_not) {
  EXPECT_EQ(change("seconds", "nanosleep", 1s, 53ms), (Change{"1s", "53ms", ""}));
  EXPECT_EQ(change("suffix", "nanosleep", 200ms, 1500us), (Change{"200ms", "1500us", ""}));
  EXPECT_EQ(change("named seconds", "nanosleep", 1s, 53ms),
            (Change{"std::chrono::seconds(1)", "std::chrono::milliseconds(53)", ""}));
  EXPECT_EQ(change("product", "usleep", 200ms, 53500us), (Change{"200 * 1000", "53500", ""}));
}

TEST_F(TimeLiteral, Durations_are_found_however_they_are_written) {
  EXPECT_EQ(change("floating", "nanosleep", 500ms, 53ms), (Change{"0.5s", "0.053s", ""}));
  EXPECT_EQ(change("named", "clock_nanosleep", 200ms, 53ms), (Change{"200", "53", ""}));
  EXPECT_EQ(change("braces", "nanosleep", 200ms, 53ms), (Change{"200", "53", ""}));
  EXPECT_EQ(change("double", "nanosleep", 200ms, 53ms), (Change{"0.2", "0.053", ""}));
  EXPECT_EQ(change("until", "clock_nanosleep", 200ms, 53ms), (Change{"200ms", "53ms", ""}));
  EXPECT_EQ(change("template", "nanosleep", 200ms, 53ms), (Change{"200ms", "53ms", ""}));
}

TEST_F(TimeLiteral, Plain_numbers_count_in_the_unit_of_their_call) {
  EXPECT_EQ(change("product", "usleep", 200ms, 53ms), (Change{"200", "53", ""}));
  EXPECT_EQ(change("separators", "usleep", 200ms, 53ms), (Change{"200'000", "53'000", ""}));
  EXPECT_EQ(change("hexadecimal", "usleep", 200ms, 53ms), (Change{"0x30d40", "53000", ""}));
  EXPECT_EQ(change("poll", "poll", 1s, 53ms), (Change{"1000", "53", ""}));
}

TEST_F(TimeLiteral, Poll_rounds_up_to_a_millisecond_and_says_so) {
  EXPECT_EQ(change("poll", "poll", 1s, 52100us), (Change{"1000", "53", "rounded up to 53.0 ms"}));
}

TEST_F(TimeLiteral, Constants_are_changed_where_they_are_defined) {
  EXPECT_EQ(change("constant", "nanosleep", 200ms, 53ms), (Change{"200ms", "53ms", ""}));
  EXPECT_EQ(change("plain constant", "usleep", 200ms, 53ms), (Change{"200", "53", ""}));
  EXPECT_EQ(change("member", "poll", 200ms, 53ms), (Change{"200", "53", ""}));
  EXPECT_EQ(change("field", "usleep", 200ms, 53ms), (Change{"200", "53", ""}));
  EXPECT_EQ(change("untouched", "nanosleep", 200ms, 53ms), (Change{"200ms", "53ms", ""}));
  const auto macro = edit("macro", "nanosleep", 200ms, 53ms);
  ASSERT_TRUE(macro) << to_string(macro.error());
  EXPECT_EQ(macro->line, 13);
  EXPECT_EQ(macro->new_text, "53");
}

TEST_F(TimeLiteral, What_else_a_constant_changes_is_told) {
  const std::string one = " is used at 1 other place: changing it changes that too";
  EXPECT_EQ(change("shared", "nanosleep", 200ms, 53ms), (Change{"200ms", "53ms", "kShared" + one}));
  EXPECT_EQ(change("shared macro", "usleep", 200ms, 53ms),
            (Change{"200", "53", "SHARED_DELAY_MS" + one}));
}

TEST_F(TimeLiteral, A_constant_of_a_header_is_changed_there) {
  const auto found = edit("header", "nanosleep", 200ms, 53ms);
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->file, std::filesystem::canonical(folder->file("waits.h")).string());
  EXPECT_EQ(found->line, 2);
  EXPECT_EQ(found->caution, "waits.h may be included by other files");
}

TEST_F(TimeLiteral, Functions_of_the_project_pass_their_time_on) {
  EXPECT_EQ(change("wrapper", "usleep", 200ms, 53ms), (Change{"200", "53", ""}));
  EXPECT_EQ(change("in once", "nanosleep", 200ms, 53ms), (Change{"200", "53", ""}));
  EXPECT_THAT(change("default", "nanosleep", 200ms, 53ms).caution, HasSubstr("default argument"));
}

TEST_F(TimeLiteral, Any_line_of_a_statement_leads_to_its_call) {
  for (const char* line : {"statement", "second line"})
    EXPECT_EQ(change(line, "pthread_cond_clockwait", 200ms, 53ms), (Change{"200ms", "53ms", ""}));
  EXPECT_EQ(change("in a macro", "pthread_cond_clockwait", 200ms, 53ms),
            (Change{"200ms", "53ms", ""}));
  EXPECT_EQ(change("future", "futex_wait", 2s, 53ms), (Change{"2s", "53ms", ""}));
}

TEST_F(TimeLiteral, Both_fields_of_a_structure_are_changed_together) {
  EXPECT_EQ(change("timespec", "nanosleep", 200ms, 53ms), (Change{"200000000", "53000000", ""}));
  EXPECT_EQ(change("timespec", "nanosleep", 200ms, 1053ms),
            (Change{"0, 200000000", "1, 53000000", ""}));
  EXPECT_EQ(change("timeval", "select", 2s, 53ms), (Change{"2, 0", "0, 53000", ""}));
  EXPECT_EQ(change("timeval", "select", 2s, 1s), (Change{"2", "1", ""}));
  EXPECT_EQ(change("designated", "setsockopt", 2s, 53ms),
            (Change{"2, .tv_usec = 0", "0, .tv_usec = 53000", ""}));
  EXPECT_EQ(change("assigned", "nanosleep", 2500ms, 2053ms), (Change{"500", "53", ""}));
  EXPECT_EQ(change("deadline", "pthread_mutex_timedlock", 2s, 1s), (Change{"2", "1", ""}));
  EXPECT_EQ(change("timer", "setitimer", 1s, 53ms), (Change{"1, 0", "0, 53000", ""}));
}

TEST_F(TimeLiteral, A_value_of_run_time_is_named) {
  EXPECT_THAT(refusal("run time", "nanosleep", 200ms, 53ms),
              HasSubstr("comes from `config.delay`, which is computed at run time"));
  EXPECT_THAT(refusal("parameter", "nanosleep", 200ms, 53ms),
              HasSubstr("a parameter of sleeps(), which is called at 0 places"));
  EXPECT_THAT(refusal("changed", "nanosleep", 205ms, 53ms),
              HasSubstr("`changed`, which is changed in line"));
}

TEST_F(TimeLiteral, A_literal_of_another_value_is_not_it) {
  EXPECT_THAT(refusal("suffix", "nanosleep", 201ms, 53ms),
              HasSubstr("sleep_for() is passed 200 ms"));
  EXPECT_THAT(refusal("suffix", "poll", 200ms, 53ms), HasSubstr("no literal here"));
}

TEST_F(TimeLiteral, Several_literals_that_could_be_it_are_refused) {
  EXPECT_THAT(refusal("two literals", "nanosleep", 200ms, 53ms), HasSubstr("`2`, `100ms`"));
  EXPECT_THAT(refusal("two calls", "usleep", 200ms, 53ms), HasSubstr("several calls"));
  EXPECT_EQ(change("another call", "usleep", 200ms, 53ms), (Change{"200000", "53000", ""}));
}

TEST_F(TimeLiteral, Whole_seconds_are_not_shortened_below_one) {
  EXPECT_THAT(refusal("whole seconds", "sleep", 1s, 53ms), HasSubstr("usleep"));
}

TEST_F(TimeLiteral, What_would_not_compile_is_not_proposed) {
  EXPECT_THAT(refusal("typed", "nanosleep", 1s, 53ms), HasSubstr("would not compile"));
  EXPECT_EQ(change("typed", "nanosleep", 1s, 2s), (Change{"1s", "2s", ""}));
}

TEST_F(TimeLiteral, Places_that_do_not_exist_are_refused) {
  const std::string file = folder->file("some test.cc");
  EXPECT_FALSE(edit_time_literal({folder->file("none.cc"), 1, "poll", 1s}, 1ms, ""));
  EXPECT_FALSE(edit_time_literal({folder->path(), 1, "poll", 1s}, 1ms, ""));
  EXPECT_FALSE(edit_time_literal({file, 0, "poll", 1s}, 1ms, ""));
  EXPECT_FALSE(edit_time_literal({file, 100000, "poll", 1s}, 1ms, ""));
  EXPECT_FALSE(edit_time_literal({file, 1, "poll", 1s}, 1ms, ""));
  EXPECT_FALSE(edit_time_literal({file, 1, "poll", 0s}, 1ms, ""));
}

TEST_F(TimeLiteral, A_file_that_is_too_large_is_refused) {
  const std::string file = folder->file("large.cc");
  std::ofstream(file) << "";
  std::filesystem::resize_file(file, (16u << 20) + 1);
  const auto found = edit_time_literal({file, 1, "poll", 1s}, 1ms, "");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().what, HasSubstr("16 MiB"));
}

}  // namespace
}  // namespace unflake
