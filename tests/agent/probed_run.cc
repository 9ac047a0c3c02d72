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
    Plan plan{};
    plan.images = append(images.data(), images.size() * sizeof(PlanImage), images.size());
    plan.probes = append(set.probes.data(), probes_ * sizeof(Probe), probes_);
    if (set.with_sites) {
      const PlanSite site{
          .offset = 0, .image = 0, .api = probe_api, .unused = 0, .first_rule = 0, .rule_count = 0};
      plan.sites = append(&site, sizeof site, 1);
    }
    plan.text = append(text.data(), text.size(), text.size());
    write(plan);
  }

  std::vector<uint32_t> hits() const {
    std::vector<uint32_t> hits(probes_);
    read(hits.data(), probes_ * sizeof(uint32_t), hits_offset_);
    return hits;
  }

  uint32_t degraded() const {
    std::vector<Process> processes(max_processes);
    read(processes.data(), sizeof(Report::processes), report_offset + offsetof(Report, processes));
    uint32_t bits = 0;
    for (const Process& process : processes) bits |= process.degraded.load();
    return bits;
  }

 private:
  Table append(const void* data, size_t size, size_t count) {
    const Table table{static_cast<uint32_t>(tables_offset + tables_.size()),
                      static_cast<uint32_t>(count)};
    tables_.append(static_cast<const char*>(data), size);
    tables_.resize((tables_.size() + 7) / 8 * 8);
    return table;
  }

  void write(Plan& plan) {
    const size_t end = tables_offset + tables_.size();
    hits_offset_ = (end + page - 1) / page * page;
    plan.probe_hits = {static_cast<uint32_t>(hits_offset_), static_cast<uint32_t>(probes_)};
    Header header{magic,         version,
                  generation,    hits_offset_ + probes_ * sizeof(uint32_t),
                  report_offset, static_cast<uint32_t>(end),
                  plan};
    std::ofstream file(path_, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.seekp(tables_offset);
    file.write(tables_.data(), static_cast<std::streamsize>(tables_.size()));
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
  std::string tables_;
  size_t probes_;
  size_t hits_offset_ = 0;
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
