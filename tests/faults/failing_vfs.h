#pragma once

#include <cstdint>

struct sqlite3_vfs;

namespace unflake {

// What goes wrong, and when. A full disk fails writes; an I/O error may also hit synchronisation,
// truncation and shared memory with its locks.
struct Fault {
  enum class Kind { disk_full, io_error };

  int64_t at = 0;  // which of these calls fails, counted from 1; 0: none
  bool from_then_on = false;
  Kind kind = Kind::disk_full;
  bool no_shared_memory = false;  // as on some network file systems
};

// While it lives, SQLite's files are opened through it by default. It never waits for the disk: a
// process may die here, the machine may not.
class FailingVfs {
 public:
  explicit FailingVfs(const Fault& fault);
  FailingVfs(const FailingVfs&) = delete;
  FailingVfs& operator=(const FailingVfs&) = delete;
  ~FailingVfs();

  bool has_failed() const;
  void fail_after(int64_t calls);  // counted from now
  void heal();
};

}  // namespace unflake
