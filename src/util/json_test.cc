#include "util/json.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

TEST(Json, What_is_none_is_discarded_or_thrown) {
  EXPECT_EQ(parse_json(R"({"runs": 3})")["runs"], 3);
  EXPECT_TRUE(parse_json("{\"runs\": ").is_discarded());
  EXPECT_TRUE(parse_json("").is_discarded());
  EXPECT_THROW(parse_json_or_throw("[1,"), nlohmann::json::exception);
}

TEST(Json, Is_written_in_one_line_or_indented) {
  const nlohmann::ordered_json json{{"b", 1}, {"a", 2}};
  EXPECT_EQ(json_text(json), R"({"b":1,"a":2})");
  EXPECT_EQ(json_text(json, 1), "{\n \"b\": 1,\n \"a\": 2\n}");
}

TEST(Json, Bytes_that_are_no_UTF_8_do_not_stop_it) {
  EXPECT_EQ(json_text(nlohmann::json("a\xff")), "\"a\xef\xbf\xbd\"");
  EXPECT_TRUE(is_utf8("\xc3\xa4"));
  EXPECT_FALSE(is_utf8("a\xff"));
}

}  // namespace
}  // namespace unflake
