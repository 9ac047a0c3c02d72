// An alert is mailed by a thread of its own, and the test waits for the mail only so long.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using std::chrono::milliseconds;

class MailServer {
 public:
  void receive(std::string mail) {
    {
      std::lock_guard lock(mutex_);
      mails_.push_back(std::move(mail));  // critical
    }
    arrived_.notify_all();
  }

  void wait_for_mails(std::size_t count) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, milliseconds(100), [&] { return mails_.size() >= count; });
  }

  std::vector<std::string> mails() const {
    std::lock_guard lock(mutex_);
    return mails_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::string> mails_;
};

// Keeps the last lines, and sends all of them when one is an error.
class MailingLogger {
 public:
  MailingLogger(MailServer& server, std::size_t lines) : server_(server), lines_(lines) {}
  ~MailingLogger() {
    for (std::thread& sender : senders_) sender.join();
  }

  void info(std::string line) {
    if (buffer_.size() == lines_) buffer_.erase(buffer_.begin());
    buffer_.push_back(std::move(line));
  }

  void error(std::string line) {
    info(std::move(line));
    senders_.emplace_back([this, lines = std::exchange(buffer_, {})] { send(lines); });
  }

 private:
  void send(const std::vector<std::string>& lines) {
    std::string mail = "Subject: alert\n";
    for (const std::string& line : lines) mail += line + "\n";
    server_.receive(mail);
  }

  MailServer& server_;
  std::size_t lines_;
  std::vector<std::string> buffer_;
  std::vector<std::thread> senders_;
};

TEST(MailingLogger, Sends_only_the_last_lines) {
  MailServer server;
  MailingLogger logger(server, 2);
  logger.info("starting");
  logger.info("connecting");
  logger.error("no route to host");
  server.wait_for_mails(1);

  const std::vector<std::string> mails = server.mails();  // barrier
  ASSERT_EQ(mails.size(), 1u);                            // fails here
  EXPECT_EQ(mails[0], "Subject: alert\nconnecting\nno route to host\n");
}

}  // namespace
