#include "run/agent_session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>

#include "protocol/memory_layout.h"
#include "protocol/schedule_protocol.h"
#include "trace/raw_trace.h"

namespace unflake {
namespace {

using namespace protocol;

uint64_t monotonic_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// The same number is never given twice, not even by an unflake that got this one's pid.
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

class Texts {
 public:
  Texts() : text_(1, '\0') {}
  uint32_t add(const std::string& text) {
    const auto offset = static_cast<uint32_t>(text_.size());
    const char* end = text.c_str() + std::strlen(text.c_str());  // C strings on the other side
    text_.insert(text_.end(), text.c_str(), end + 1);
    return offset;
  }
  std::vector<uint32_t> add_all(const std::vector<std::string>& texts) {
    std::vector<uint32_t> offsets;
    for (const std::string& text : texts) offsets.push_back(add(text));
    return offsets;
  }
  const std::vector<char>& bytes() const { return text_; }

 private:
  std::vector<char> text_;
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

// The plan's tables as they will lie in the memory, and where everything is.
class PlanWriter {
 public:
  explicit PlanWriter(const LoweredPlan& plan) {
    layout_.add(TableKind::rule_states, sizeof(RuleState), plan.rules.size());
    layout_.begin_plan();
    add_images(plan);
    add(TableKind::plan_sites, plan.sites);
    add(TableKind::rules, plan.rules);
    add(TableKind::probes, plan.probes);
    add(TableKind::system_prefixes, texts_.add_all(plan.system_prefixes));
    std::vector<std::string> apis;
    for (const ApiFacts& api : api_facts) apis.emplace_back(api.name);
    add(TableKind::api_names, texts_.add_all(apis));
    add(TableKind::text, texts_.bytes());
    if (plan.schedule) add_schedule(*plan.schedule);
    layout_.end_plan();
    layout_.add(TableKind::probe_hits, sizeof(uint32_t), plan.probes.size());
    if (plan.schedule) add_control(plan.schedule->accesses.size());
    layout_.add(TableKind::quiescence, sizeof(Quiescence), plan.schedule ? 0 : 1);
  }

  const MemoryLayout& layout() const { return layout_; }
  const std::string& bytes() const { return bytes_; }

 private:
  template <class T>
  void add(TableKind kind, const std::vector<T>& elements) {
    const Table table = layout_.add(kind, sizeof(T), elements.size());
    bytes_.resize(table.offset - layout_.plan_begin());
    bytes_.append(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T));
  }

  void add_schedule(const LoweredSchedule& schedule) {
    add(TableKind::schedule, std::vector{schedule.plan});
    add(TableKind::decisions, schedule.decisions);
    add(TableKind::selected, schedule.selected);
    add(TableKind::remaining, schedule.remaining);
    add(TableKind::accesses, schedule.accesses);
  }

  void add_control(size_t accesses) {
    layout_.add(TableKind::control, sizeof(ControlReport), 1);
    layout_.add(TableKind::switch_points, sizeof(ScheduledPoint), max_switch_points);
    layout_.add(TableKind::enabled, sizeof(uint16_t), max_enabled);
    layout_.add(TableKind::deadlocked, sizeof(StuckThread), max_deadlocked);
    layout_.add(TableKind::access_states, sizeof(uint32_t), accesses);
    layout_.add(TableKind::turns, sizeof(uint64_t), turns_size);
  }

  void add_images(const LoweredPlan& plan) {
    std::vector<PlanImage> images;
    std::vector<SkipRange> skips;
    for (const LoweredImage& image : plan.images) {
      images.push_back(image_of(image, skips.size(), texts_));
      skips.insert(skips.end(), image.skips.begin(), image.skips.end());
    }
    add(TableKind::plan_images, images);
    add(TableKind::skips, skips);
  }

  MemoryLayout layout_;
  Texts texts_;
  std::string bytes_;
};

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
  const PlanWriter writer(plan);
  AgentMemory memory;
  memory.file_ = UniqueFd(::memfd_create("unflake-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.file_) return no_memory("cannot make shared memory");
  memory.header_ =
      writer.layout().header(next_generation(), {plan.flags, plan.groups, plan.hold_exit_ns});
  memory.made_ns_ = monotonic_ns();

  const std::string_view head(reinterpret_cast<const char*>(&memory.header_), sizeof(Header));
  const int file = memory.file_.get();
  if (::ftruncate(file, static_cast<off_t>(memory.size())) != 0 || !write_all(file, head, 0) ||
      !write_all(file, writer.bytes(), memory.header_.plan_begin))
    return no_memory("the shared memory cannot be written");
  // A test that shrinks it would kill every other process that looks at it.
  if (::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return no_memory("the shared memory cannot be sealed");
  return memory;
}

std::string AgentMemory::address() const {
  return fmt::format("{}:/proc/{}/fd/{}", header_.generation, ::getpid(), file_.get());
}

uint64_t AgentMemory::quiescence_offset() const {
  for (const Table& table : header_.tables)
    if (table.kind == static_cast<uint32_t>(TableKind::quiescence) && table.count == 1)
      return table.offset;
  return 0;
}

Result<RawTrace> AgentMemory::read() const {
  Copy copy(size());
  if (!copy) return no_memory("the shared memory cannot be copied");
  if (!copy.fill_from(file_.get())) return no_memory("the shared memory cannot be read");
  return read_raw_trace(copy.bytes(), {header_, made_ns_, monotonic_ns()});
}

}  // namespace unflake
