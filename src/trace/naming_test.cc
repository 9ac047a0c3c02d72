#include <gtest/gtest.h>

#include "trace/names.h"

namespace unflake {
namespace {

TEST(FileNames, The_base_name_is_enough_when_it_is_the_only_one) {
  FileNames files;
  files.add({"/src/queue.cc", "/src/server.cc"});
  EXPECT_EQ(files.short_name("/src/queue.cc"), "queue.cc");
}

TEST(FileNames, Folders_tell_files_of_one_name_apart) {
  FileNames files;
  files.add({"/src/a/queue.cc", "/src/b/queue.cc"});
  EXPECT_EQ(files.short_name("/src/a/queue.cc"), "a/queue.cc");
  EXPECT_EQ(files.short_name("/src/b/queue.cc"), "b/queue.cc");
}

TEST(FileNames, As_many_folders_as_it_takes) {
  FileNames files;
  files.add({"/x/lib/queue.cc", "/y/lib/queue.cc"});
  EXPECT_EQ(files.short_name("/x/lib/queue.cc"), "x/lib/queue.cc");
}

TEST(FileNames, The_end_of_a_name_is_not_a_name) {
  FileNames files;
  files.add({"/src/my_queue.cc", "/src/queue.cc"});
  EXPECT_EQ(files.short_name("/src/queue.cc"), "queue.cc");
}

TEST(FileNames, One_file_under_two_spellings_is_one) {
  FileNames files;
  files.add({"/build/../src/queue.cc", "/src/queue.cc"});
  EXPECT_EQ(files.short_name("/build/../src/queue.cc"), "queue.cc");
  EXPECT_EQ(files.short_name("/src/queue.cc"), "queue.cc");
}

TEST(FileNames, A_path_that_is_the_end_of_another_is_written_whole) {
  FileNames files;
  files.add({"/src/queue.cc", "src/queue.cc"});
  EXPECT_EQ(files.short_name("src/queue.cc"), "src/queue.cc");
  EXPECT_EQ(files.short_name("/src/queue.cc"), "/src/queue.cc");
}

TEST(FileNames, A_name_that_was_given_stays) {
  FileNames files;
  EXPECT_EQ(files.short_name("/a/queue.cc"), "queue.cc");
  EXPECT_EQ(files.short_name("/b/queue.cc"), "b/queue.cc");
  EXPECT_EQ(files.short_name("/a/queue.cc"), "queue.cc");
}

constexpr uint64_t main_hash = 1;

Spawned main_thread(const std::string& executable = "") {
  return {main_hash, main_hash, executable, "", 0};
}

Spawned worker(uint64_t thread_class, uint32_t ordinal, const std::string& place = "pool.cc:31") {
  return {thread_class * 100 + ordinal, thread_class, "", place, ordinal};
}

std::vector<std::string> texts(const std::vector<ThreadName>& names) {
  std::vector<std::string> all;
  for (const ThreadName& name : names) all.push_back(name.text);
  return all;
}

using Texts = std::vector<std::string>;

TEST(ThreadNames, Threads_are_named_by_where_they_were_started) {
  ThreadBook book;
  EXPECT_EQ(texts(book.name_threads({main_thread(), worker(7, 0), worker(7, 1)})),
            (Texts{"main", "pool.cc:31#1", "pool.cc:31#2"}));
}

TEST(ThreadNames, Another_programs_threads_carry_its_name) {
  ThreadBook book;
  EXPECT_EQ(texts(book.name_threads({main_thread(), main_thread("server")})),
            (Texts{"main", "server!main"}));
}

TEST(ThreadNames, Two_call_paths_to_one_place_are_told_apart) {
  ThreadBook book;
  EXPECT_EQ(texts(book.name_threads({worker(0xa0001, 0), worker(0xbbeef, 0)})),
            (Texts{"pool.cc:31~0001#1", "pool.cc:31~beef#1"}));
}

TEST(ThreadNames, A_name_stays_when_a_later_run_shows_another_path) {
  ThreadBook book;
  book.name_threads({worker(0xa0001, 0)});
  EXPECT_EQ(texts(book.name_threads({worker(0xbbeef, 0), worker(0xa0001, 0)})),
            (Texts{"pool.cc:31~beef#1", "pool.cc:31#1"}));
}

TEST(ThreadNames, A_class_is_found_by_its_star) {
  ThreadBook book;
  book.name_threads({worker(7, 0), worker(7, 1)});
  ASSERT_TRUE(book.find("pool.cc:31#*"));
  EXPECT_EQ(book.find("pool.cc:31#*")->thread_class, 7u);
  EXPECT_EQ(book.find("pool.cc:31#2")->name, 701u);
  EXPECT_FALSE(book.find("pool.cc:31#3"));
}

TEST(ThreadNames, A_thread_that_nobody_saw_start_is_unknown) {
  ThreadBook book;
  EXPECT_EQ(texts(book.name_threads({{50, 5, "", "", 0}, {51, 5, "", "", 0}})),
            (Texts{"unknown#1", "unknown#2"}));
}

}  // namespace
}  // namespace unflake
