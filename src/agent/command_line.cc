#include "agent/command_line.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <stdlib.h>
#include <string.h>

#include "agent/raw.h"

namespace unflake::agent {
namespace {

prctl_mm_map layout{};
bool known = false;

// Fields of /proc/self/stat are counted from 1; those behind the name, which is in parentheses and
// may hold blanks, from 3.
struct Field {
  int number;
  __u64* value;
};

void read_fields(const char* text) {
  const Field wanted[] = {{26, &layout.start_code},  {27, &layout.end_code},
                          {28, &layout.start_stack}, {45, &layout.start_data},
                          {46, &layout.end_data},    {47, &layout.start_brk},
                          {48, &layout.arg_start},   {49, &layout.arg_end},
                          {50, &layout.env_start},   {51, &layout.env_end}};
  int number = 3;
  for (const Field& field : wanted) {
    for (; number < field.number && text != nullptr; ++number) text = strchr(text + 1, ' ');
    if (text == nullptr) return;
    *field.value = strtoull(text, nullptr, 10);
  }
  known = true;
}

}  // namespace

void read_memory_layout() {
  const long file =
      raw_syscall(__NR_openat, AT_FDCWD, as_word("/proc/self/stat"), O_RDONLY | O_CLOEXEC);
  if (failed(file)) return;
  char text[2048];
  const long size = raw_syscall(__NR_read, file, as_word(text), sizeof text - 1);
  raw_syscall(__NR_close, file);
  if (size <= 0) return;
  text[size] = '\0';
  const char* behind_name = strrchr(text, ')');
  if (behind_name != nullptr) read_fields(behind_name + 1);
}

void show_command_line(const char* begin, const char* end) {
  if (!known) return;
  prctl_mm_map map = layout;
  map.brk = static_cast<__u64>(raw_syscall(__NR_brk, 0));
  map.arg_start = reinterpret_cast<__u64>(begin);
  map.arg_end = reinterpret_cast<__u64>(end);
  map.exe_fd = static_cast<__u32>(-1);
  raw_syscall(__NR_prctl, PR_SET_MM, PR_SET_MM_MAP, as_word(&map), sizeof map);
}

}  // namespace unflake::agent
