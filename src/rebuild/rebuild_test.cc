#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "rebuild/build_recipe.h"
#include "rebuild/source_copy.h"
#include "run/local_executor.h"
#include "support/temp_folder.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::HasSubstr;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

constexpr const char* program = "#include <stdio.h>\nint main(void) { puts(ANSWER); }\n";
constexpr const char* patch =
    "--- a/src/main.c\n+++ b/src/main.c\n@@ -1,2 +1,2 @@\n #include <stdio.h>\n"
    "-int main(void) { puts(ANSWER); }\n+int main(void) { puts(\"patched\"); }\n";

// A small project in a repository of its own, and the folder that it is copied to.
class RebuildTest : public testing::Test {
 protected:
  void SetUp() override {
    launcher_ = std::move(*LocalExecutor::create({}, interrupts_));
    write(root() + "/src/main.c", program);
    write(root() + "/.gitignore", "build/\n");
  }

  std::string root() const { return place_.file("project"); }
  std::string copy() const { return place_.file("copy"); }
  Launcher& launcher() { return *launcher_; }

  std::string shell(const std::string& line) {
    Command command;
    command.argv = {"sh", "-ec", line};
    command.cwd = root();
    const ProcessResult result = launcher_->launch(command, 2min);
    EXPECT_EQ(result.code, 0) << line << "\n" << result.output.text() << result.errors.text();
    return result.output.text();
  }

  void commit() {
    shell(
        "git init -q . && git add -A && git -c user.name=T -c user.email=t@example.org commit -q "
        "-m "
        "first");
  }

  void use_cmake() {
    write(root() + "/CMakeLists.txt",
          "cmake_minimum_required(VERSION 3.18)\nproject(small C)\n"
          "set(ANSWER \"none\" CACHE STRING \"\")\n"
          "add_executable(small_test src/main.c)\nadd_executable(broken src/broken.c)\n"
          "target_compile_definitions(small_test PRIVATE \"ANSWER=\\\"${ANSWER}\\\"\")\n"
          "set_target_properties(small_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY "
          "${CMAKE_BINARY_DIR}/bin)\n");
    write(root() + "/src/broken.c", "this does not compile\n");
  }

  void expect_built_by(const std::string& line, const std::string& usual) {
    const auto recipe = find_recipe(root() + usual, line, root());
    ASSERT_TRUE(recipe);
    Sources tree;
    tree.root = root();
    ASSERT_TRUE(copy_tree(tree, copy(), launcher()));
    const auto built = build(*recipe);
    ASSERT_TRUE(built) << built.error().what;
    EXPECT_EQ(shell(built->target), "by hand\n");
  }

  Result<Built> build(const BuildRecipe& recipe) {
    return Builder(recipe, BuildLimits{1, 2min}, launcher())(root(), copy(), copy() + "-build");
  }

  const TempFolder place_;
  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> launcher_;
};

TEST_F(RebuildTest, A_copy_has_what_is_committed_what_is_not_and_no_build_folder) {
  commit();
  write(root() + "/src/main.c", std::string(program) + "// edited\n");
  write(root() + "/src/new.c", "// new\n");
  write(root() + "/out/CMakeCache.txt", "");
  write(root() + "/out/small_test", "a program");
  write(root() + "/build/ignored", "ignored");
  const std::string before = shell("git status --porcelain; git rev-parse HEAD; ls -la .git");
  const Sources tree = source_tree_of(root() + "/src", launcher());
  EXPECT_TRUE(tree.is_git);
  EXPECT_TRUE(tree.is_dirty);
  EXPECT_EQ(tree.root, fs::canonical(root()).string());
  ASSERT_TRUE(copy_tree(tree, copy(), launcher()));
  EXPECT_THAT(contents(copy() + "/src/main.c"), HasSubstr("// edited"));
  EXPECT_EQ(contents(copy() + "/src/new.c"), "// new\n");
  EXPECT_FALSE(fs::exists(copy() + "/out"));
  EXPECT_FALSE(fs::exists(copy() + "/build"));
  EXPECT_EQ(shell("git status --porcelain; git rev-parse HEAD; ls -la .git"), before);
}

TEST_F(RebuildTest, What_unflake_keeps_beside_the_sources_is_no_change_of_them) {
  commit();
  write(root() + "/.unflake/history.db", "runs");
  write(root() + "/src/.unflake/history.db", "runs");
  EXPECT_FALSE(source_tree_of(root(), launcher()).is_dirty);
  write(root() + "/src/new.c", "// new\n");
  EXPECT_TRUE(source_tree_of(root(), launcher()).is_dirty);
}

TEST_F(RebuildTest, A_copy_of_a_commit_has_nothing_else) {
  commit();
  write(root() + "/src/main.c", "edited\n");
  const Sources tree = source_tree_of(root(), launcher());
  const auto head = commit_named(tree, "HEAD", launcher());
  ASSERT_TRUE(head);
  ASSERT_TRUE(copy_commit(tree, *head, copy(), launcher()));
  EXPECT_EQ(contents(copy() + "/src/main.c"), program);
  EXPECT_EQ(contents(root() + "/src/main.c"), "edited\n");
}

TEST_F(RebuildTest, A_commit_that_does_not_exist_is_told) {
  commit();
  const Sources tree = source_tree_of(root(), launcher());
  const auto none = commit_named(tree, "--upload-pack=x", launcher());
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().what, HasSubstr("there is no commit"));
}

TEST_F(RebuildTest, What_is_in_no_repository_is_copied_within_bounds) {
  write(root() + "/CMakeCache.txt", "");
  write(root() + "/CMakeLists.txt", "");  // built where its sources are
  write(root() + "/build/CMakeCache.txt", "");
  write(root() + "/.unflake/history.db", "");
  Sources tree;
  tree.root = root();
  ASSERT_TRUE(copy_tree(tree, copy(), launcher()));
  EXPECT_EQ(contents(copy() + "/src/main.c"), program);
  EXPECT_FALSE(fs::exists(copy() + "/build"));
  EXPECT_FALSE(fs::exists(copy() + "/.unflake"));
  const auto bounded = copy_tree(tree, copy() + "2", launcher(), CopyLimits{1, 1 << 20});
  ASSERT_FALSE(bounded);
  EXPECT_THAT(bounded.error().what, HasSubstr("too many"));
}

TEST_F(RebuildTest, A_copy_inside_of_its_sources_is_not_copied_again) {
  Sources tree;
  tree.root = root();
  const std::string inside = root() + "/unflake-rebuild-abcdef/before";
  ASSERT_TRUE(copy_tree(tree, inside, launcher()));
  EXPECT_EQ(contents(inside + "/src/main.c"), program);
  EXPECT_FALSE(fs::exists(inside + "/unflake-rebuild-abcdef"));
}

TEST_F(RebuildTest, A_read_only_tree_can_be_copied) {
  commit();
  shell("chmod -R a-w .");
  const auto copied = copy_tree(source_tree_of(root(), launcher()), copy(), launcher());
  shell("chmod -R u+w .");
  EXPECT_TRUE(copied) << copied.error().what;
  EXPECT_EQ(contents(copy() + "/src/main.c"), program);
}

TEST_F(RebuildTest, A_patch_is_applied_in_the_copy_alone) {
  commit();
  ASSERT_TRUE(copy_tree(source_tree_of(root(), launcher()), copy(), launcher()));
  const auto applied = apply_patch(copy(), patch, launcher());
  ASSERT_TRUE(applied) << applied.error().what;
  EXPECT_THAT(contents(copy() + "/src/main.c"), HasSubstr("patched"));
  EXPECT_EQ(contents(root() + "/src/main.c"), program);
}

TEST_F(RebuildTest, A_patch_that_does_not_apply_says_where) {
  write(root() + "/src/main.c", "something else\n");
  Sources tree;
  tree.root = root();
  ASSERT_TRUE(copy_tree(tree, copy(), launcher()));
  const auto applied = apply_patch(copy(), patch, launcher());
  ASSERT_FALSE(applied);
  EXPECT_THAT(applied.error().what, HasSubstr("src/main.c"));
  EXPECT_FALSE(apply_patch(copy(), " \n", launcher()));
  EXPECT_FALSE(apply_patch(copy(), "not a diff", launcher()));
}

TEST_F(RebuildTest, CMake_is_found_configured_alike_and_makes_the_one_program) {
  use_cmake();
  commit();
  shell(
      "cmake -S . -B build -DANSWER='as configured' >/dev/null && cmake --build build --target "
      "small_test >/dev/null");
  const auto recipe = find_recipe(root() + "/build/bin/small_test", "", root());
  ASSERT_TRUE(recipe) << recipe.error().what;
  EXPECT_EQ(recipe->system, BuildRecipe::System::cmake);
  EXPECT_EQ(recipe->executable, "bin/small_test");
  ASSERT_TRUE(copy_tree(source_tree_of(root(), launcher()), copy(), launcher()));
  const auto built = build(*recipe);
  ASSERT_TRUE(built) << built.error().what;  // although another program of the project is broken
  EXPECT_EQ(shell(built->target), "as configured\n");
  EXPECT_THAT(contents(copy() + "-build.log"), HasSubstr("cmake --build"));
  EXPECT_FALSE(fs::exists(copy() + "-build/CMakeFiles/broken.dir/src/broken.c.o"));
}

TEST_F(RebuildTest, CMake_is_asked_how_sources_are_compiled_in_the_build_that_is_there) {
  use_cmake();
  commit();
  shell("cmake -S . -B build -DANSWER='as configured' >/dev/null");
  const auto recipe = find_recipe(root() + "/build/bin/small_test", "", root());
  ASSERT_TRUE(recipe) << recipe.error().what;
  const std::string folder = copy() + "-commands";
  const auto asked = Builder(*recipe, {}, launcher()).compile_commands(folder);
  ASSERT_TRUE(asked) << asked.error().what;
  const std::string commands = contents(folder + "/compile_commands.json");
  EXPECT_THAT(commands, HasSubstr("as configured"));
  EXPECT_THAT(commands, HasSubstr("\"directory\": \"" + root() + "/build\""));
  EXPECT_FALSE(fs::exists(root() + "/build/compile_commands.json"));
}

TEST_F(RebuildTest, A_build_that_fails_shows_its_last_lines_and_the_command) {
  write(root() + "/Makefile", "all:\n\tcc -c src/broken.c -o broken.o\n");
  write(root() + "/src/broken.c", "this does not compile\n");
  write(root() + "/small_test", "");
  const auto recipe = find_recipe(root() + "/small_test", "", root());
  ASSERT_TRUE(recipe) << recipe.error().what;
  Sources tree;
  tree.root = root();
  ASSERT_TRUE(copy_tree(tree, copy(), launcher()));
  const auto built = build(*recipe);
  ASSERT_FALSE(built);
  EXPECT_THAT(built.error().what, HasSubstr("src/broken.c:1"));
  EXPECT_THAT(built.error().where, HasSubstr("make -j"));
}

TEST_F(RebuildTest, Make_builds_in_the_copy) {
  write(root() + "/tests/Makefile",
        "small_test: ../src/main.c\n\tcc -DANSWER='\"made\"' -o $@ $<\n");
  commit();
  write(root() + "/tests/small_test", "stale");
  const auto recipe = find_recipe(root() + "/tests/small_test", "", root());
  ASSERT_TRUE(recipe) << recipe.error().what;
  EXPECT_EQ(recipe->system, BuildRecipe::System::make);
  ASSERT_TRUE(copy_tree(source_tree_of(root(), launcher()), copy(), launcher()));
  const auto built = build(*recipe);
  ASSERT_TRUE(built) << built.error().what;
  EXPECT_EQ(shell(built->target), "made\n");
}

TEST_F(RebuildTest, A_command_builds_into_a_folder_of_its_own) {
  expect_built_by("cc -DANSWER='\"by hand\"' -o $UNFLAKE_BUILD/small_test src/main.c",
                  "/build/deep/small_test");
}

TEST_F(RebuildTest, A_command_may_build_into_a_folder_as_it_is_below_the_usual_one) {
  expect_built_by(
      "mkdir -p $UNFLAKE_BUILD/bin && "
      "cc -DANSWER='\"by hand\"' -o $UNFLAKE_BUILD/bin/small_test src/main.c",
      "/build/bin/small_test");
}

TEST_F(RebuildTest, A_command_that_makes_nothing_is_told) {
  const auto recipe = find_recipe(root() + "/build/small_test", "true", root());
  ASSERT_TRUE(recipe);
  fs::create_directories(copy());
  const auto built = build(*recipe);
  ASSERT_FALSE(built);
  EXPECT_THAT(built.error().what, HasSubstr("did not make"));
}

TEST_F(RebuildTest, A_build_that_takes_too_long_is_ended) {
  const auto recipe = find_recipe(root() + "/build/small_test", "sleep 600", root());
  ASSERT_TRUE(recipe);
  fs::create_directories(copy());
  const auto built =
      Builder(*recipe, BuildLimits{1, 1ms}, launcher())(root(), copy(), copy() + "-build");
  ASSERT_FALSE(built);
  EXPECT_THAT(built.error().what, HasSubstr("took longer"));
}

TEST_F(RebuildTest, A_program_of_nobody_knows_what_needs_a_command) {
  const auto recipe = find_recipe(root() + "/bin/small_test", "", root());
  ASSERT_FALSE(recipe);
  EXPECT_THAT(recipe.error().next, HasSubstr("--build"));
}

TEST(CMakeCache, Settings_are_read_and_what_CMake_keeps_for_itself_is_not) {
  const auto settings = read_cmake_cache(
      "# comment\n//Build type\nCMAKE_BUILD_TYPE:STRING=Debug\nA:BOOL=ON\n\"odd:name\":PATH=/x y\n"
      "CMAKE_HOME_DIRECTORY:INTERNAL=/src\nsmall_SOURCE_DIR:STATIC=/src\n"
      "LIB:FILEPATH=LIB-NOTFOUND\nGIVEN:UNINITIALIZED=1=2\nbroken line\n:=\n");
  ASSERT_GE(settings.size(), 4u);
  EXPECT_EQ(settings[0], (BuildRecipe::Setting{"CMAKE_BUILD_TYPE", "STRING", "Debug"}));
  EXPECT_EQ(settings[1], (BuildRecipe::Setting{"A", "BOOL", "ON"}));
  EXPECT_EQ(settings[2], (BuildRecipe::Setting{"odd:name", "PATH", "/x y"}));
  EXPECT_EQ(settings[3], (BuildRecipe::Setting{"GIVEN", "STRING", "1=2"}));
}

TEST(WorkFolder, Is_removed_with_all_that_is_in_it_and_what_a_killed_process_left_too) {
  const TempFolder place;
  ::setenv("TMPDIR", place.path().c_str(), 1);
  const std::string left = place.file("unflake-rebuild-abcdef"),
                    held = place.file("unflake-rebuild-ghijkl");
  write(left + "/lock", "");
  write(left + "/before/deep/file", "x");
  fs::permissions(left + "/before/deep", fs::perms::owner_read | fs::perms::owner_exec);
  write(held + "/lock", "");
  const UniqueFd lock(::open((held + "/lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  std::string path, kept;
  {
    auto work = WorkFolder::make();
    ASSERT_TRUE(work);
    path = work->path();
    write(path + "/something", "x");
    auto other = WorkFolder::make();
    ASSERT_TRUE(other);
    EXPECT_TRUE(fs::exists(path));
    other->keep();
    kept = other->path();
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(kept));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(held));
  ::unsetenv("TMPDIR");
}

}  // namespace
}  // namespace unflake
