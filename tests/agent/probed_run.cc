#include "agent/probed_run.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "protocol/memory_layout.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using namespace protocol;

constexpr uint64_t generation = 1;

// The shared memory, as unflake would write it.
class Memory {
 public:
  Memory(const std::string& path, const ProbeSet& set) : path_(path), probes_(set.probes.size()) {
    std::vector<PlanImage> images;
    std::string text;
    for (const auto& [name, build_id] : set.images) {
      PlanImage image{};
      image.path = static_cast<uint32_t>(text.size());
      image.build_id_size = static_cast<uint32_t>(std::min(build_id.size(), sizeof image.build_id));
      std::memcpy(image.build_id, build_id.data(), image.build_id_size);
      image.is_project = 1;
      images.push_back(image);
      text += name + '\0';
    }
    std::vector<PlanSite> sites;
    if (set.with_sites) {
      PlanSite site{};
      site.api = probe_api;
      sites.push_back(site);
    }
    layout_.add(TableKind::rule_states, sizeof(RuleState), 0);
    layout_.begin_plan();
    add(TableKind::plan_images, images);
    add(TableKind::skips, std::vector<SkipRange>());
    add(TableKind::plan_sites, sites);
    add(TableKind::rules, std::vector<Rule>());
    add(TableKind::probes, set.probes);
    add(TableKind::system_prefixes, std::vector<uint32_t>());
    add(TableKind::text, std::vector<char>(text.begin(), text.end()));
    layout_.end_plan();
    hits_ = layout_.add(TableKind::probe_hits, sizeof(uint32_t), probes_);
    write();
  }

  std::vector<uint32_t> hits() const {
    std::vector<uint32_t> hits(probes_);
    read(hits.data(), probes_ * sizeof(uint32_t), hits_.offset);
    return hits;
  }

  uint32_t degraded() const {
    const Header header = layout_.header(generation, {});
    std::vector<Process> processes(max_processes);
    for (const Table& table : header.tables)
      if (table.kind == static_cast<uint32_t>(TableKind::processes) && table.count > 0)
        read(processes.data(), table.count * table.element_size, table.offset);
    uint32_t bits = 0;
    for (const Process& process : processes) bits |= process.degraded.load();
    return bits;
  }

 private:
  template <class T>
  void add(TableKind kind, const std::vector<T>& elements) {
    const Table table = layout_.add(kind, sizeof(T), elements.size());
    plan_.resize(table.offset - layout_.plan_begin());
    plan_.append(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T));
  }

  void write() {
    const Header header = layout_.header(generation, {});
    std::ofstream file(path_, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.seekp(static_cast<std::streamoff>(layout_.plan_begin()));
    file.write(plan_.data(), static_cast<std::streamsize>(plan_.size()));
    file.close();
    if (!file || ::truncate(path_.c_str(), static_cast<off_t>(header.size)) != 0)
      throw std::runtime_error("cannot write " + path_);
  }

  void read(void* data, size_t size, size_t offset) const {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(static_cast<char*>(data), static_cast<std::streamsize>(size));
    if (!file) throw std::runtime_error("cannot read " + path_);
  }

  std::string path_;
  MemoryLayout layout_;
  std::string plan_;
  size_t probes_;
  Table hits_{};
};

[[noreturn]] void execute(const std::vector<std::string>& command,
                          const std::vector<std::string>& environment, const std::string& output) {
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  ::close(file);
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  for (const auto& setting : environment) ::putenv(const_cast<char*>(setting.c_str()));
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<uint64_t> places(const unflake::Image& image, ProbeSet::Where where) {
  if (where == ProbeSet::Where::lines)
    return line_addresses(image, [](const Function&) { return true; });
  std::vector<uint64_t> addresses;
  for (const Function& function : image.functions()) {
    const auto more = instruction_addresses(image, function);
    addresses.insert(addresses.end(), more.begin(), more.end());
  }
  return addresses;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

std::vector<Unprobeable> ProbeSet::add(const std::string& path, Where where, uint8_t flags) {
  const auto image = unflake::Image::open(path);
  if (!image) throw std::runtime_error(to_string(image.error()));
  const ProbeRequest request{static_cast<uint32_t>(images.size()), flags};
  ProbePlan plan = where == Where::entries ? plan_entries(**image, (*image)->functions(), request)
                                           : plan_probes(**image, places(**image, where), request);
  images.push_back({path, (*image)->build_id()});
  probes.insert(probes.end(), plan.probes.begin(), plan.probes.end());
  return std::move(plan.unprobeable);
}

void ProbeSet::give_sites() {
  with_sites = true;
  for (Probe& probe : probes) probe.site = 0;
}

uint64_t total(const std::vector<uint32_t>& hits) {
  return std::accumulate(hits.begin(), hits.end(), uint64_t{0});
}

ProbedRun run_probed(const std::string& agent, const ProbeSet& set,
                     const std::vector<std::string>& command,
                     const std::vector<std::string>& environment) {
  const TempFolder folder;
  const Memory memory(folder.file("memory"), set);
  std::vector<std::string> settings = environment;
  if (!agent.empty()) {
    settings.push_back("LD_PRELOAD=" + agent);
    settings.push_back(std::string(memory_variable) + "=" + std::to_string(generation) + ":" +
                       folder.file("memory"));
  }
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) execute(command, settings, folder.file("output"));
  ProbedRun run;
  rusage usage{};
  if (child < 0 || ::wait4(child, &run.status, 0, &usage) != child)
    throw std::runtime_error("cannot run " + command.front());
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  run.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  run.output = content(folder.file("output"));
  run.hits = memory.hits();
  run.degraded = memory.degraded();
  return run;
}

}  // namespace unflake
