// Tests that pass or fail by what is around them, each by one factor. The first argument says
// which; truths.toml says why. They fail with a message and exit status 1.

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <climits>
#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace {

namespace fs = std::filesystem;

int fail(const char* message) {
  std::fprintf(stderr, "assertion failed: %s\n", message);
  return 1;
}

std::string temporary_folder() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr ? named : "/tmp";
}

int sound() {
  return 2 + 2 == 4 ? 0 : fail("arithmetic holds");
}

// Clears up after itself and asks nobody.
int sound_file() {
  const std::string path = temporary_folder() + "/unflake-zoo-" + std::to_string(getpid());
  std::ofstream(path) << "text";
  std::string text;
  std::ifstream(path) >> text;
  fs::remove(path);
  return text == "text" ? 0 : fail("what was written is read");
}

// A bucket by address, as a hash of pointers chooses it.
int pointer_bucket() {
  const auto* object = new char[1 << 20];
  const uintptr_t page = reinterpret_cast<uintptr_t>(object) >> 12;
  return page % 3 != 0 ? 0 : fail("the object is in the first bucket");
}

// Libraries are thought to lie above the heap.
int heap_below_libraries() {
  const auto heap = reinterpret_cast<uintptr_t>(std::malloc(16));
  const auto library = reinterpret_cast<uintptr_t>(&std::fprintf);
  return heap < library ? 0 : fail("the heap is below the libraries");
}

int fixed_buffer() {
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::strlen(*entry) >= 2048 && std::strncmp(*entry, "LS_COLORS", 9) != 0)
      return fail("a variable has room in 2048 bytes");
  return 0;
}

int counts_letters() {
  std::setlocale(LC_ALL, "");
  const size_t letters = std::mbstowcs(nullptr, "gr\xc3\xbc\xc3\x9f", 0);
  return letters == 4 ? 0 : fail("the word has four letters");
}

int knows_the_epoch() {
  const time_t epoch = 0;
  return std::localtime(&epoch)->tm_hour == 0 ? 0 : fail("1970 began at midnight");
}

int whole_hours() {
  const time_t noon = 1'600'000'000 / 86400 * 86400 + 43200;
  return std::localtime(&noon)->tm_min == 0 ? 0 : fail("time zones differ by whole hours");
}

tm utc_now() {
  const time_t now = std::time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  return parts;
}

int next_birthday() {
  tm parts = utc_now();
  const int day = parts.tm_mday;
  ++parts.tm_year;
  timegm(&parts);
  return parts.tm_mday == day ? 0 : fail("it is the same day next year");
}

int next_month() {
  tm parts = utc_now();
  const int day = parts.tm_mday;
  if (day < 30) return 0;  // other months are not what this is about
  parts.tm_mon += parts.tm_mon == 0 ? 2 : 1;
  timegm(&parts);
  return parts.tm_mday == day || day != 31 ? 0 : fail("every month has this day");
}

int fits_in_32_bits() {
  const int64_t in_an_hour = std::time(nullptr) + 3600;
  return in_an_hour <= INT32_MAX ? 0 : fail("the time fits in 32 bits");
}

int still_today() {
  const time_t now = std::time(nullptr), soon = now + 5;
  return now / 86400 == soon / 86400 ? 0 : fail("the deadline is today");
}

int hour_later() {
  const time_t now = std::time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  ++parts.tm_hour;
  parts.tm_isdst = -1;
  return std::mktime(&parts) - now == 3600 ? 0 : fail("an hour has 3600 seconds");
}

int shared_report() {
  const std::string path = temporary_folder() + "/unflake-zoo-mode-" + std::to_string(getpid());
  const int file = open(path.c_str(), O_CREAT | O_WRONLY, 0666);
  struct stat status {};
  fstat(file, &status);
  unlink(path.c_str());
  return (status.st_mode & 044) != 0 ? 0 : fail("others can read the report");
}

int two_workers() {
  return std::thread::hardware_concurrency() >= 2 ? 0 : fail("two workers have a core each");
}

int large_file() {
  const std::string path = temporary_folder() + "/unflake-zoo-large-" + std::to_string(getpid());
  const std::vector<char> block(1 << 20, 'x');
  const int file = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  bool is_written = file >= 0;
  for (int i = 0; i < 24 && is_written; ++i)
    is_written = write(file, block.data(), block.size()) == static_cast<ssize_t>(block.size());
  unlink(path.c_str());
  return is_written ? 0 : fail("24 MiB can be written");
}

int many_files() {
  for (int i = 0; i < 300; ++i)
    if (open("/dev/null", O_RDONLY) < 0) return fail("300 files can be open");
  return 0;
}

int unquoted_path() {
  const std::string path = temporary_folder() + "/unflake-zoo-touch-" + std::to_string(getpid());
  (void)!std::system(("touch " + path + " 2>/dev/null").c_str());
  return fs::remove(path) ? 0 : fail("the file is there");
}

int two_temporaries() {
  const std::string name = "/unflake-zoo-both-" + std::to_string(getpid());
  std::ofstream(temporary_folder() + name) << "x";
  const bool is_there = fs::exists("/tmp" + name);
  fs::remove(temporary_folder() + name);
  return is_there ? 0 : fail("the file is in /tmp");
}

int data_beside() {
  return fs::directory_iterator(".") != fs::directory_iterator() ? 0 : fail("there is data here");
}

int well_known_socket() {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{AF_UNIX, "\0unflake-zoo-well-known"};
  if (bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return fail("the address is free");
  usleep(20'000);
  return 0;
}

int well_known_file() {
  const std::string path = temporary_folder() + "/unflake-zoo-well-known";
  std::ofstream(path, std::ios::trunc) << getpid() << std::flush;
  usleep(20'000);
  int read = 0;
  std::ifstream(path) >> read;
  return read == getpid() ? 0 : fail("the file is as it was written");
}

int lucky_draw() {
  std::random_device device;
  return device() % 3 != 0 ? 0 : fail("the draw is lucky");
}

int lucky_bytes() {
  unsigned char byte = 0;
  (void)!getrandom(&byte, 1, 0);
  return byte >= 100 ? 0 : fail("the byte is large");
}

// The order of a hash's keys, which Perl shuffles.
int first_key() {
  const int status =
      std::system("perl -e '%h = map { $_ => 1 } (\"a\" .. \"j\"); exit((keys %h)[0] lt \"d\")'");
  return status == 0 ? 0 : fail("the keys come in this order");
}

int has_network() {
  ifaddrs* all = nullptr;
  getifaddrs(&all);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next)
    if ((one->ifa_flags & IFF_LOOPBACK) == 0 && (one->ifa_flags & IFF_UP) != 0) return 0;
  return fail("there is a network");
}

int unset_member() {
  const auto* numbers = static_cast<volatile int*>(std::malloc(4096));
  return numbers[100] == 0 ? 0 : fail("the counter begins with 0");
}

int read_after_free() {
  auto* volatile numbers = static_cast<int*>(std::malloc(256));
  numbers[20] = 42;
  std::free(numbers);
  return numbers[20] == 42 ? 0 : fail("the value is still there");
}

const std::map<std::string, int (*)()> programs{
    {"sound", sound},
    {"sound_file", sound_file},
    {"pointer_bucket", pointer_bucket},
    {"heap_below_libraries", heap_below_libraries},
    {"fixed_buffer", fixed_buffer},
    {"counts_letters", counts_letters},
    {"knows_the_epoch", knows_the_epoch},
    {"whole_hours", whole_hours},
    {"next_birthday", next_birthday},
    {"next_month", next_month},
    {"fits_in_32_bits", fits_in_32_bits},
    {"still_today", still_today},
    {"hour_later", hour_later},
    {"shared_report", shared_report},
    {"two_workers", two_workers},
    {"large_file", large_file},
    {"many_files", many_files},
    {"unquoted_path", unquoted_path},
    {"two_temporaries", two_temporaries},
    {"data_beside", data_beside},
    {"well_known_socket", well_known_socket},
    {"well_known_file", well_known_file},
    {"lucky_draw", lucky_draw},
    {"lucky_bytes", lucky_bytes},
    {"first_key", first_key},
    {"has_network", has_network},
    {"unset_member", unset_member},
    {"read_after_free", read_after_free},
};

}  // namespace

int main(int count, char** words) {
  const auto found = programs.find(count > 1 ? words[1] : "");
  if (found == programs.end()) return fail("the program is known");
  return found->second();
}
