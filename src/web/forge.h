#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/lifecycle_event.h"
#include "util/result.h"

namespace unflake {

struct ForgeIssue {
  int64_t number = 0;
  std::string url, title, body;
  bool is_open = true;
  std::optional<TimePoint> closed;
};

struct ForgeLimits {
  size_t title = 0, body = 0;  // in characters
};

inline constexpr const char* issue_label = "flaky-test";

// Where a project's issues are: GitHub, GitLab, or a server of one's own that speaks like one.
class Forge {
 public:
  virtual ~Forge() = default;

  virtual ForgeLimits limits() const = 0;

  // All that have the label, open and closed.
  virtual Result<std::vector<ForgeIssue>> issues() = 0;
  // None: it is gone, or the address is of another place.
  virtual Result<std::optional<ForgeIssue>> find(const std::string& url) = 0;
  // Of the commit that closed the issue; empty: a person did, or it is not known.
  virtual Result<std::string> closing_commit(int64_t number) = 0;

  virtual Result<ForgeIssue> open(const std::string& title, const std::string& body) = 0;
  virtual Result<void> rewrite(int64_t number, const std::string& body) = 0;
  virtual Result<void> comment(int64_t number, const std::string& text) = 0;
  virtual Result<void> close(int64_t number) = 0;
  virtual Result<void> reopen(int64_t number) = 0;
};

struct ForgeOptions {
  std::string repository;              // owner/name, or group/subgroup/project
  std::string api;                     // empty: the public service
  std::string token;                   // empty: reads what everybody may read
  bool is_job_token = false;           // GitLab's own for one job
  std::function<void(Duration)> wait;  // sleeps; tests do not
};

Result<std::unique_ptr<Forge>> open_github(ForgeOptions options);
Result<std::unique_ptr<Forge>> open_gitlab(ForgeOptions options);

}  // namespace unflake
