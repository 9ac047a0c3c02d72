#include "faults/failing_vfs.h"

#include <sqlite3.h>

#include <new>

namespace unflake {
namespace {

// SQLite calls back into C functions without a context of ours, hence these.
Fault fault;
int64_t calls = 0;
bool failed = false;
sqlite3_vfs* real_vfs = nullptr;
sqlite3_vfs failing_vfs;

struct FailingFile {
  sqlite3_file base;
  sqlite3_file* real;  // follows this struct, in memory that SQLite gives
};

sqlite3_file* real(sqlite3_file* file) {
  return reinterpret_cast<FailingFile*>(file)->real;
}

bool fails_now(bool is_write = false) {
  if (fault.kind == Fault::Kind::disk_full && !is_write) return false;
  ++calls;
  const bool now = fault.at > 0 && (calls == fault.at || (fault.from_then_on && calls > fault.at));
  failed = failed || now;
  return now;
}

int close(sqlite3_file* file) {
  return real(file)->pMethods->xClose(real(file));
}

int read(sqlite3_file* file, void* buffer, int size, sqlite3_int64 offset) {
  return real(file)->pMethods->xRead(real(file), buffer, size, offset);
}

// Half of the bytes arrive, as when a disk fills up.
int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  const bool fails = fails_now(true);
  const int code = real(file)->pMethods->xWrite(real(file), bytes, fails ? size / 2 : size, offset);
  if (!fails) return code;
  return fault.kind == Fault::Kind::disk_full ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

int truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (fails_now()) return SQLITE_IOERR_TRUNCATE;
  return real(file)->pMethods->xTruncate(real(file), size);
}

int sync(sqlite3_file*, int) {
  return fails_now() ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  return real(file)->pMethods->xFileSize(real(file), size);
}

int lock(sqlite3_file* file, int level) {
  return real(file)->pMethods->xLock(real(file), level);
}

int unlock(sqlite3_file* file, int level) {
  return real(file)->pMethods->xUnlock(real(file), level);
}

int check_reserved_lock(sqlite3_file* file, int* reserved) {
  return real(file)->pMethods->xCheckReservedLock(real(file), reserved);
}

int file_control(sqlite3_file* file, int operation, void* argument) {
  return real(file)->pMethods->xFileControl(real(file), operation, argument);
}

int sector_size(sqlite3_file* file) {
  return real(file)->pMethods->xSectorSize(real(file));
}

int device_characteristics(sqlite3_file* file) {
  return real(file)->pMethods->xDeviceCharacteristics(real(file));
}

int shm_map(sqlite3_file* file, int region, int size, int extend, void volatile** memory) {
  if (fails_now()) return SQLITE_IOERR_SHMMAP;
  return real(file)->pMethods->xShmMap(real(file), region, size, extend, memory);
}

int shm_lock(sqlite3_file* file, int offset, int count, int flags) {
  if ((flags & SQLITE_SHM_LOCK) != 0 && fails_now()) return SQLITE_IOERR_SHMLOCK;
  return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}

void shm_barrier(sqlite3_file* file) {
  real(file)->pMethods->xShmBarrier(real(file));
}

int shm_unmap(sqlite3_file* file, int remove) {
  return real(file)->pMethods->xShmUnmap(real(file), remove);
}

sqlite3_io_methods methods = {2,
                              close,
                              read,
                              write,
                              truncate,
                              sync,
                              file_size,
                              lock,
                              unlock,
                              check_reserved_lock,
                              file_control,
                              sector_size,
                              device_characteristics,
                              shm_map,
                              shm_lock,
                              shm_barrier,
                              shm_unmap,
                              nullptr,
                              nullptr};

int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto* failing = new (file) FailingFile{};
  failing->real = reinterpret_cast<sqlite3_file*>(failing + 1);
  const int code = real_vfs->xOpen(real_vfs, name, failing->real, flags, out_flags);
  methods.iVersion = fault.no_shared_memory ? 1 : 2;
  if (failing->real->pMethods != nullptr) failing->base.pMethods = &methods;
  return code;
}

}  // namespace

FailingVfs::FailingVfs(const Fault& wanted) {
  fault = wanted;
  calls = 0;
  failed = false;
  real_vfs = sqlite3_vfs_find(nullptr);
  failing_vfs = *real_vfs;
  failing_vfs.zName = "failing";
  failing_vfs.szOsFile = real_vfs->szOsFile + static_cast<int>(sizeof(FailingFile));
  failing_vfs.xOpen = open;
  sqlite3_vfs_register(&failing_vfs, 1);
}

FailingVfs::~FailingVfs() {
  sqlite3_vfs_unregister(&failing_vfs);
  sqlite3_vfs_register(real_vfs, 1);
}

bool FailingVfs::has_failed() const {
  return failed;
}

void FailingVfs::fail_after(int64_t more_calls) {
  fault.at = calls + more_calls;
}

void FailingVfs::heal() {
  fault.at = 0;
}

}  // namespace unflake
