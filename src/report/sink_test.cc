#include "report/sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <thread>

#include "util/unique_fd.h"

namespace unflake {
namespace {

struct Pipe {
  UniqueFd read_end, write_end;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
};

std::string read_until_end(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t size; (size = ::read(fd, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<size_t>(size));
  return text;
}

TEST(FdSink, Writes_everything_to_a_slow_reader_of_a_pipe_that_does_not_block) {
  Pipe pipe;
  ::fcntl(pipe.write_end.get(), F_SETFL, O_NONBLOCK);
  const std::string sent(1'000'000, 'x');
  std::string received;
  std::thread reader([&] { received = read_until_end(pipe.read_end.get()); });
  FdSink sink(pipe.write_end.get());
  sink.write(sent);
  pipe.write_end.reset();
  reader.join();
  EXPECT_EQ(sink.error(), 0);
  EXPECT_TRUE(received == sent);
}

TEST(FdSink, Survives_a_reader_that_went_away) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.read_end.reset();
  FdSink sink(pipe.write_end.get());
  sink.write("lost");
  sink.write("lost too");
  EXPECT_EQ(sink.error(), EPIPE);
}

}  // namespace
}  // namespace unflake
