// Settings that a thread of their own reads again when somebody asks for it.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "support/sync.h"

namespace {

using Values = std::map<std::string, std::string>;

Values parse(const std::string& text) {
  Values values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) values[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return values;
}

class Settings {
 public:
  explicit Settings(const std::string& text) : values_(parse(text)) {}
  ~Settings() {
    stopping_ = true;
    wanted_.set();
  }

  void reload(std::string text) {
    reloaded_.reset();
    {
      const base::Lock lock(mutex_);
      text_ = std::move(text);
    }
    wanted_.set();
  }

  void wait_until_reloaded() { reloaded_.wait_for(base::Milliseconds(100)); }

  std::string value(const std::string& key) const {
    const base::Lock lock(mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? "" : found->second;
  }

 private:
  void reload_when_asked() {
    for (wanted_.take(); !stopping_; wanted_.take()) {
      Values values = parse(text());
      {
        const base::Lock lock(mutex_);
        values_ = std::move(values);  // critical
      }
      reloaded_.set();
    }
  }

  std::string text() const {
    const base::Lock lock(mutex_);
    return text_;
  }

  mutable base::Mutex mutex_;
  std::string text_;
  Values values_;
  std::atomic<bool> stopping_{false};
  base::Event wanted_, reloaded_;
  base::Thread reloader_{"reloader", [this] { reload_when_asked(); }};
};

TEST(Settings, Take_new_values_when_they_are_reloaded) {
  Settings settings("host=localhost\nport=8080\n");
  settings.reload("host=localhost\nport=8443\n");
  settings.wait_until_reloaded();
  EXPECT_EQ(settings.value("port"), "8443");  // barrier, fails here
}

TEST(Settings, Have_no_value_for_unknown_keys) {
  EXPECT_EQ(Settings("host=localhost\n").value("port"), "");
}

}  // namespace
