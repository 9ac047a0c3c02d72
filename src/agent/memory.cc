#include "agent/memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/raw.h"

namespace unflake::agent {

char* detail::base = nullptr;

namespace {

using namespace protocol;

bool fits(const Table& table, size_t element, uint64_t begin, uint64_t end) {
  return table.count == 0 || (table.offset % 8 == 0 && table.offset >= begin &&
                              uint64_t{table.offset} + uint64_t{table.count} * element <= end);
}

bool plan_fits(const Header& header) {
  const Plan& plan = header.plan;
  const uint64_t end = header.plan_end;
  return plan.rules.count <= max_rules && end >= tables_offset && end <= header.size &&
         fits(plan.images, sizeof(PlanImage), tables_offset, end) &&
         fits(plan.skips, sizeof(SkipRange), tables_offset, end) &&
         fits(plan.sites, sizeof(PlanSite), tables_offset, end) &&
         fits(plan.rules, sizeof(Rule), tables_offset, end) &&
         fits(plan.probes, sizeof(Probe), tables_offset, end) &&
         fits(plan.system_prefixes, sizeof(uint32_t), tables_offset, end) &&
         fits(plan.text, 1, tables_offset, end) &&
         fits(plan.probe_hits, sizeof(uint32_t), end, header.size) &&
         plan.probe_hits.count == plan.probes.count;
}

bool acceptable(const Header& header, uint64_t generation, uint64_t size) {
  return header.magic == magic && header.version == version && header.generation == generation &&
         header.size == size && header.report_offset == report_offset && plan_fits(header);
}

char* map(int file, uint64_t generation) {
  struct stat status {};
  if (failed(raw_syscall(__NR_fstat, file, as_word(&status))) ||
      static_cast<size_t>(status.st_size) < tables_offset)
    return nullptr;
  const long mapped =
      raw_syscall(__NR_mmap, 0, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (failed(mapped)) return nullptr;
  char* base = reinterpret_cast<char*>(mapped);
  const Header& header = *reinterpret_cast<const Header*>(base);
  if (!acceptable(header, generation, static_cast<uint64_t>(status.st_size))) {
    raw_syscall(__NR_munmap, mapped, status.st_size);
    return nullptr;
  }
  raw_syscall(__NR_mprotect, mapped, page, PROT_READ);
  raw_syscall(__NR_mprotect, mapped + static_cast<long>(tables_offset),
              static_cast<long>(header.plan_end / page * page - tables_offset), PROT_READ);
  return base;
}

}  // namespace

bool attach(const char* name) {
  if (name == nullptr) return false;
  char* path = nullptr;
  const uint64_t generation = strtoull(name, &path, 10);
  if (path == name || *path != ':') return false;
  const long file = raw_syscall(__NR_openat, AT_FDCWD, as_word(path + 1), O_RDWR | O_CLOEXEC);
  if (failed(file)) return false;
  detail::base = map(static_cast<int>(file), generation);
  raw_syscall(__NR_close, file);
  return detail::base != nullptr;
}

}  // namespace unflake::agent
