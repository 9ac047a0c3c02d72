#include "repro/relocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = Relocated::Kind;
using Threads = Intervention::Threads;

constexpr const char* office = R"(void Office::send() {
  prepare();
  carrier_ = std::thread(carry);
  after_send();
}

void carry() {
  lock(first);
  sleep_for(road());
  deliver();
}

void Test::TestBody() {
  office.send();
  EXPECT_EQ(office.delivered(), 1);
}
)";

using Files = std::map<std::string, std::string>;

// A program of one or more files, each function with all its lines up to the closing brace. Calls
// are where its source has these words.
class Program {
 public:
  explicit Program(const Files& files) {
    for (const auto& [name, text] : files) {
      for (const std::string_view line : split_lines(text)) sources_[name].emplace_back(line);
      find_functions(name);
    }
    for (const auto& [name, lines] : sources_) {
      find_calls(name);
      find_instruction(name);
    }
  }

  Trace trace() const { return trace_; }

  CodeView view() const {
    CodeView view;
    view.source = [this](const std::string& file) -> const CodeView::Lines& {
      static const CodeView::Lines none;
      const auto found = sources_.find(file);
      return found == sources_.end() ? none : found->second;
    };
    view.functions = [this](const std::string&) -> const FunctionPlaces& { return functions_; };
    view.lines = [this](const std::string&, const std::string& file) {
      std::vector<CodeLine> lines;
      for (size_t i = 0; i < sources_.at(file).size(); ++i)
        lines.push_back({static_cast<int>(i) + 1, function_at(file, static_cast<int>(i) + 1)});
      return lines;
    };
    view.instruction = [this](const SiteName& site) -> std::optional<CodeSpot> {
      const auto found = instructions_.find(site.function + "+" + std::to_string(site.offset));
      return found == instructions_.end() ? std::nullopt : std::optional(found->second);
    };
    return view;
  }

 private:
  // One alone: what carry() delivers.
  void find_instruction(const std::string& file) {
    for (size_t i = 0; i < sources_[file].size(); ++i)
      if (sources_[file][i].find("deliver();") != std::string::npos)
        instructions_["carry+16"] = {file, static_cast<int>(i) + 1, "carry"};
  }

  void find_functions(const std::string& file) {
    for (size_t i = 0; i < sources_[file].size(); ++i) {
      const std::string& line = sources_[file][i];
      if (!line.starts_with("void ")) continue;
      functions_.emplace(line.substr(5, line.find('(') - 5),
                         FunctionPlace{file, static_cast<int>(i) + 1});
    }
  }

  std::string function_at(const std::string& file, int line) const {
    std::string name;
    int nearest = 0;
    for (const auto& [function, place] : functions_) {
      if (place.file != file || place.line > line || place.line < nearest) continue;
      name = function;
      nearest = place.line;
    }
    return name;
  }

  void find_calls(const std::string& file) {
    const std::pair<const char*, const char*> calls[] = {{"std::thread(", "pthread_create"},
                                                         {"sleep_for(", "nanosleep"},
                                                         {"lock(", "pthread_mutex_lock"}};
    for (size_t i = 0; i < sources_[file].size(); ++i)
      for (const auto& [words, api] : calls)
        if (sources_[file][i].find(words) != std::string::npos)
          add_call(file, static_cast<int>(i) + 1, api);
  }

  void add_call(const std::string& file, int line, const std::string& api) {
    TracedSite site;
    site.name = {"", file, line, function_at(file, line), 0, api, 1};
    trace_.sites.push_back(site);
    if (api != "pthread_create") return;
    Frame frame{site.name.function, "/src/" + file, line, 0, false};
    trace_.stacks.push_back({{{0, 0, {frame}}}});
    for (const int number : {1, 2}) {
      TracedThread thread;
      const auto hash = static_cast<uint64_t>(1000 * line + number);
      thread.name = {file + ":" + std::to_string(line) + "#" + std::to_string(number), hash,
                     static_cast<uint64_t>(line)};
      thread.spawn_stack = static_cast<uint32_t>(trace_.stacks.size() - 1);
      trace_.threads.push_back(thread);
    }
  }

  std::map<std::string, CodeView::Lines> sources_;
  std::map<std::string, CodeSpot> instructions_;
  FunctionPlaces functions_;
  Trace trace_;
};

Intervention delay_at(const std::string& site, const std::string& thread = "") {
  Intervention delay;
  delay.site = *parse_site(site);
  delay.duration = 200ms;
  delay.thread.text = thread;
  if (!thread.empty()) delay.threads = thread.ends_with("#*") ? Threads::in_class : Threads::named;
  return delay;
}

Repro recorded(const Intervention& delay, const std::string& source = office) {
  const Program program(Files{{"office.cc", source}});
  Repro repro;
  repro.plan.interventions = {delay};
  repro.failure = {FailureKind::assertion, "office.cc", 15, "", "delivered == 1", ""};
  repro.signature = signature_of(repro.failure);
  describe_sites(repro, program.trace(), program.view());
  return repro;
}

Relocation relocate_in(const Repro& repro, const Files& files) {
  const Program program(files);
  return relocate(repro, program.trace(), program.view());
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string site_of(const Relocation& relocation) {
  return to_string(relocation.plan.interventions[0].site);
}

void expect_only(const Relocation& relocation, Kind kind, const std::string& from,
                 const std::string& to) {
  ASSERT_THAT(relocation.notes, SizeIs(1));
  EXPECT_EQ(relocation.notes[0].kind, kind) << relocation.notes[0].text;
  EXPECT_EQ(relocation.notes[0].from, from);
  EXPECT_EQ(relocation.notes[0].to, to);
}

TEST(Relocation, The_same_program_needs_no_note) {
  const Relocation same = relocate_in(recorded(delay_at("office.cc:9:nanosleep", "office.cc:3#2")),
                                      {{"office.cc", office}});
  EXPECT_THAT(same.notes, IsEmpty());
  EXPECT_EQ(site_of(same), "office.cc:9:nanosleep");
  EXPECT_EQ(same.plan.interventions[0].thread, (ThreadName{"office.cc:3#2", 3002, 3}));
}

TEST(Relocation, A_description_holds_the_line_and_its_surroundings) {
  const Repro repro = recorded(delay_at("office.cc:9:nanosleep", "office.cc:3#1"));
  EXPECT_EQ(repro.sites[0],
            (SiteContext{"carry", 2, "sleep_for(road());", "lock(first);", "deliver();"}));
  EXPECT_EQ(repro.spawns[0], (SiteContext{"Office::send", 2, "carrier_ = std::thread(carry);",
                                          "prepare();", "after_send();"}));
  EXPECT_EQ(repro.failing_line.text, "EXPECT_EQ(office.delivered(), 1);");
}

TEST(Relocation, Lines_inserted_above_move_site_and_thread) {
  const Relocation moved = relocate_in(recorded(delay_at("office.cc:9:nanosleep", "office.cc:3#2")),
                                       {{"office.cc", "// one\n// two\n" + std::string(office)}});
  EXPECT_TRUE(moved.is_complete());
  ASSERT_THAT(moved.notes, SizeIs(2));
  EXPECT_EQ(moved.notes[0].text, "moved: office.cc:9:nanosleep -> office.cc:11:nanosleep");
  EXPECT_EQ(moved.notes[1].text, "moved: office.cc:3#2 -> office.cc:5#2");
  EXPECT_EQ(moved.plan.interventions[0].thread, (ThreadName{"office.cc:5#2", 5002, 5}));
}

TEST(Relocation, What_a_hold_waits_for_moves_too) {
  Repro repro = recorded(delay_at("office.cc:9:nanosleep", "office.cc:3#2"));
  Intervention hold = delay_at("exit()");
  hold.action = Intervention::Action::hold;
  hold.until = 0;
  repro.plan.interventions[0].action = Intervention::Action::watch;
  repro.plan.interventions.push_back(hold);
  const Relocation moved = relocate_in(repro, {{"office.cc", "// one\n" + std::string(office)}});
  EXPECT_TRUE(moved.is_complete());
  EXPECT_EQ(to_string(moved.plan.interventions[0].site), "office.cc:10:nanosleep");
  EXPECT_EQ(moved.plan.interventions[1].until, 0u);
  EXPECT_EQ(to_string(moved.plan.interventions[1].site), "exit()");
}

TEST(Relocation, A_class_of_threads_moves_too) {
  const Relocation moved = relocate_in(recorded(delay_at("office.cc:9:nanosleep", "office.cc:3#*")),
                                       {{"office.cc", "\n" + std::string(office)}});
  EXPECT_EQ(moved.plan.interventions[0].thread.text, "office.cc:4#*");
  EXPECT_EQ(moved.plan.interventions[0].thread.thread_class, 4u);
}

TEST(Relocation, A_line_inserted_inside_of_the_function) {
  const Relocation moved = relocate_in(
      recorded(delay_at("office.cc:9:nanosleep")),
      {{"office.cc", replaced(office, "  lock(first);", "  log();\n  lock(first);\n  log();")}});
  expect_only(moved, Kind::moved, "office.cc:9:nanosleep", "office.cc:11:nanosleep");
}

TEST(Relocation, Another_call_that_takes_the_old_line_is_not_taken_for_it) {
  const Relocation moved = relocate_in(
      recorded(delay_at("office.cc:9:nanosleep")),
      {{"office.cc",
        replaced(office, "  sleep_for(road());", "  sleep_for(0);\n  sleep_for(road());")}});
  expect_only(moved, Kind::moved, "office.cc:9:nanosleep", "office.cc:10:nanosleep");
}

TEST(Relocation, An_edited_line_is_told_with_both_texts) {
  const Relocation edited =
      relocate_in(recorded(delay_at("office.cc:9:nanosleep")),
                  {{"office.cc", replaced(office, "sleep_for(road())", "sleep_for(2 * road())")}});
  expect_only(edited, Kind::edited, "office.cc:9:nanosleep", "office.cc:9:nanosleep");
  EXPECT_THAT(edited.notes[0].text,
              HasSubstr("`sleep_for(road());` is now `sleep_for(2 * road());`"));
}

TEST(Relocation, A_renamed_function_is_found_by_what_is_in_it) {
  const Relocation moved =
      relocate_in(recorded(delay_at("office.cc:9:nanosleep")),
                  {{"office.cc", "\n" + replaced(office, "void carry", "void bring")}});
  expect_only(moved, Kind::moved, "office.cc:9:nanosleep", "office.cc:10:nanosleep");
  EXPECT_THAT(moved.notes[0].text, HasSubstr("from carry to bring"));
}

TEST(Relocation, A_function_that_went_to_another_file_is_found) {
  const std::string carrier =
      "#include <chrono>\nvoid carry() {\n  lock(first);\n  sleep_for(road());\n  deliver();\n}\n";
  const Relocation moved =
      relocate_in(recorded(delay_at("office.cc:9:nanosleep")),
                  {{"office.cc", "void Office::send() {\n}\n"}, {"carrier.cc", carrier}});
  expect_only(moved, Kind::moved, "office.cc:9:nanosleep", "carrier.cc:4:nanosleep");
}

TEST(Relocation, Twins_are_told_apart_by_their_depth_in_the_function) {
  const std::string twins = "void f() {\n  lock(m);\n  lock(m);\n}\n";
  const Relocation moved = relocate_in(recorded(delay_at("office.cc:3:pthread_mutex_lock"), twins),
                                       {{"office.cc", "\n\n" + twins}});
  expect_only(moved, Kind::moved, "office.cc:3:pthread_mutex_lock",
              "office.cc:5:pthread_mutex_lock");
}

TEST(Relocation, Of_equally_good_places_the_nearest_is_taken_and_told) {
  const std::string one = "void f() {\n  x();\n  lock(m);\n  x();\n}\n";
  const std::string three =
      "void f() {\n  y();\n  y();\n  lock(m);\n  y();\n  lock(m);\n  y();\n  lock(m);\n}\n";
  const Relocation moved = relocate_in(recorded(delay_at("office.cc:3:pthread_mutex_lock"), one),
                                       {{"office.cc", three}});
  expect_only(moved, Kind::ambiguous, "office.cc:3:pthread_mutex_lock",
              "office.cc:4:pthread_mutex_lock");
  EXPECT_THAT(moved.notes[0].text, HasSubstr("2 other places"));
}

TEST(Relocation, A_removed_call_is_gone_and_told_with_its_function) {
  const Relocation gone =
      relocate_in(recorded(delay_at("office.cc:9:nanosleep")),
                  {{"office.cc", replaced(office, "  sleep_for(road());\n", "")}});
  expect_only(gone, Kind::gone, "office.cc:9:nanosleep", "");
  EXPECT_FALSE(gone.is_complete());
  EXPECT_EQ(gone.notes[0].text, "gone: office.cc:9:nanosleep in carry, `sleep_for(road());`");
}

TEST(Relocation, An_instruction_stays_as_long_as_its_line_reads_the_same) {
  const Repro repro = recorded(delay_at("carry+0x10"));
  EXPECT_EQ(repro.sites[0].text, "deliver();");
  const Relocation same =
      relocate_in(repro, {{"office.cc", replaced(office, "  prepare();\n", "")}});
  EXPECT_TRUE(same.notes.empty());
  EXPECT_EQ(to_string(same.plan.interventions[0].site), "carry+0x10");
}

TEST(Relocation, An_instruction_whose_line_was_edited_is_gone) {
  const Relocation gone =
      relocate_in(recorded(delay_at("carry+0x10")),
                  {{"office.cc", replaced(office, "  deliver();", "  log(); deliver();")}});
  expect_only(gone, Kind::gone, "carry+0x10", "");
  EXPECT_THAT(gone.notes[0].text, HasSubstr("its code has changed"));
}

TEST(Relocation, Another_call_in_the_same_function_is_no_replacement) {
  const std::string two =
      "void f() {\n  before();\n  lock(first);\n  lock(second);\n  after();\n}\n";
  const Relocation gone = relocate_in(recorded(delay_at("office.cc:3:pthread_mutex_lock"), two),
                                      {{"office.cc", replaced(two, "  lock(first);\n", "")}});
  expect_only(gone, Kind::gone, "office.cc:3:pthread_mutex_lock", "");
}

TEST(Relocation, A_call_that_no_run_came_to_is_told_apart_from_a_removed_one) {
  const Repro repro = recorded(delay_at("office.cc:9:nanosleep"));
  const Program program(Files{{"office.cc", office}});
  Trace seen = program.trace();
  std::erase_if(seen.sites, [](const TracedSite& site) { return site.name.api == "nanosleep"; });
  const Relocation gone = relocate(repro, seen, program.view());
  EXPECT_THAT(gone.notes[0].text, HasSubstr("office.cc:9 reads the same, and no run"));
}

TEST(Relocation, A_thread_whose_place_was_removed_is_gone) {
  const Relocation gone =
      relocate_in(recorded(delay_at("office.cc:9:nanosleep", "office.cc:3#1")),
                  {{"office.cc", replaced(office, "std::thread(carry)", "later(carry)")}});
  EXPECT_FALSE(gone.is_complete());
  EXPECT_THAT(gone.notes[0].text, HasSubstr("gone: the thread office.cc:3#1 in Office::send"));
}

TEST(Relocation, A_pool_that_has_become_smaller_misses_a_thread) {
  Repro repro = recorded(delay_at("office.cc:9:nanosleep", "office.cc:3#2"));
  repro.plan.interventions[0].thread.text = "office.cc:3#7";
  const Relocation gone = relocate_in(repro, {{"office.cc", office}});
  EXPECT_THAT(gone.notes[0].text, HasSubstr("the thread office.cc:3#7 was not started"));
}

TEST(Relocation, The_first_thread_is_always_called_main) {
  const Repro repro = recorded(delay_at("office.cc:9:nanosleep", "main"));
  const Program program(Files{{"office.cc", office}});
  Trace seen = program.trace();
  TracedThread main;
  main.name = {"main", 42, 42};
  seen.threads.push_back(main);
  const Relocation same = relocate(repro, seen, program.view());
  EXPECT_THAT(same.notes, IsEmpty());
  EXPECT_EQ(same.plan.interventions[0].thread.name, 42u);
}

TEST(Relocation, The_digits_of_a_path_are_looked_up_again) {
  Repro repro = recorded(delay_at("office.cc:9:nanosleep", "office.cc:3#1"));
  repro.plan.interventions[0].thread.text = "office.cc:3~4f1a#1";
  const Program program(Files{{"office.cc", office}});
  Trace seen = program.trace();
  seen.threads[0].name = {"office.cc:3~aaaa#1", 1, 1};
  seen.threads[1].name = {"office.cc:3~bbbb#1", 2, 2};
  const Relocation two_ways = relocate(repro, seen, program.view());
  ASSERT_THAT(two_ways.notes, SizeIs(testing::Ge(1u)));
  EXPECT_EQ(two_ways.notes.back().kind, Kind::ambiguous);
  EXPECT_TRUE(two_ways.is_complete());
}

TEST(Relocation, A_source_line_moves_with_its_text) {
  const Relocation moved =
      relocate_in(recorded(delay_at("office.cc:10")), {{"office.cc", "\n" + std::string(office)}});
  expect_only(moved, Kind::moved, "office.cc:10", "office.cc:11");
}

TEST(Relocation, A_function_is_found_by_its_name_wherever_it_is) {
  const Relocation same =
      relocate_in(recorded(delay_at("carry()")), {{"office.cc", "\n\n" + std::string(office)}});
  EXPECT_THAT(same.notes, IsEmpty());
  EXPECT_EQ(site_of(same), "carry()");
}

TEST(Relocation, A_renamed_function_is_found_by_how_it_begins) {
  const std::string renamed = replaced(office, "void Office::send() {", "void Office::post() {");
  const Relocation moved =
      relocate_in(recorded(delay_at("Office::send()")), {{"office.cc", renamed}});
  expect_only(moved, Kind::edited, "Office::send()", "Office::post()");
}

TEST(Relocation, A_removed_function_is_gone) {
  const Relocation gone = relocate_in(recorded(delay_at("Office::send()")),
                                      {{"office.cc", "void carry() {\n  deliver();\n}\n"}});
  expect_only(gone, Kind::gone, "Office::send()", "");
}

TEST(Relocation, Without_sources_the_function_and_the_call_are_enough) {
  Repro repro = recorded(delay_at("office.cc:9:nanosleep"));
  repro.sites[0] = {"carry", -1, "", "", ""};
  const Relocation moved = relocate_in(repro, {{"office.cc", "\n" + std::string(office)}});
  expect_only(moved, Kind::moved, "office.cc:9:nanosleep", "office.cc:10:nanosleep");
}

TEST(Relocation, A_file_without_descriptions_still_runs_where_nothing_moved) {
  Repro repro = recorded(delay_at("office.cc:9:nanosleep", "office.cc:3#1"));
  repro.sites.clear();
  repro.spawns.clear();
  EXPECT_THAT(relocate_in(repro, {{"office.cc", office}}).notes, IsEmpty());
}

TEST(Relocation, Names_of_several_runs_are_added_up) {
  const Program program(Files{{"office.cc", office}});
  Trace seen;
  add_names(seen, program.trace());
  add_names(seen, program.trace());
  EXPECT_EQ(seen.sites.size(), program.trace().sites.size());
  EXPECT_EQ(seen.threads.size(), 2u);
  EXPECT_THAT(
      relocate(recorded(delay_at("office.cc:9:nanosleep", "office.cc:3#1")), seen, program.view())
          .notes,
      IsEmpty());
}

Outcome failed_at(int line, const std::string& expression = "delivered == 1") {
  Outcome outcome;
  outcome.kind = OutcomeKind::fail;
  outcome.failures = {{FailureKind::assertion, "office.cc", line, "", expression, ""}};
  outcome.signature = signature_of(outcome.failures[0]);
  return outcome;
}

TEST(SameFailure, The_failing_line_is_known_again_after_it_moved) {
  const Repro repro = recorded(delay_at("office.cc:9:nanosleep"));
  const Program moved(Files{{"office.cc", "\n\n" + std::string(office)}});
  EXPECT_TRUE(is_same_failure(repro, failed_at(15), moved.view()));
  EXPECT_TRUE(is_same_failure(repro, failed_at(17), moved.view()));
  EXPECT_FALSE(is_same_failure(repro, failed_at(16), moved.view()));
}

TEST(SameFailure, A_pass_and_another_kind_are_not_the_same) {
  const Repro repro = recorded(delay_at("office.cc:9:nanosleep"));
  const Program program(Files{{"office.cc", office}});
  EXPECT_FALSE(is_same_failure(repro, Outcome(), program.view()));
  Outcome crash = failed_at(15);
  crash.failures[0].kind = FailureKind::signal;
  crash.signature = signature_of(crash.failures[0]);
  EXPECT_FALSE(is_same_failure(repro, crash, program.view()));
}

TEST(SameFailure, Of_a_crash_any_crash_is_the_same_mistake) {
  Repro repro = recorded(delay_at("office.cc:9:nanosleep"));
  const Program program(Files{{"office.cc", office}});
  Outcome crash = failed_at(17);
  crash.failures[0].kind = FailureKind::signal;
  crash.failures[0].file = "letter.cc";
  crash.signature = signature_of(crash.failures[0]);
  EXPECT_FALSE(is_same_mistake(repro, crash, program.view()));
  repro.failure.kind = FailureKind::signal;
  EXPECT_FALSE(is_same_failure(repro, crash, program.view()));
  EXPECT_TRUE(is_same_mistake(repro, crash, program.view()));
  EXPECT_FALSE(is_same_mistake(repro, failed_at(17), program.view()));
  EXPECT_FALSE(is_same_mistake(repro, Outcome(), program.view()));
}

TEST(SameFailure, Without_sources_the_expression_decides) {
  const Repro repro = recorded(delay_at("office.cc:9:nanosleep"));
  const Program none(Files{});
  EXPECT_TRUE(is_same_failure(repro, failed_at(99), none.view()));
  EXPECT_FALSE(is_same_failure(repro, failed_at(99, "other == 2"), none.view()));
}

}  // namespace
}  // namespace unflake
