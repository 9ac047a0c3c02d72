#include "agent/code_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/raw.h"
#include "protocol/agent_protocol.h"

// Code is written through /proc/self/mem: that needs no lock between threads, and leaves the
// protection of pages alone.
namespace unflake::agent {
namespace {

// Out of the way of the numbers that a program's own files get.
constexpr long file_number = 1000;

// The file is known by its position, which nobody else would choose.
constexpr long mark = 0x5af3'1234'5678'9abc;

struct KeptFile {
  long number = -1;
  long process = 0;
} kept;

long open_memory() {
  return raw_syscall(__NR_openat, AT_FDCWD, as_word("/proc/self/mem"), O_RDWR | O_CLOEXEC);
}

bool write_to(long file, uint64_t address, uint8_t byte) {
  return raw_syscall(__NR_pwrite64, file, as_word(&byte), 1, static_cast<long>(address)) == 1;
}

// A program may close any file, and use its number for another. In a forked child the file is
// still that of the parent.
bool is_still_there(const KeptFile& file) {
  return file.number >= 0 && raw_syscall(__NR_getpid) == file.process &&
         raw_syscall(__NR_lseek, file.number, 0, SEEK_CUR) == mark;
}

bool write_by_new_file(uint64_t address, uint8_t byte) {
  const long file = open_memory();
  if (failed(file)) return false;
  const bool written = write_to(file, address, byte);
  raw_syscall(__NR_close, file);
  return written;
}

// The page stays writable: to take that back, threads would have to wait for each other.
bool write_by_protection(uint64_t address, uint8_t byte) {
  const uint64_t start = address & ~(protocol::page - 1);
  if (failed(raw_syscall(__NR_mprotect, static_cast<long>(start), protocol::page,
                         PROT_READ | PROT_WRITE | PROT_EXEC)))
    return false;
  __atomic_store_n(reinterpret_cast<uint8_t*>(address), byte, __ATOMIC_RELEASE);
  return true;
}

}  // namespace

void prepare_to_write_code() {
  const long file = open_memory();
  if (failed(file)) return;
  const long moved = raw_syscall(__NR_fcntl, file, F_DUPFD_CLOEXEC, file_number);
  raw_syscall(__NR_close, file);
  if (!failed(moved) && raw_syscall(__NR_lseek, moved, mark, SEEK_SET) == mark)
    kept = {moved, raw_syscall(__NR_getpid)};
}

bool write_code(uint64_t address, uint8_t byte) {
  return (is_still_there(kept) && write_to(kept.number, address, byte)) ||
         write_by_new_file(address, byte) || write_by_protection(address, byte);
}

}  // namespace unflake::agent
