// What probes cost: a hit, beside the same done with ptrace; a one-shot trace of all functions of a
// large program; their installation; their memory. Exits with 1 when a bound is missed.

#include <fmt/format.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "agent/probed_run.h"
#include "support/temp_folder.h"

extern "C" __attribute__((noinline, noclone)) long benchmarked(long value) {
  asm volatile("nop");
  return value + 1;
}

namespace unflake {
namespace {

using Clock = std::chrono::steady_clock;
using Where = ProbeSet::Where;

constexpr long rounds = 100'000;
constexpr int repetitions = 5;
const std::string agent = UNFLAKE_AGENT_LIBRARY;

bool all_bounds_met = true;

void report(const std::string& what, double value, const std::string& unit, double bound) {
  const bool met = value <= bound;
  all_bounds_met = all_bounds_met && met;
  fmt::print("{:<62} {:>8.2f} {:<5} <= {:>6.2f}  {}\n", what, value, unit, bound,
             met ? "ok" : "MISSED");
}

void note(const std::string& what, double value, const std::string& unit) {
  fmt::print("{:<62} {:>8.2f} {}\n", what, value, unit);
}

double median(std::vector<double> all) {
  std::nth_element(all.begin(), all.begin() + repetitions / 2, all.end());
  return all[repetitions / 2];
}

std::string own_path() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

// A switch to a tracer on another processor is dearer. CPU time is counted all the same, of both
// processes: others may be using the processor too.
void stay_on_one_processor() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(::sched_getcpu()), &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

double cpu_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      sum += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  }
  return sum;
}

// As a child: prints how many seconds its calls took.
int loop() {
  const double start = cpu_seconds();
  long value = 0;
  for (long i = 0; i < rounds; ++i) value = benchmarked(value);
  fmt::print("{}\n", cpu_seconds() - start);
  return value == rounds ? 0 : 1;
}

ProbeSet probe_at_benchmarked(bool with_site) {
  const auto image = Image::open(own_path());
  if (!image) throw std::runtime_error(to_string(image.error()));
  ProbeSet set;
  for (const Function& function : (*image)->functions()) {
    if (function.mangled != "benchmarked") continue;
    set.images.push_back({own_path(), (*image)->build_id()});
    set.probes = plan_entries(**image, {&function, 1}, {}).probes;
  }
  if (with_site) set.give_sites();
  return set;
}

double microseconds_of_a_hit(bool with_site) {
  const ProbeSet set = probe_at_benchmarked(with_site);
  const auto run = run_probed(agent, set, {own_path(), "--loop"});
  if (total(run.hits) != rounds) throw std::runtime_error("hits are missing: " + run.output);
  return std::stod(run.output) * 1e6 / rounds;
}

void put_breakpoint(pid_t child, long address) {
  const long word = ::ptrace(PTRACE_PEEKTEXT, child, address, 0);
  ::ptrace(PTRACE_POKETEXT, child, address, (word & ~0xffL) | 0xcc);
}

// The cheapest debugger: one breakpoint, on a nop, so that going on means only to move rip.
long count_stops(pid_t child) {
  long stops = 0;
  int status = 0;
  user_regs_struct registers{};
  while (::waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    ++stops;
    ::ptrace(PTRACE_GETREGS, child, 0, &registers);
    registers.rip = reinterpret_cast<unsigned long>(&benchmarked) + 1;
    ::ptrace(PTRACE_SETREGS, child, 0, &registers);
    ::ptrace(PTRACE_CONT, child, 0, 0);
  }
  return stops;
}

double microseconds_of_a_ptrace_stop() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::ptrace(PTRACE_TRACEME, 0, 0, 0);
    ::raise(SIGSTOP);
    for (long i = 0, value = 0; i < rounds; ++i) value = benchmarked(value);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  put_breakpoint(child, reinterpret_cast<long>(&benchmarked));
  const double start = cpu_seconds();
  ::ptrace(PTRACE_CONT, child, 0, 0);
  if (count_stops(child) != rounds) throw std::runtime_error("stops are missing");
  return (cpu_seconds() - start) * 1e6 / rounds;
}

void measure_hits() {
  stay_on_one_processor();
  std::vector<double> hits, sites, stops;
  for (int i = 0; i < repetitions; ++i) {
    hits.push_back(microseconds_of_a_hit(false));
    sites.push_back(microseconds_of_a_hit(true));
    stops.push_back(microseconds_of_a_ptrace_stop());
  }
  const double hit = median(hits), site = median(sites), stop = median(stops);
  report("a hit that is counted", hit, "us", 4.5);
  report("a hit at a site of the plan", site, "us", 4.5);
  note("a ptrace breakpoint, emulated", stop, "us");
  report("a hit / a ptrace breakpoint", site / stop, "", 0.25);
}

// As a child: its size of address space in bytes.
int show_size() {
  std::ifstream status("/proc/self/statm");
  long pages = 0;
  status >> pages;
  fmt::print("{}\n", pages * ::sysconf(_SC_PAGESIZE));
  return 0;
}

void measure_memory() {
  const auto size = [](const ProbeSet& set) {
    return std::stod(run_probed(agent, set, {own_path(), "--size"}).output);
  };
  const auto with = [&](Where where, uint8_t flags) {
    ProbeSet set, few;
    set.add(own_path(), where, flags);
    few = set;
    few.probes.resize(1);
    const auto more = static_cast<double>(set.probes.size() - 1);
    return (size(set) - size(few)) / more;
  };
  report("memory of a probe that stays, with plan and counter", with(Where::instructions, 0),
         "bytes", 64);
  report("memory of a one-shot probe, with plan and counter",
         with(Where::instructions, protocol::probe_one_shot), "bytes", 64);
}

constexpr char compiled[] = R"(
#include <map>
#include <regex>
#include <string>
#include <vector>
int main(int argc, char** argv) {
  std::map<std::string, std::vector<int>> all;
  for (int i = 0; i < argc; ++i) all[argv[i]].push_back(i);
  for (auto& [name, numbers] : all) std::sort(numbers.begin(), numbers.end());
  return std::regex_match(argv[0], std::regex("a+b*")) ? int(all.size()) : 0;
}
)";

struct Compiler {
  std::string path;
  std::vector<std::string> libraries;
};

Compiler find_compiler() {
  Compiler compiler{"/usr/lib/llvm-14/bin/clang", {}};
  for (const char* name : {"libLLVM-14.so.1", "libclang-cpp.so.14"})
    compiler.libraries.push_back(std::string("/usr/lib/x86_64-linux-gnu/") + name);
  return compiler;
}

ProbeSet all_functions(const Compiler& compiler) {
  ProbeSet set;
  const auto start = Clock::now();
  for (const auto& library : compiler.libraries)
    set.add(library, Where::entries, protocol::probe_one_shot);
  note("functions of clang's libraries", static_cast<double>(set.probes.size()), "");
  note("planning them", std::chrono::duration<double>(Clock::now() - start).count(), "s");
  return set;
}

// The least CPU time of several rounds: what else the machine does can only add to it.
void measure_trace() {
  const Compiler compiler = find_compiler();
  if (!std::filesystem::exists(compiler.path)) return (void)fmt::print("no clang-14: skipped\n");
  const TempFolder folder;
  std::ofstream(folder.file("a.cc")) << compiled;
  const ProbeSet set = all_functions(compiler);
  const std::vector<std::string> compile = {
      compiler.path, "-std=c++17", "-O2", "-c", "-o", folder.file("a.o"), folder.file("a.cc")};
  const std::vector<std::string> start_only = {compiler.path, "--version"};
  constexpr double much = 1e9;
  double bare_start = much, probed_start = much, plain = much, traced = much;
  uint64_t hits = 0;
  for (int i = 0; i < repetitions; ++i) {
    bare_start = std::min(bare_start, run_probed(agent, {}, start_only).cpu_seconds);
    probed_start = std::min(probed_start, run_probed(agent, set, start_only).cpu_seconds);
    plain = std::min(plain, run_probed("", {}, compile).cpu_seconds);
    const ProbedRun run = run_probed(agent, set, compile);
    traced = std::min(traced, run.cpu_seconds);
    hits = total(run.hits);
  }
  const double install = probed_start - bare_start;
  note("of these, executed by compiling a file", static_cast<double>(hits), "");
  note("compiling it, plain", plain, "s");
  report("start with all probes - start without", install, "s", 1.0);
  report("compiling with one-shot probes / plain, without the start", (traced - install) / plain,
         "", 1.05);
}

int bench(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word == "--loop") return loop();
  if (word == "--size") return show_size();
  measure_trace();
  measure_memory();
  measure_hits();
  return all_bounds_met ? 0 : 1;
}

}  // namespace
}  // namespace unflake

int main(int argc, char** argv) {
  return unflake::bench(argc, argv);
}
