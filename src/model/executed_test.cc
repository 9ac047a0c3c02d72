#include "model/executed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unflake {
namespace {

using testing::ElementsAre;

TEST(ExecutedFunctions, Are_in_order_and_each_is_there_once) {
  Trace trace;
  trace.functions.resize(4);
  trace.functions[0].name = "g";
  trace.functions[1].name = "f";
  trace.functions[2].name = "g";  // another overload
  trace.functions[3].name = "";   // nobody knows what it is called
  for (TracedFunction& function : trace.functions) function.file = "a.cc";
  EXPECT_THAT(executed_functions(trace),
              ElementsAre(FunctionId{FunctionKind::project, "f", "a.cc"},
                          FunctionId{FunctionKind::project, "g", "a.cc"}));
}

TEST(ExecutedFunctions, Timing_APIs_count_as_called_when_they_were) {
  Trace trace;
  trace.sites.resize(3);
  trace.sites[0].name.api = "nanosleep";
  trace.sites[1].name.api = "pthread_create";
  trace.visits = {{0, 0, 2, {}}, {1, 0, 1, {}}, {0, 1, 0, {}}, {0, 2, 1, {}}, {0, no_index, 1, {}}};
  trace.functions.resize(1);
  trace.functions[0].name = "nanosleep";
  trace.functions[0].kind = FunctionKind::call;
  EXPECT_THAT(executed_functions(trace), ElementsAre(FunctionId{FunctionKind::call, "nanosleep"}));
}

TEST(NamesFunction, A_star_is_any_text_and_an_escaped_one_a_pointers) {
  EXPECT_TRUE(names_function("std::hash<*\\*>", "std::hash<Node*>"));
  EXPECT_FALSE(names_function("std::hash<*\\*>", "std::hash<Node>"));
  EXPECT_TRUE(names_function("std::hash<*", "std::hash<Node*>"));
  EXPECT_TRUE(names_function("rand", "rand"));
  EXPECT_FALSE(names_function("rand", "rand_r"));
}

TEST(FunctionKind, Comes_back_from_its_name) {
  for (const auto kind : {FunctionKind::project, FunctionKind::call, FunctionKind::library})
    EXPECT_EQ(function_kind_from(to_string(kind)), kind);
  EXPECT_EQ(function_kind_from("calls"), std::nullopt);
}

}  // namespace
}  // namespace unflake
