#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace unflake {

// The shortest names under which source files can be told apart: "queue.cc", or "server/queue.cc"
// where there are two. A name that was given stays, whatever files are met later.
class FileNames {
 public:
  void add(const std::vector<std::string>& paths);
  const std::string& short_name(const std::string& path);

 private:
  bool is_taken(const std::string& suffix, const std::string& by_other_than) const;

  std::map<std::string, std::set<std::string>> by_base_;  // paths
  std::map<std::string, std::string> given_;              // path -> short name
  std::set<std::string> taken_;
};

}  // namespace unflake
