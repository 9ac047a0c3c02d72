#include "ingest/rates_file.h"

#include <gmock/gmock.h>

namespace unflake {
namespace {

using testing::HasSubstr;

TEST(RatesFile, reads_columns_by_their_names) {
  const auto rates = parse_rates(
      "seconds,test,failures,passes,project\r\n0.5,\"a, \"\"b\"\"\",1,3,net\r\n\n-1e-5,c,0,0,\n",
      "rates.csv");
  ASSERT_TRUE(rates);
  ASSERT_EQ(rates->size(), 2u);
  EXPECT_EQ((*rates)[0].test, "a, \"b\"");
  EXPECT_EQ((*rates)[0].project, "net");
  EXPECT_EQ((*rates)[0].rate(), 0.25);
  EXPECT_EQ((*rates)[0].seconds, 0.5);
  EXPECT_EQ((*rates)[1].seconds, 0);
  EXPECT_EQ((*rates)[1].rate(), 0);
}

TEST(RatesFile, says_which_column_is_missing) {
  const auto rates = parse_rates("test,passes,failures\nx,1,2\n", "rates.csv");
  ASSERT_FALSE(rates);
  EXPECT_THAT(rates.error().what, HasSubstr("seconds"));
}

TEST(RatesFile, says_which_line_it_cannot_read) {
  for (const char* bad : {"x,-1,2,3", "x,1,2", ",1,2,3", "x,1,2,nan", "x,1,2,1e400", "x,1.5,2,3",
                          "x,9999999999999999999,2,3"}) {
    const auto rates =
        parse_rates(std::string("test,passes,failures,seconds\ny,1,1,1\n") + bad, "rates.csv");
    ASSERT_FALSE(rates) << bad;
    EXPECT_EQ(rates.error().where, "rates.csv:3");
  }
}

TEST(RatesFile, refuses_an_empty_one_and_one_that_is_not_there) {
  EXPECT_FALSE(parse_rates("", "rates.csv"));
  EXPECT_FALSE(parse_rates("test,passes,failures,seconds\n", "rates.csv"));
  EXPECT_FALSE(read_rates("/nonexistent/rates.csv"));
  EXPECT_FALSE(read_rates("/"));
}

}  // namespace
}  // namespace unflake
