#include "agent/server/fork_server.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/prctl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "agent/hooks/hooks.h"
#include "agent/raw.h"

namespace unflake::agent {
namespace {

struct DirectoryEntry {
  uint64_t inode;
  int64_t offset;
  uint16_t size;
  uint8_t type;
  char name[];
};

class File {
 public:
  explicit File(const char* path, int flags = O_RDONLY)
      : fd_(raw_syscall(__NR_openat, AT_FDCWD, as_word(path), flags | O_CLOEXEC)) {}
  ~File() {
    if (!failed(fd_)) raw_syscall(__NR_close, fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int fd() const { return static_cast<int>(fd_); }
  explicit operator bool() const { return !failed(fd_); }

 private:
  const long fd_;
};

// Calls `act` with each line of a file in /proc until it returns true; whether it did. The end of a
// longer line is left out.
template <class Act>
bool any_line(const File& file, Act act) {
  char line[512];
  size_t length = 0;
  char bytes[4096];
  for (long size; (size = raw_syscall(__NR_read, file.fd(), as_word(bytes), sizeof bytes)) > 0;) {
    for (long i = 0; i < size; ++i) {
      if (bytes[i] != '\n') {
        if (length < sizeof line - 1) line[length++] = bytes[i];
        continue;
      }
      line[length] = '\0';
      length = 0;
      if (act(line)) return true;
    }
  }
  return false;
}

bool starts_with(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

class Checks {
 public:
  Checks(int socket, char* refusal) : socket_(socket), refusal_(refusal) {}

  bool refuse_for_sanitizer() {
    return dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr &&
           refuse("it is built with ThreadSanitizer, which keeps a thread of its own");
  }

  bool refuse_for_status() {
    const File status("/proc/self/status");
    if (!status) return refuse("/proc cannot be read");
    return any_line(status, [&](const char* line) {
      if (starts_with(line, "Threads:") && atoi(line + 8) != 1)
        return refuse("a static constructor starts a thread");
      return starts_with(line, "VmLck:") && atoi(line + 6) != 0 &&
             refuse("a static constructor locks memory");
    });
  }

  bool refuse_for_children() {
    siginfo_t info;
    const long found =
        raw_syscall(__NR_waitid, P_ALL, 0, as_word(&info), WEXITED | WNOHANG | WNOWAIT | __WALL, 0);
    return found != -ECHILD && refuse("a static constructor starts a process");
  }

  bool refuse_for_files() {
    const File folder("/proc/self/fd", O_RDONLY | O_DIRECTORY);
    if (!folder) return refuse("/proc cannot be read");
    alignas(8) char entries[2048];
    for (long size; (size = raw_syscall(__NR_getdents64, folder.fd(), as_word(entries),
                                        sizeof entries)) > 0;) {
      for (long at = 0; at < size;) {
        const auto& entry = *reinterpret_cast<const DirectoryEntry*>(entries + at);
        at += entry.size;
        const int fd = atoi(entry.name);
        if (fd > 2 && fd != socket_ && fd != folder.fd()) return refuse_for_file(entry.name);
      }
    }
    return false;
  }

  bool refuse_for_mappings() {
    const File maps("/proc/self/maps");
    if (!maps) return refuse("/proc cannot be read");
    return any_line(maps, [&](const char* line) {
      const char* rights = strchr(line, ' ');
      return rights != nullptr && strlen(rights) > 4 && rights[2] == 'w' && rights[4] == 's' &&
             refuse("a static constructor shares writable memory");
    });
  }

  bool refuse_for_timers() {
    constexpr int old_timers[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
    for (const int timer : old_timers) {
      itimerval value{};
      raw_syscall(__NR_getitimer, timer, as_word(&value));
      if (value.it_value.tv_sec != 0 || value.it_value.tv_usec != 0)
        return refuse("a static constructor starts a timer");
    }
    const File timers("/proc/self/timers");
    return timers && any_line(timers, [&](const char*) {
             return refuse("a static constructor starts a timer");
           });
  }

  bool refuse_for_libc() {
    int* address = nullptr;
    if (failed(raw_syscall(__NR_prctl, PR_GET_TID_ADDRESS, as_word(&address))) ||
        address == nullptr)
      return refuse("this kernel does not tell where libc keeps a thread's number");
    return too_many_fork_handlers() && refuse("it has registered too many handlers for forks");
  }

  bool refuse_for_random_numbers() {
    return random_was_drawn() &&
           refuse("a static constructor draws random numbers, which all runs would share");
  }

 private:
  bool refuse(const char* reason) {
    snprintf(refusal_, refusal_size, "%s", reason);
    return true;
  }

  bool refuse_for_file(const char* number) {
    char path[64], file[160] = "a descriptor";
    snprintf(path, sizeof path, "/proc/self/fd/%s", number);
    const long length = raw_syscall(__NR_readlink, as_word(path), as_word(file),
                                    static_cast<long>(sizeof file - 1));
    if (!failed(length)) file[length] = '\0';
    snprintf(refusal_, refusal_size, "a static constructor leaves %s open", file);
    return true;
  }

  const int socket_;
  char* const refusal_;
};

}  // namespace

bool find_refusal(int socket, char (&refusal)[refusal_size]) {
  Checks checks(socket, refusal);
  return checks.refuse_for_sanitizer() || checks.refuse_for_status() ||
         checks.refuse_for_children() || checks.refuse_for_files() ||
         checks.refuse_for_mappings() || checks.refuse_for_timers() || checks.refuse_for_libc() ||
         checks.refuse_for_random_numbers();
}

namespace {

struct Symbols {
  const ElfW(Sym) * table;
  const char* names;
  uint32_t imported;  // no import has a higher number
};

// The loader has added the load address already, unless it must not write there.
template <class T>
const T* at(const link_map& map, uint64_t address) {
  return reinterpret_cast<const T*>(address < map.l_addr ? address + map.l_addr : address);
}

// Where a library has only the old hash table, all of its symbols may be imports.
Symbols symbols_of(const link_map& map) {
  Symbols symbols{};
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    const uint64_t address = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB)
      symbols.table = at<ElfW(Sym)>(map, address);
    else if (entry->d_tag == DT_STRTAB)
      symbols.names = at<char>(map, address);
    else if (entry->d_tag == DT_HASH && symbols.imported == 0)
      symbols.imported = at<uint32_t>(map, address)[1];
    else if (entry->d_tag == DT_GNU_HASH)
      symbols.imported = at<uint32_t>(map, address)[1];
  }
  return symbols;
}

bool imports_dlopen(const Symbols& symbols) {
  for (uint32_t i = 1; i < symbols.imported; ++i) {
    const ElfW(Sym)& symbol = symbols.table[i];
    const char* name = symbols.names + symbol.st_name;
    if (symbol.st_shndx == SHN_UNDEF &&
        (strcmp(name, "dlopen") == 0 || strcmp(name, "dlmopen") == 0))
      return true;
  }
  return false;
}

}  // namespace

bool opens_libraries() {
  for (const link_map* map = _r_debug.r_map; map != nullptr; map = map->l_next) {
    if (map->l_ld == _DYNAMIC) continue;  // the agent itself
    const Symbols symbols = symbols_of(*map);
    if (symbols.table != nullptr && symbols.names != nullptr && imports_dlopen(symbols))
      return true;
  }
  return false;
}

namespace {

prctl_mm_map layout{};
bool known = false;

// Fields of /proc/self/stat are counted from 1; those after the name, which is in parentheses and
// may contain spaces, from 3.
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
