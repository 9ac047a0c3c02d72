#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/site.h"
#include "trace/code_map.h"
#include "trace/file_names.h"
#include "trace/lowered_plan.h"

namespace unflake {

struct CodeAddress {
  std::string image_path;
  uint64_t address = 0;
  auto operator<=>(const CodeAddress&) const = default;
};

// A call that some run has shown: where the agent finds it again.
struct LearnedSite {
  SiteName name;
  uint16_t api = 0;
  std::vector<CodeAddress> addresses;  // several when the code was inlined or instantiated
};

// Names the calls of one test, the same way in every run.
class SiteBook {
 public:
  // Image names are left out for this one.
  void set_own_executable(const std::string& path) { own_executable_ = path; }
  const std::string& own_executable() const { return own_executable_; }
  FileNames& files() { return files_; }

  // The name of the place itself, without an api: what threads are named by, too.
  SiteName name_place(const RawImage& image, const NamedCode& place, uint64_t address);

  // Calls on one line of one function are numbered in the order in which they come here; copies of
  // the function (inlined, instantiated) are all the same site.
  const LearnedSite& learn_call(const RawImage& image, const NamedCode& place,
                                uint64_t return_address, uint16_t api);

  const LearnedSite* find(const SiteName& name) const;
  std::vector<std::string> names() const;

 private:
  std::string own_executable_;
  FileNames files_;
  std::map<std::string, LearnedSite> sites_;  // by name
  // The addresses of one copy of a line, by the line's name and what makes the copy.
  std::map<std::pair<std::string, std::string>, std::vector<CodeAddress>> copies_;
};

}  // namespace unflake
