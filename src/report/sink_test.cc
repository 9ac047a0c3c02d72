#include "report/layout.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <poll.h>
#include <pty.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <thread>

#include "util/files.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

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

std::string read_until_end_of(Pipe& pipe) {
  pipe.write_end.reset();
  return read_until_end(pipe.read_end.get());
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

// Readable, as a descriptor is when somebody has asked to stop.
struct Stop : Pipe {
  Stop() {
    if (::write(write_end.get(), "", 1) != 1) std::abort();
  }
  int fd() const { return read_end.get(); }
};

bool can_take_more(int fd) {
  pollfd ready{fd, POLLOUT, 0};
  return ::poll(&ready, 1, 0) > 0;
}

void fill(const Pipe& pipe) {
  const std::string page(PIPE_BUF, '.');
  while (can_take_more(pipe.write_end.get()))
    if (::write(pipe.write_end.get(), page.data(), page.size()) < 0) std::abort();
}

TEST(FdSink, Drops_what_nobody_reads_when_asked_to_stop) {
  Pipe pipe;
  fill(pipe);
  const Stop stop;
  FdSink sink(pipe.write_end.get(), stop.fd(), 0s);
  sink.write("dropped");
  std::array<char, 4096> page;
  ASSERT_EQ(::read(pipe.read_end.get(), page.data(), page.size()), 4096);
  sink.write("dropped too, because a hole would be worse than an end");
  EXPECT_EQ(read_until_end_of(pipe).find('d'), std::string::npos);
  EXPECT_EQ(sink.error(), 0);
}

TEST(FdSink, Never_waits_for_a_reader_that_takes_only_a_part) {
  Pipe pipe;
  const Stop stop;
  FdSink(pipe.write_end.get(), stop.fd(), 0s).write(std::string(1'000'000, 'x'));
  EXPECT_FALSE(can_take_more(pipe.write_end.get()));
}

TEST(FdSink, Never_waits_for_a_terminal_that_takes_only_a_part) {
  int master = -1, terminal = -1;
  ASSERT_EQ(::openpty(&master, &terminal, nullptr, nullptr, nullptr), 0);
  const UniqueFd close_master(master), close_terminal(terminal);
  const Stop stop;
  FdSink sink(terminal, stop.fd(), 0s);
  sink.write(std::string(1'000'000, 'x'));
  EXPECT_EQ(sink.error(), 0);
  EXPECT_EQ(::fcntl(terminal, F_GETFL) & O_NONBLOCK, 0);
}

TEST(FdSink, Still_writes_what_the_reader_has_room_for_when_asked_to_stop) {
  Pipe pipe;
  const Stop stop;
  FdSink(pipe.write_end.get(), stop.fd(), 0s).write("the summary");
  EXPECT_EQ(read_until_end_of(pipe), "the summary");
}

TEST(FdSink, Gives_a_slow_reader_time_when_asked_to_stop) {
  Pipe pipe;
  const Stop stop;
  const std::string sent(1'000'000, 'x');
  std::string received;
  std::thread reader([&] { received = read_until_end(pipe.read_end.get()); });
  FdSink(pipe.write_end.get(), stop.fd(), 24h).write(sent);
  pipe.write_end.reset();
  reader.join();
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
