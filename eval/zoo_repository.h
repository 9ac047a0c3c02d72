#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/temp_folder.h"
#include "truth.h"
#include "util/time.h"

namespace unflake::eval {

// The shell command that builds a program of the zoo in a folder that has it, into `out`.
// `main_object` is what mains/ was compiled to for its framework; empty: it is compiled, too.
std::string compile_line(const Truth& truth, const std::string& out,
                         const std::string& main_object = "");

// What zoo/mains is compiled to, once for all programs of a framework: it takes longer than any of
// them.
class ZooMains {
 public:
  explicit ZooMains(std::string zoo) : zoo_(std::move(zoo)) {}

  // Empty: programs of this framework need none.
  Result<std::string> object_for(const Truth& truth);

 private:
  const std::string zoo_;
  TempFolder folder_;
  std::map<std::string, std::string> objects_;  // by framework
};

// A repository with one program of the zoo, as a user would have it: sources that are committed, a
// build that is not, and compile_commands.json.
class ZooRepository {
 public:
  // Copies and builds it.
  Result<void> make(const std::string& zoo, const Truth& truth,
                    const std::string& main_object = "");
  Result<void> shell(const std::string& line) const;

  // Records the failure that the truth names. An error: it was not found.
  Result<void> record(const std::string& unflake, const std::string& budget);

  const std::string& path() const { return folder_.path(); }
  std::string executable() const { return folder_.file("build/" + truth_.program); }
  const std::string& repro() const { return repro_; }
  double seconds_to_record() const { return seconds_to_record_; }
  // Its test behind these words of a command, and what else the command takes.
  std::vector<std::string> words(std::vector<std::string> first,
                                 const std::vector<std::string>& options) const;

 private:
  TempFolder folder_;
  Truth truth_;
  std::string repro_;
  double seconds_to_record_ = 0;
};

}  // namespace unflake::eval
