// What a child process prints is read with one read, as if it came in one piece.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

namespace {

using std::chrono::milliseconds;

void print(int out, std::string_view text) {
  if (::write(out, text.data(), text.size()) < 0) ::_exit(EXIT_FAILURE);
}

// The child: a header first, and then what it has found.
void list_disks(int out) {
  print(out, "disks:");
  const std::string disks = std::string(" sda") + " sdb";
  print(out, disks);  // critical
}

class Listing {
 public:
  Listing() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) std::abort();
    child_ = ::fork();
    if (child_ == 0) {
      list_disks(ends[1]);
      ::_exit(EXIT_SUCCESS);
    }
    ::close(ends[1]);
    in_ = ends[0];
  }
  ~Listing() {
    ::close(in_);
    ::waitpid(child_, nullptr, 0);
  }

  std::string text() const {
    std::array<char, 256> buffer{};
    const ssize_t size = ::read(in_, buffer.data(), buffer.size());  // barrier
    return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }

 private:
  int in_ = -1;
  pid_t child_ = -1;
};

}  // namespace

int main() {
  const Listing listing;
  std::this_thread::sleep_for(milliseconds(50));
  const std::string text = listing.text();
  if (text == "disks: sda sdb") return EXIT_SUCCESS;
  std::fprintf(stderr, "listed \"%s\"\n", text.c_str());
  return EXIT_FAILURE;
}
