#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "suite/adapter.h"
#include "support/test_launcher.h"

namespace unflake {

inline std::string fixture(const std::string& name) {
  return std::string(UNFLAKE_FIXTURES) + "/" + name;
}

inline Target fixture_target(const std::string& name, Framework framework) {
  return {name, framework, fixture(name), {}};
}

inline std::vector<Test> list_fixture(const std::string& name, Framework framework) {
  TestLauncher launcher;
  auto tests = adapter_for(framework).list(fixture_target(name, framework), {}, launcher);
  EXPECT_TRUE(tests) << to_string(tests.error());
  return tests ? std::move(*tests) : std::vector<Test>{};
}

inline const Test* find_test(const std::vector<Test>& tests, const std::string& name) {
  for (const Test& test : tests)
    if (test.id.name == name) return &test;
  return nullptr;
}

}  // namespace unflake
