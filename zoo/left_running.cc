// A program that joins its worker only if the worker is done already, and returns anyway.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

namespace {

using std::chrono::milliseconds;

class Uploader {
 public:
  void start(const std::string& name) {
    worker_ = std::thread([this, name] {
      std::this_thread::sleep_for(milliseconds(2));
      std::printf("%s uploaded\n", name.c_str());
      done_ = true;  // critical
    });
  }

  void stop() {
    if (done_) worker_.join();  // barrier
  }

 private:
  std::atomic<bool> done_{false};
  std::thread worker_;
};

Uploader uploader;

}  // namespace

int main() {
  uploader.start("photos.tar");
  std::this_thread::sleep_for(milliseconds(40));
  uploader.stop();
  return 0;
}
