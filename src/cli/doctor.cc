#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "app/config.h"
#include "app/options.h"
#include "app/project.h"
#include "cli/commands.h"
#include "run/agent_session.h"
#include "run/local_executor.h"
#include "run/supervisor.h"
#include "store/store.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* doctor_help =
    R"(Tells what this machine can do for unflake, what is missing, and what to do about it.

Exit code 0: everything that unflake needs is there; 4: something is not.)";

struct Finding {
  enum class Grade { ok, optional, missing };
  Grade grade = Grade::ok;
  std::string topic;
  std::string text;
  std::string next;
};

using Grade = Finding::Grade;

Finding machine() {
  utsname name{};
  ::uname(&name);
  const std::string text = fmt::format("{} {} on {}", name.sysname, name.release, name.machine);
  if (std::string_view(name.machine) == "x86_64") return {Grade::ok, "machine", text, ""};
  return {Grade::missing, "machine", text, "run unflake on x86-64 Linux"};
}

Finding process_handles() {
  const UniqueFd handle = open_pidfd(::getpid());
  if (handle) return {Grade::ok, "process handles", "pidfd_open works", ""};
  return {Grade::missing, "process handles", "pidfd_open does not work here",
          "use Linux 5.3 or newer, or allow pidfd_open in the container's seccomp profile"};
}

Finding orphans() {
  if (adopt_orphans())
    return {Grade::ok, "orphans", "processes that a test leaves behind are found", ""};
  return {Grade::missing, "orphans", "PR_SET_CHILD_SUBREAPER is refused",
          "allow prctl in the container's seccomp profile"};
}

Finding processors() {
  const unsigned usable = std::max(1u, std::thread::hardware_concurrency());
  return {Grade::ok, "processors",
          fmt::format("{}; more than that many --jobs disturb each other", usable), ""};
}

Finding limits() {
  rlimit processes{}, files{};
  ::getrlimit(RLIMIT_NPROC, &processes);
  ::getrlimit(RLIMIT_NOFILE, &files);
  const auto show = [](rlim_t limit) {
    return limit == RLIM_INFINITY ? std::string("unlimited") : std::to_string(limit);
  };
  const std::string text =
      fmt::format("{} processes, {} open files", show(processes.rlim_cur), show(files.rlim_cur));
  if (processes.rlim_cur < 256 || files.rlim_cur < 256)
    return {Grade::optional, "limits", text, "raise them with ulimit -u and ulimit -n"};
  return {Grade::ok, "limits", text, ""};
}

Finding program(Launcher& launcher, const char* name, const char* purpose) {
  Command command;
  command.argv = {name, "--version"};
  const ProcessResult result = launcher.launch(command, std::chrono::seconds(10));
  if (result.end == ProcessResult::End::exited && result.code == 0) {
    const auto lines = split_lines(result.output.head);
    return {Grade::ok, name, lines.empty() ? "" : printable(shorten(lines[0], 80)), ""};
  }
  return {Grade::optional, name, fmt::format("not found; {}", purpose),
          fmt::format("apt-get install {}", std::string_view(name) == "ctest" ? "cmake" : name)};
}

Finding agent() {
  const auto library = find_agent_library();
  if (library) return {Grade::ok, "agent", *library, ""};
  return {Grade::optional, "agent",
          "this unflake has no agent: it runs tests and changes nothing in them",
          library.error().next};
}

Finding configuration(const ConfigOptions& options, const Project& project) {
  const auto config = options.load(project);
  if (!config)
    return {Grade::missing, "configuration",
            fmt::format("{} ({})", config.error().what, config.error().where), config.error().next};
  std::error_code failed;
  const std::string path = options.file(project);
  const bool there = std::filesystem::exists(path, failed);
  return {Grade::ok, "configuration", there ? path : "none; defaults are used", ""};
}

Finding history(const Project& project, const StoreAddress& address) {
  std::error_code failed;
  const std::string& path = address.url;
  if (!is_postgres(address) && !std::filesystem::exists(path, failed)) {
    const std::string& folder = std::filesystem::exists(project.root + "/.unflake", failed)
                                    ? project.root + "/.unflake"
                                    : project.root;
    if (::access(folder.c_str(), W_OK) == 0)
      return {Grade::ok, "history", "none yet; the first run makes " + path, ""};
    return {Grade::missing, "history", folder + " cannot be written",
            "make it writable, or run with --store FILE or --no-history"};
  }
  const auto store = open_store_to_read(address);
  if (!store) return {Grade::missing, "history", store.error().what, store.error().next};
  return {Grade::ok, "history", to_string(address), ""};
}

Finding disk(const Project& project) {
  struct statvfs volume {};
  if (::statvfs(project.root.c_str(), &volume) != 0)
    return {Grade::optional, "disk", "its free space cannot be told", ""};
  const double free_mib =
      static_cast<double>(volume.f_bavail) * static_cast<double>(volume.f_frsize) / (1 << 20);
  const std::string text = fmt::format("{:.0f} MiB free in {}", free_mib, project.root);
  if (free_mib >= 100) return {Grade::ok, "disk", text, ""};
  return {Grade::optional, "disk", text,
          "history grows by about 0.2 MiB per 1,000 runs: make room"};
}

void print(Page& page, const Finding& finding) {
  constexpr const char* grades[] = {"ok", "optional", "PROBLEM"};
  page.print("{:<9} {:<16} {}\n", grades[static_cast<int>(finding.grade)], finding.topic,
             printable(finding.text));
  if (!finding.next.empty()) page.print("{:<9} {:<16} -> {}\n", "", "", printable(finding.next));
}

}  // namespace

int doctor_command(const Words& words) {
  StoreOptions store_options;
  ConfigOptions config_options;
  CommandLine line("doctor", doctor_help);
  store_options.add_to(line);
  config_options.add_to(line);
  if (const auto done = line.parse(words)) return *done;
  const auto project = find_project();
  if (!project) return report_error(project.error());
  const Result<Config> config = config_options.load(*project);
  Interrupts interrupts;
  auto executor = LocalExecutor::create({}, interrupts);
  if (!executor) return report_error(executor.error());

  const Finding findings[] = {
      machine(),
      process_handles(),
      orphans(),
      processors(),
      limits(),
      disk(*project),
      program(**executor, "git", "runs are recorded without commit and branch"),
      program(**executor, "ctest", "CTest build folders cannot be listed"),
      program(**executor, "gdb", "`unflake replay --gdb` has no debugger to start"),
      program(**executor, "rr", "`unflake replay --rr` cannot record a failing run"),
      agent(),
      configuration(config_options, *project),
      history(*project, store_options.address(*project, config ? *config : Config{})),
  };
  Page page;
  bool complete = true;
  for (const Finding& finding : findings) {
    print(page, finding);
    complete = complete && finding.grade != Grade::missing;
  }
  const int written = page.write_out();
  return complete ? written : static_cast<int>(ExitCode::unflake_failed);
}

}  // namespace unflake
