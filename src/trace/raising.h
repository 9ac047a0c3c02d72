#pragma once

#include <map>
#include <set>

#include "model/trace.h"
#include "trace/code_map.h"
#include "trace/lowering.h"
#include "trace/names.h"

namespace unflake {

// What is remembered from run to run of one test.
struct TestMemory {
  SiteBook sites;
  ThreadBook threads;
  std::map<std::string, TracedImage> images;  // by path: project code, and test frameworks
  std::set<std::string> named_images;         // whose source files have their short names
};

// Gives everything in a report its name. `plan` is the one that the run was made with.
Trace raise(RawTrace report, const LoweredPlan& plan, CodeMap& code, TestMemory& memory);

}  // namespace unflake
