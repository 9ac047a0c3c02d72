// A helper process needs its time before it leaves a sign of life.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "../support/scratch_folder.h"
#include "support/device.h"

namespace {

using std::chrono::milliseconds;

int help(const char* sign) {
  device_takes(milliseconds(60));
  std::ofstream(sign) << "ready\n";
  return EXIT_SUCCESS;
}

class Helper {
 public:
  explicit Helper(const std::string& sign) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::execl("/proc/self/exe", "slow_helper", "--help-out", sign.c_str(), nullptr);
    ::_exit(127);
  }
  ~Helper() { ::waitpid(pid_, nullptr, 0); }

 private:
  pid_t pid_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--help-out") return help(argv[2]);
  const ScratchFolder folder;
  const Helper helper(folder.file("sign"));
  std::this_thread::sleep_for(milliseconds(240));  // value
  if (std::filesystem::exists(folder.file("sign"))) return EXIT_SUCCESS;
  std::fputs("the helper gave no sign of life\n", stderr);
  return EXIT_FAILURE;
}
