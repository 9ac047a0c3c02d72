#include "model/site.h"

#include <gtest/gtest.h>

#include "support/site_names.h"

namespace unflake {
namespace {

void expect_round_trip(const SiteName& site) {
  const std::string text = to_string(site);
  const auto read = parse_site(text);
  ASSERT_TRUE(read) << text << ": " << to_string(read.error());
  EXPECT_EQ(*read, site) << text;
}

TEST(SiteNames, A_call_is_written_by_file_line_and_api) {
  EXPECT_EQ(to_string(call_site("queue.cc", 57, "pthread_cond_wait")),
            "queue.cc:57:pthread_cond_wait");
}

TEST(SiteNames, A_line_has_no_api) {
  EXPECT_EQ(to_string(call_site("queue.cc", 57, "")), "queue.cc:57");
}

TEST(SiteNames, An_entry_is_written_as_a_call) {
  EXPECT_EQ(to_string(entry_site("Queue::pop")), "Queue::pop()");
}

TEST(SiteNames, Another_image_stands_before_an_exclamation_mark) {
  SiteName site = call_site("queue.cc", 57, "");
  site.image = "libserver.so.2";
  EXPECT_EQ(to_string(site), "libserver.so.2!queue.cc:57");
}

TEST(SiteNames, Code_without_names_is_named_by_its_image) {
  SiteName site = entry_site("server_test");
  site.offset = 0x1174;
  site.api = "pthread_create";
  EXPECT_EQ(to_string(site), "server_test+0x1174:pthread_create");
  expect_round_trip(site);
}

TEST(SiteNames, A_name_without_image_and_function_is_still_read) {
  const auto site = parse_site("+0x74:pthread_create");
  ASSERT_TRUE(site);
  EXPECT_EQ(site->offset, 0x74u);
  EXPECT_EQ(site->api, "pthread_create");
}

TEST(SiteNames, Without_lines_the_offset_in_the_function_tells) {
  SiteName site = entry_site("Queue::pop");
  site.offset = 0x3c;
  site.api = "sem_wait";
  EXPECT_EQ(to_string(site), "Queue::pop+0x3c:sem_wait");
}

TEST(SiteNames, The_second_such_place_has_a_number) {
  SiteName site = call_site("queue.cc", 57, "read");
  site.nth = 2;
  EXPECT_EQ(to_string(site), "queue.cc:57:read#2");
}

TEST(SiteNames, What_is_written_is_read_back) {
  for (const std::string image : {"", "server", "lib a!b.so", "x@y=z%21"})
    for (const std::string file :
         {"queue.cc", "a/queue.cc", "my file.cc", "C:queue.cc", "a:57", "a@b=c.cc", "w%21.cc",
          "a!b.cc", "a#2", "read.cc", "tab\there", "sch\xc3\xb6n.cc", "\xff\xfe"})
      for (const std::string api : {"", "read", "pthread_cond_wait"})
        for (const int nth : {1, 2, 17}) {
          SiteName site = call_site(file, 57, api);
          site.image = image;
          site.nth = nth;
          expect_round_trip(site);
        }
}

TEST(SiteNames, Hostile_function_names_are_read_back) {
  for (const std::string function :
       {"main", "Foo::operator()", "operator()", "Foo::operator!=", "Foo::operator=",
        "Foo::operator==", "operator+", "operator%", "std::pair<int, a::b<char>>::get<0ul>",
        "Queue::~Queue", "run(int)::{lambda(int)#1}::operator()", "<lambda(auto:1)>", "a@b",
        "(anonymous namespace)::go", "f[abi:cxx11]", "operator\"\" _ms", "x:12", "f:read"}) {
    for (const uint64_t offset : {0, 0x3c})
      for (const std::string api : {"", "usleep"}) {
        SiteName site = entry_site(function);
        site.offset = offset;
        site.api = api;
        expect_round_trip(site);
      }
    SiteName second = entry_site(function);
    second.nth = 2;
    expect_round_trip(second);
  }
}

TEST(SiteNames, Code_without_any_name_is_an_offset) {
  SiteName site;
  site.offset = 0x1234;
  site.api = "poll";
  EXPECT_EQ(to_string(site), "+0x1234:poll");
  expect_round_trip(site);
}

TEST(SiteNames, The_parentheses_of_an_entry_may_be_left_out) {
  EXPECT_EQ(parse_site("Queue::pop")->function, "Queue::pop");
}

TEST(SiteNames, A_misspelt_api_names_the_one_that_was_meant) {
  const auto read = parse_site("queue.cc:57:pthread_cond_wiat");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().next.find("pthread_cond_wait"), std::string::npos);
}

TEST(SiteNames, Nothing_is_no_site) {
  for (const char* text : {"", "()", "server!", "#2", "server!()", "queue.cc:57#0"})
    EXPECT_FALSE(parse_site(text)) << text;
}

}  // namespace
}  // namespace unflake
