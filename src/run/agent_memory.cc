#include "run/agent_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>

#include "trace/raw_trace.h"

namespace unflake {
namespace {

using namespace protocol;

size_t up_to(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

uint64_t monotonic_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// The same number is never given twice, also by an unflake that got this one's pid.
uint64_t next_generation() {
  static uint64_t last = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                               std::chrono::nanoseconds(1));
  return ++last;
}

Error no_memory(const char* what) {
  return internal_error(fmt::format("{}: {}", what, std::strerror(errno)),
                        "the memory that is shared with the test",
                        "free some memory, or raise the limits on open files and address space");
}

// Collects the plan's tables in the order in which they will lie in the memory.
class Tables {
 public:
  template <class T>
  Table add(const std::vector<T>& elements) {
    bytes_.resize(up_to(bytes_.size(), 8));
    const Table table{static_cast<uint32_t>(tables_offset + bytes_.size()),
                      static_cast<uint32_t>(elements.size())};
    const char* data = reinterpret_cast<const char*>(elements.data());
    bytes_.append(data, elements.size() * sizeof(T));
    return table;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Texts {
 public:
  Texts() : text_(1, '\0') {}
  uint32_t add(const std::string& text) {
    const auto offset = static_cast<uint32_t>(text_.size());
    const char* end = text.c_str() + std::strlen(text.c_str());  // C strings on the other side
    text_.insert(text_.end(), text.c_str(), end + 1);
    return offset;
  }
  const std::vector<char>& bytes() const { return text_; }

 private:
  std::vector<char> text_;
};

struct Layout {
  protocol::Plan plan{};
  Tables tables;
  size_t plan_end = 0;
  size_t size = 0;
};

PlanImage image_of(const LoweredImage& image, size_t first_skip, Texts& texts) {
  PlanImage entry{};
  entry.path = texts.add(image.path);
  entry.build_id_size =
      static_cast<uint32_t>(std::min(image.build_id.size(), sizeof entry.build_id));
  std::copy_n(image.build_id.begin(), entry.build_id_size, entry.build_id);
  entry.is_project = image.is_project;
  entry.first_skip = static_cast<uint32_t>(first_skip);
  entry.skip_count = static_cast<uint32_t>(image.skips.size());
  return entry;
}

// What the test must not write ends at a page's boundary, and the probes' hits follow.
Layout lay_out(const LoweredPlan& plan) {
  Layout layout;
  Texts texts;
  std::vector<PlanImage> images;
  std::vector<SkipRange> skips;
  std::vector<uint32_t> prefixes;
  for (const LoweredImage& image : plan.images) {
    images.push_back(image_of(image, skips.size(), texts));
    skips.insert(skips.end(), image.skips.begin(), image.skips.end());
  }
  for (const std::string& prefix : plan.system_prefixes) prefixes.push_back(texts.add(prefix));
  layout.plan.flags = plan.flags;
  layout.plan.groups = plan.groups;
  layout.plan.hold_exit_ns = plan.hold_exit_ns;
  layout.plan.images = layout.tables.add(images);
  layout.plan.skips = layout.tables.add(skips);
  layout.plan.sites = layout.tables.add(plan.sites);
  layout.plan.rules = layout.tables.add(plan.rules);
  layout.plan.probes = layout.tables.add(plan.probes);
  layout.plan.system_prefixes = layout.tables.add(prefixes);
  layout.plan.text = layout.tables.add(texts.bytes());
  layout.plan_end = up_to(tables_offset + layout.tables.bytes().size(), page);
  layout.plan.probe_hits = {static_cast<uint32_t>(layout.plan_end),
                            static_cast<uint32_t>(plan.probes.size())};
  layout.size = up_to(layout.plan_end + plan.probes.size() * sizeof(uint32_t), page);
  return layout;
}

bool write_all(int file, std::string_view bytes, size_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<size_t>(written);
  }
  return true;
}

// Memory of this process alone, zero where nothing was copied to.
class Copy {
 public:
  explicit Copy(size_t size) : size_(size) {
    data_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  ~Copy() {
    if (*this) ::munmap(data_, size_);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  explicit operator bool() const { return data_ != MAP_FAILED; }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

  // Only what was ever written: most of the memory of a small test never is.
  bool fill_from(int file) {
    off_t at = 0;
    for (;;) {
      const off_t start = ::lseek(file, at, SEEK_DATA);
      if (start < 0) return errno == ENXIO;
      if (static_cast<size_t>(start) >= size_) return true;
      const off_t hole = ::lseek(file, start, SEEK_HOLE);
      const size_t end = std::min(hole < 0 ? size_ : static_cast<size_t>(hole), size_);
      if (!read_range(file, static_cast<size_t>(start), end)) return false;
      at = static_cast<off_t>(end);
    }
  }

 private:
  bool read_range(int file, size_t start, size_t end) {
    while (start < end) {
      const ssize_t size =
          ::pread(file, static_cast<char*>(data_) + start, end - start, static_cast<off_t>(start));
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return false;
      start += static_cast<size_t>(size);
    }
    return true;
  }

  void* data_;
  size_t size_;
};

}  // namespace

Result<AgentMemory> AgentMemory::create(const LoweredPlan& plan) {
  if (plan.rules.size() > max_rules)
    return usage_error(fmt::format("a plan of {} interventions is too large", plan.rules.size()),
                       "", fmt::format("give at most {} of them", max_rules));
  const Layout layout = lay_out(plan);
  AgentMemory memory;
  memory.file_ = UniqueFd(::memfd_create("unflake-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.file_) return no_memory("no shared memory can be made");
  memory.size_ = layout.size;
  memory.generation_ = next_generation();
  memory.made_ns_ = monotonic_ns();
  memory.rules_ = plan.rules.size();
  memory.probes_ = plan.probes.size();
  memory.probe_hits_offset_ = layout.plan_end;

  const Header header{magic,
                      version,
                      memory.generation_,
                      layout.size,
                      static_cast<uint32_t>(report_offset),
                      static_cast<uint32_t>(layout.plan_end),
                      layout.plan};
  const std::string_view head(reinterpret_cast<const char*>(&header), sizeof header);
  const int file = memory.file_.get();
  if (::ftruncate(file, static_cast<off_t>(layout.size)) != 0 || !write_all(file, head, 0) ||
      !write_all(file, layout.tables.bytes(), tables_offset))
    return no_memory("the shared memory cannot be written");
  // A test that shrinks it would kill every other process that looks at it.
  if (::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return no_memory("the shared memory cannot be sealed");
  return memory;
}

std::string AgentMemory::address() const {
  return fmt::format("{}:/proc/{}/fd/{}", generation_, ::getpid(), file_.get());
}

Result<RawTrace> AgentMemory::read() const {
  Copy copy(size_);
  if (!copy) return no_memory("the shared memory cannot be copied");
  if (!copy.fill_from(file_.get())) return no_memory("the shared memory cannot be read");
  const MemoryShape shape{generation_,        rules_,   probes_,
                          probe_hits_offset_, made_ns_, monotonic_ns()};
  return read_raw_trace(copy.bytes(), shape);
}

}  // namespace unflake
