#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace unflake {

// A server on this machine that keeps issues and speaks as much of GitHub's and GitLab's REST APIs
// as unflake uses: /repos/OWNER/NAME/issues and /api/v4/projects/ID/issues, with their tokens,
// pages, limits and errors.
class ForgeServer {
 public:
  struct Comment {
    int64_t issue = 0;
    std::string text;
  };
  struct StoredIssue {
    int64_t number = 0;
    std::string title, body;
    bool is_open = true;
    bool is_pull_request = false;
    std::vector<std::string> labels;
    std::string closed_at, closing_commit;
  };

  static constexpr const char* repository = "acme/rocket";
  static constexpr const char* token = "a-good-token";

  ForgeServer();
  ForgeServer(const ForgeServer&) = delete;
  ForgeServer& operator=(const ForgeServer&) = delete;
  ~ForgeServer();

  std::string github_api() const;
  std::string gitlab_api() const;

  std::vector<StoredIssue> issues() const;
  std::vector<Comment> comments() const;
  int changes() const;  // requests that changed something

  // What people do by hand.
  int64_t add(const StoredIssue& issue);
  void change(int64_t number, const std::string& body);
  void close(int64_t number, const std::string& closed_at, const std::string& commit = "");

  // The next `times` requests of this method are answered so.
  void fail(const std::string& method, int status, std::map<std::string, std::string> headers = {},
            int times = 1);
  // A second job, which opens the same issue just before the next one that is opened.
  void race_with_next_open();
  void go_away();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace unflake
