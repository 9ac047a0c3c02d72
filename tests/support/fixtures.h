#pragma once

#include <string>

#include "suite/adapter.h"

namespace unflake {

inline std::string fixture(const std::string& name) {
  return std::string(UNFLAKE_FIXTURES) + "/" + name;
}

inline Target fixture_target(const std::string& name, Framework framework) {
  return {name, framework, fixture(name), {}};
}

inline const Test* find_test(const std::vector<Test>& tests, const std::string& name) {
  for (const Test& test : tests)
    if (test.id.name == name) return &test;
  return nullptr;
}

}  // namespace unflake
