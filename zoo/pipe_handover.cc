// A child process reads until there is no more to come, and its parent waits for it.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace {

// The child: counts lines to the end, and tells how many by its exit status.
int count_lines(int in) {
  int lines = 0;
  std::array<char, 4> buffer{};
  for (ssize_t size = 0; (size = ::read(in, buffer.data(), buffer.size())) > 0;)
    for (ssize_t i = 0; i < size; ++i) lines += buffer[i] == '\n';
  return lines;
}

void write_all(int out, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(out, text.data(), text.size());
    if (written < 0) std::abort();
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

int lines_counted_by_a_child(std::initializer_list<std::string_view> pieces) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    ::_exit(count_lines(ends[0]));
  }
  ::close(ends[0]);
  for (const std::string_view piece : pieces) write_all(ends[1], piece);
  ::close(ends[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

int main() {
  const int lines = lines_counted_by_a_child({"first\nsec", "ond\n", "third\n"});
  if (lines == 3) return EXIT_SUCCESS;
  std::fprintf(stderr, "the child counted %d lines\n", lines);
  return EXIT_FAILURE;
}
