// Threads that are joined before anyone looks. The sleep in it matters to nobody.
#include <cassert>
#include <cctype>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace {

using std::chrono::milliseconds;

// Every thread has a line of its own to write to.
std::vector<std::string> in_capitals(std::vector<std::string> lines) {
  std::vector<std::thread> threads;
  for (std::string& line : lines) {
    threads.emplace_back([&line] {
      for (char& letter : line) letter = static_cast<char>(std::toupper(letter));
    });
  }
  std::this_thread::sleep_for(milliseconds(5));  // lets the threads have the processor
  for (std::thread& thread : threads) thread.join();
  return lines;
}

}  // namespace

int main() {
  const auto lines = in_capitals({"one", "two", "three"});
  assert((lines == std::vector<std::string>{"ONE", "TWO", "THREE"}));
}
