#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "run/launch.h"

namespace unflake {

// What a process finds around it that is other than usual: made for one run, gone after it. What
// needs privileges is tried with a user namespace of its own where this user has none.
class OtherWorld {
 public:
  explicit OtherWorld(const Launch& launch);
  ~OtherWorld();
  OtherWorld(const OtherWorld&) = delete;
  OtherWorld& operator=(const OtherWorld&) = delete;

  bool are_usual() const { return are_usual_; }
  // 0 or an errno.
  int make();
  // Of the process, after make().
  void change(Environment& environment) const;
  const Command& command() const { return command_; }
  // In the child that becomes the process, which shares this one's memory: system calls only.
  // 0 or an errno.
  int enter() const;

  // A process that runs copies of it, one after the other, until it is killed; -1 with errno.
  pid_t start_twin(Environment& environment) const;

 private:
  struct Layer {
    std::string folder, upper, work, options;
  };
  bool needs_folder() const;
  bool needs_mounts() const;
  void plan_layers();
  int limit_resources() const;
  int isolate() const;
  int mount_layers() const;

  const Launch& launch_;
  const Conditions& conditions_;
  const bool are_usual_;
  Command command_;
  std::string folder_;  // removed afterwards
  std::string temporary_;
  std::string size_option_;
  std::string id_map_, group_map_;
  std::vector<Layer> layers_;
};

// The time of a condition in ns since 1970; nothing: it is none.
std::optional<int64_t> clock_of(const std::string& text);

}  // namespace unflake
