// Closing a client drops the requests that were not answered yet, and their promises with them.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace {

using std::chrono::milliseconds;

class Client {
 public:
  Client() : receiver_([this] { receive(); }) {}
  ~Client() { receiver_.join(); }

  std::future<std::string> ask(std::string question) {
    std::lock_guard lock(mutex_);
    pending_.push_back({std::move(question), {}});  // other critical
    return pending_.back().answer.get_future();
  }

  void close() {
    std::lock_guard lock(mutex_);
    pending_.clear();  // barrier
  }

 private:
  struct Request {
    std::string question;
    std::promise<std::string> answer;
  };

  void receive() {
    std::this_thread::sleep_for(milliseconds(3));  // the network
    std::lock_guard lock(mutex_);
    for (Request& request : pending_)                       // other barrier
      request.answer.set_value("re: " + request.question);  // critical
    pending_.clear();
  }

  std::mutex mutex_;
  std::deque<Request> pending_;
  std::thread receiver_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_question_is_answered) {
  Client client;
  std::future<std::string> answer = client.ask("time");
  std::this_thread::sleep_for(milliseconds(40));
  client.close();
  BOOST_TEST(answer.get() == "re: time");  // fails here
}
