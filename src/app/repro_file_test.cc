#include "app/repro_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;

Repro repro_of(const std::string& test, const std::string& signature) {
  Repro repro;
  repro.test = {"server_test", test};
  repro.signature = signature;
  repro.timeout = 1s;
  return repro;
}

class ReproFile : public testing::Test {
 protected:
  TempFolder folder_;
  const Project project_{folder_.path()};
};

TEST_F(ReproFile, Is_named_by_test_and_signature) {
  const auto path = save_repro(project_, repro_of("Server.Accepts", "8c7b35ab158e3e23"));
  ASSERT_TRUE(path) << to_string(path.error());
  EXPECT_EQ(path->path, folder_.file(".unflake/repro/server_test_Server.Accepts-8c7b35ab.json"));
}

TEST_F(ReproFile, Has_a_name_that_is_safe_whatever_the_test_is_called) {
  const std::string name = "../../etc/\n\x1b[31m $(rm) 'ä" + std::string(5000, 'x');
  const auto path = save_repro(project_, repro_of(name, "8c7b35ab158e3e23"));
  ASSERT_TRUE(path) << to_string(path.error());
  const std::filesystem::path file(path->path);
  EXPECT_EQ(file.parent_path(), folder_.file(".unflake/repro"));
  EXPECT_LT(file.filename().string().size(), 200u);
  EXPECT_EQ(load_repro(path->path)->test.name, name);
}

TEST_F(ReproFile, Of_the_same_failure_is_replaced) {
  Repro repro = repro_of("Server.Accepts", "8c7b35ab158e3e23");
  const auto first = save_repro(project_, repro);
  repro.reason = "better";
  const auto second = save_repro(project_, repro);
  EXPECT_EQ(first->path, second->path);
  EXPECT_EQ(load_repro(second->path)->reason, "better");
}

TEST_F(ReproFile, With_a_slack_is_not_replaced_by_one_of_the_same_failure_without) {
  Repro measured = repro_of("Server.Accepts", "8c7b35ab158e3e23");
  measured.slack = Slack{15ms, 16ms};
  Repro interrupted = repro_of("Server.Accepts", "8c7b35ab158e3e23");
  const auto first = save_repro(project_, measured);
  for (const auto& bound : {std::optional<Slack>(), std::optional(Slack{0ms, 400ms})}) {
    interrupted.slack = bound;
    const auto second = save_repro(project_, interrupted);
    EXPECT_EQ(second->path, first->path);
    EXPECT_TRUE(second->kept_older);
    EXPECT_EQ(load_repro(first->path)->slack, measured.slack);
  }
}

TEST_F(ReproFile, With_a_slack_is_replaced_by_a_newer_slack_and_after_another_commit) {
  Repro measured = repro_of("Server.Accepts", "8c7b35ab158e3e23");
  measured.slack = Slack{15ms, 16ms};
  (void)save_repro(project_, measured);
  measured.slack = Slack{20ms, 21ms};
  const auto newer = save_repro(project_, measured);
  EXPECT_FALSE(newer->kept_older);
  EXPECT_EQ(load_repro(newer->path)->slack, measured.slack);
  Repro after_edit = repro_of("Server.Accepts", "8c7b35ab158e3e23");
  after_edit.commit = "0123456789abcdef0123456789abcdef01234567";
  EXPECT_FALSE(save_repro(project_, after_edit)->kept_older);
  EXPECT_FALSE(load_repro(newer->path)->slack);
}

TEST_F(ReproFile, Of_another_failure_is_never_replaced) {
  const Repro repros[] = {repro_of("a/b", "8c7b35ab158e3e23"), repro_of("a_b", "8c7b35ab158e3e23"),
                          repro_of("a:b", "8c7b35ab158e3e23"), repro_of("a/b", "8c7b35abffffffff")};
  std::vector<std::string> paths;
  for (const Repro& repro : repros) paths.push_back(save_repro(project_, repro)->path);
  for (size_t i = 0; i < paths.size(); ++i) {
    EXPECT_EQ(load_repro(paths[i])->test, repros[i].test);
    EXPECT_EQ(load_repro(paths[i])->signature, repros[i].signature);
    EXPECT_EQ(save_repro(project_, repros[i])->path, paths[i]);
  }
}

TEST_F(ReproFile, That_cannot_be_read_is_left_alone) {
  const Repro repro = repro_of("Server.Accepts", "8c7b35ab158e3e23");
  const std::string first = save_repro(project_, repro)->path;
  std::ofstream(first) << "{ somebody's notes";
  EXPECT_NE(save_repro(project_, repro)->path, first);
}

TEST_F(ReproFile, Leaves_no_temporary_files) {
  (void)save_repro(project_, repro_of("Server.Accepts", "8c7b35ab158e3e23"));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.file(".unflake/repro"))) {
    ++files;
    EXPECT_THAT(entry.path().string(), EndsWith(".json"));
  }
  EXPECT_EQ(files, 1);
}

TEST_F(ReproFile, Is_found_by_path_name_or_name_with_its_ending) {
  const std::string path =
      save_repro(project_, repro_of("Server.Accepts", "8c7b35ab158e3e23"))->path;
  for (const std::string& word : {path, std::string("server_test_Server.Accepts-8c7b35ab"),
                                  std::string("server_test_Server.Accepts-8c7b35ab.json")}) {
    const auto found = find_repro(project_, word);
    ASSERT_TRUE(found) << to_string(found.error());
    EXPECT_EQ(*found, path);
  }
}

TEST_F(ReproFile, Is_found_by_the_signature_of_its_failure_unless_that_is_ambiguous) {
  const std::string path =
      save_repro(project_, repro_of("Server.Accepts", "8c7b35ab158e3e23"))->path;
  for (const char* word : {"8c7b35ab", "8c7b35ab158e3e23"}) {
    const auto found = find_repro(project_, word);
    ASSERT_TRUE(found) << to_string(found.error());
    EXPECT_EQ(*found, path);
  }
  EXPECT_FALSE(find_repro(project_, "8c7b35ab00000000"));
  EXPECT_FALSE(find_repro(project_, "8c7b"));
  (void)save_repro(project_, repro_of("Server.Refuses", "8c7b35ab158e3e23"));
  EXPECT_FALSE(find_repro(project_, "8c7b35ab"));
}

TEST_F(ReproFile, Is_found_by_its_test_unless_that_has_several) {
  const std::string path =
      save_repro(project_, repro_of("Server.Accepts", "8c7b35ab158e3e23"))->path;
  (void)save_repro(project_, repro_of("Server.Accepts-late", "01556f5028a697f1"));
  for (const char* word : {"server_test:Server.Accepts", "server_test_Server.Accepts"}) {
    const auto found = find_repro(project_, word);
    ASSERT_TRUE(found) << to_string(found.error());
    EXPECT_EQ(*found, path);
  }
  EXPECT_FALSE(find_repro(project_, "server_test:Server"));
  (void)save_repro(project_, repro_of("Server.Accepts", "01556f5028a697f1"));
  EXPECT_FALSE(find_repro(project_, "server_test:Server.Accepts"));
}

TEST_F(ReproFile, That_is_not_there_is_an_error_with_the_nearest_names) {
  (void)save_repro(project_, repro_of("Server.Accepts", "8c7b35ab158e3e23"));
  const auto found = find_repro(project_, "server_test_Server.Accept-8c7b35ab");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().next, HasSubstr("server_test_Server.Accepts-8c7b35ab"));
  EXPECT_FALSE(find_repro(project_, ""));
}

TEST_F(ReproFile, Of_a_gigabyte_or_a_folder_is_refused) {
  const std::string huge = folder_.file("huge.json");
  std::ofstream(huge) << "{";
  std::filesystem::resize_file(huge, 1 << 30);
  EXPECT_THAT(load_repro(huge).error().what, HasSubstr("at most 4 MiB"));
  EXPECT_THAT(load_repro(folder_.path()).error().what, HasSubstr("cannot read"));
}

}  // namespace
}  // namespace unflake
