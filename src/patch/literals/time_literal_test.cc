#include "patch/literals/time_literal.h"
#include "patch/literals/literal_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"
#include "support/timed_source.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct ChangeableLine {
  const char* name;
  const char* api;
  Duration value;
};

constexpr ChangeableLine changeable_lines[] = {
    {"suffix", "nanosleep", 200ms},
    {"seconds", "nanosleep", 1s},
    {"floating", "nanosleep", 500ms},
    {"named", "nanosleep", 200ms},
    {"named seconds", "nanosleep", 1s},
    {"braces", "nanosleep", 200ms},
    {"double", "nanosleep", 200ms},
    {"until", "nanosleep", 200ms},
    {"constant", "nanosleep", 200ms},
    {"shared", "nanosleep", 200ms},
    {"macro", "nanosleep", 200ms},
    {"shared macro", "usleep", 200ms},
    {"product", "usleep", 200ms},
    {"separators", "usleep", 200ms},
    {"hexadecimal", "usleep", 200ms},
    {"default", "nanosleep", 200ms},
    {"header", "nanosleep", 200ms},
    {"field", "usleep", 200ms},
    {"in a macro", "pthread_cond_clockwait", 200ms},
    {"statement", "pthread_cond_clockwait", 200ms},
    {"second line", "pthread_cond_clockwait", 200ms},
    {"future", "futex_wait", 2s},
    {"poll", "poll", 1s},
    {"member", "poll", 200ms},
    {"timespec", "nanosleep", 200ms},
    {"timeval", "select", 2s},
    {"designated", "setsockopt", 2s},
    {"timer", "setitimer", 1s},
    {"template", "nanosleep", 200ms},
};

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
    std::ofstream(folder->file("some test.cc")) << timed_source;
    std::ofstream(folder->file("waits.h")) << timed_header;
  }
  static void TearDownTestSuite() { delete folder; }

  static int line_of(const std::string& name) {
    const std::string text = timed_source;
    const size_t at = text.find("// " + name + "\n");
    if (at == std::string::npos) throw std::runtime_error("no line " + name);
    return 1 +
           static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
  }

  static Result<SourceEdit> edit(const std::string& name, const std::string& api,
                                 Duration old_value, Duration new_value) {
    const WantedLiteral wanted{folder->file("some test.cc"), line_of(name), api, old_value};
    const auto unit = source_unit(wanted.file, "");
    return unit ? propose_edit(**unit, wanted, new_value) : Result<SourceEdit>(unit.error());
  }

  static Result<SourceEdit> proved(const std::string& name, const std::string& api,
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
  EXPECT_EQ(change("braces", "nanosleep", 200ms, 1500us),
            (Change{"milliseconds{200}", "std::chrono::microseconds{1500}", ""}));
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
  const auto found = proved("poll", "poll", 1s, 52100us);
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->new_text, "53");
  EXPECT_EQ(found->caution, "rounded up to 53.0 ms");
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
  EXPECT_EQ(change("wrapper", "usleep", 200ms, 53ms),
            (Change{"200", "53", "wait_ms() is taken to count in milliseconds"}));
  EXPECT_EQ(change("in called", "nanosleep", 200ms, 53ms), (Change{"200", "53", ""}));
  EXPECT_THAT(refusal("in called", "nanosleep", 300ms, 53ms), HasSubstr("several calls"));
  for (const char* line : {"default", "in wait_default"})
    EXPECT_THAT(change(line, "nanosleep", 200ms, 53ms).caution,
                HasSubstr("default argument of wait_default()"));
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
              HasSubstr("a parameter of sleeps(), which this file does not call"));
  EXPECT_THAT(refusal("loop", "nanosleep", 200ms, 53ms),
              HasSubstr("`each`, which is computed at run time"));
  EXPECT_THAT(refusal("changed", "nanosleep", 205ms, 53ms),
              HasSubstr("`changed`, which is changed in line"));
}

TEST_F(TimeLiteral, A_literal_of_another_value_is_not_it) {
  EXPECT_THAT(refusal("suffix", "nanosleep", 201ms, 53ms),
              HasSubstr("sleep_for() is passed 200 ms"));
  EXPECT_THAT(refusal("suffix", "poll", 200ms, 53ms), HasSubstr("no literal here"));
}

TEST_F(TimeLiteral, What_cannot_be_read_is_told_with_what_may_help) {
  std::ofstream(folder->file("alone.cc")) << "#include <not_here.h>\n"
                                             "void pause() { Clock::sleep_for(Seconds(2)); }\n";
  const auto found = edit_time_literal({folder->file("alone.cc"), 2, "nanosleep", 2s}, 53ms, "");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().what, HasSubstr("'not_here.h' file not found"));
  EXPECT_THAT(found.error().what, HasSubstr("--compile-commands FOLDER"));
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
  const auto finer = proved("typed", "nanosleep", 1s, 53ms);
  ASSERT_FALSE(finer);
  EXPECT_THAT(finer.error().what, HasSubstr("would not compile"));
  EXPECT_TRUE(proved("typed", "nanosleep", 1s, 2s));
}

TEST_F(TimeLiteral, What_would_be_cut_off_is_not_proposed) {
  const auto found = proved("cut", "nanosleep", 1s, 53ms);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().what, HasSubstr("would not get 53.0 ms"));
}

TEST_F(TimeLiteral, A_file_is_named_as_it_was_asked_for) {
  const auto found = proved("suffix", "nanosleep", 200ms, 53ms);
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->file, folder->file("some test.cc"));
  EXPECT_EQ(found->line, line_of("suffix"));
}

TEST_F(TimeLiteral, All_edits_together_are_a_patch_that_applies_and_compiles) {
  std::vector<SourceEdit> edits;
  for (const auto& [line, api, value] : changeable_lines) {
    auto found = edit(line, api, value, 53ms);
    ASSERT_TRUE(found) << line << ": " << to_string(found.error());
    edits.push_back(std::move(*found));
  }
  const auto diff = unified_diff(edits, folder->path());
  ASSERT_TRUE(diff) << to_string(diff.error());
  TempFolder patched;
  for (const char* file : {"some test.cc", "waits.h"})
    std::filesystem::copy_file(folder->file(file), patched.file(file));
  std::ofstream(patched.file("change.patch")) << *diff;
  const std::string there = "cd " + patched.path() + " && ";
  EXPECT_EQ(std::system((there + "git apply --check change.patch").c_str()), 0) << *diff;
  EXPECT_EQ(std::system((there + "git apply change.patch").c_str()), 0);
  EXPECT_EQ(std::system((there + "g++ -std=c++20 -fsyntax-only 'some test.cc'").c_str()), 0);
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
