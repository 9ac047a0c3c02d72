#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/test.h"

namespace unflake {

struct JunitName {
  std::string classname;
  std::string name;
};

// `target.Suite` and `Test`, where CI systems fold by classname. `classname.name` is unique, and
// depends on the set of tests only, not on their order: CI systems follow a test by this name.
std::map<TestId, JunitName> junit_names(const std::vector<std::shared_ptr<const Test>>& tests);

inline constexpr size_t longest_name = 1000;

// XML 1.0 has characters that no escape can express; they become `?`.
std::string xml_text(std::string_view text);

}  // namespace unflake
