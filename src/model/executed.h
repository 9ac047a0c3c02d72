#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/test.h"
#include "model/trace.h"

namespace unflake {

// "project", "call", "library".
std::string_view to_string(FunctionKind kind);
std::optional<FunctionKind> function_kind_from(std::string_view name);

// A function as it is known in every build: by its name and the file that it is written in, never
// by an address or a line.
struct FunctionId {
  FunctionKind kind = FunctionKind::project;
  std::string name;
  std::string file{};  // as sites name it; only of project code, and not always known

  auto operator<=>(const FunctionId&) const = default;
};

// Whether a name matches a glob in which `\*` is the star of a pointer.
bool names_function(std::string_view glob, std::string_view name);

// What a run executed, each function once and in order: those that were traced, and every timing
// API that project code called, by itself or through other libraries.
std::vector<FunctionId> executed_functions(const Trace& trace);

// What many tests executed: names are there once, tests have numbers.
struct FunctionTraces {
  struct OfTest {
    TestId test;
    std::chrono::system_clock::time_point at{};
    std::string commit;
    std::vector<uint32_t> functions;  // in `functions` below, ascending
  };
  std::vector<FunctionId> functions;
  std::vector<OfTest> tests;
};

// A root cause that a test is exposed to, by functions that it executed.
struct Exposure {
  std::string cause;
  std::vector<std::string> functions;  // in order

  bool operator==(const Exposure&) const = default;
};

}  // namespace unflake
