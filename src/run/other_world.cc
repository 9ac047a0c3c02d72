#include "run/conditions.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "protocol/preload_protocol.h"
#include "run/agent_session.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

constexpr useconds_t twin_head_start_us = 10'000;
constexpr const char* padding_variable = "UNFLAKE_PADDING";
constexpr int largest_gtest_seed = 99999;

// What only changes for how long, or how fast, it runs is Scarcity's.
bool has_usual_world(Conditions conditions) {
  conditions.one_core = false;
  conditions.cpu_share = 1;
  conditions.competitors = 0;
  return conditions == Conditions{};
}

std::string temporary_folder() {
  const char* named = ::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

// Characters that divide the options of a mount.
std::string mount_word(std::string_view path) {
  std::string word;
  for (const char c : path) {
    if (c == ':' || c == ',' || c == '\\') word += '\\';
    word += c;
  }
  return word;
}

bool write_file(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool is_written =
      ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  return is_written;
}

void use_loopback() {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  if (::ioctl(socket, SIOCGIFFLAGS, &request) == 0) {
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP | IFF_RUNNING);
    ::ioctl(socket, SIOCSIFFLAGS, &request);
  }
  ::close(socket);
}

void lower_limit(int resource, rlim_t most) {
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  limit.rlim_cur = std::min(limit.rlim_cur, most);
  limit.rlim_max = std::min(limit.rlim_max, most);
  ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

}  // namespace

std::optional<int64_t> clock_of(const std::string& text) {
  using namespace std::chrono;
  int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0, end = 0;
  const int read =
      std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &y, &mo, &d, &h, &mi, &s, &end);
  const year_month_day date{year(y), month(static_cast<unsigned>(mo)),
                            day(static_cast<unsigned>(d))};
  if (read != 6 || end != static_cast<int>(text.size()) || !date.ok()) return std::nullopt;
  const auto time = sys_days(date) + hours(h) + minutes(mi) + seconds(s);
  return duration_cast<nanoseconds>(time.time_since_epoch()).count();
}

OtherWorld::OtherWorld(const Launch& launch)
    : launch_(launch),
      conditions_(launch.conditions),
      are_usual_(has_usual_world(launch.conditions)),
      command_(launch.command) {}

OtherWorld::~OtherWorld() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

bool OtherWorld::needs_mounts() const {
  return conditions_.private_files || conditions_.free_disk_mib > 0;
}

bool OtherWorld::needs_folder() const {
  return needs_mounts() || conditions_.other_temporary || conditions_.other_folder;
}

// Where tests write: of two folders one in the other, the outer one is enough.
void OtherWorld::plan_layers() {
  std::error_code ignored;
  std::vector<std::string> folders;
  const std::string here = command_.cwd.empty() ? fs::current_path(ignored).string() : command_.cwd;
  for (const std::string& folder : {std::string("/tmp"), std::string("/var/tmp"),
                                    temporary_folder(), here, launch_.project_code.root}) {
    const std::string real = fs::canonical(folder, ignored).string();
    const auto covers = [&](const std::string& outer) {
      return real == outer || real.starts_with(outer + "/");
    };
    if (!real.empty() && real != "/" && fs::is_directory(real, ignored) &&
        std::ranges::none_of(folders, covers))
      folders.push_back(real);
  }
  // Whatever holds the layers themselves is hidden by its own, so that it comes last.
  std::ranges::stable_partition(
      folders, [&](const std::string& folder) { return !folder_.starts_with(folder + "/"); });
  for (size_t i = 0; i < folders.size(); ++i) {
    Layer layer{folders[i], fmt::format("{}/u{}", folder_, i), fmt::format("{}/w{}", folder_, i),
                ""};
    layer.options = fmt::format("lowerdir={},upperdir={},workdir={}", mount_word(layer.folder),
                                layer.upper, layer.work);
    layers_.push_back(std::move(layer));
  }
  size_option_ =
      conditions_.free_disk_mib > 0 ? fmt::format("size={}m", conditions_.free_disk_mib) : "";
}

int OtherWorld::make() {
  if (!conditions_.clock.empty() && !clock_of(conditions_.clock)) return EINVAL;
  if (!conditions_.addresses.empty() && conditions_.addresses != "fixed" &&
      conditions_.addresses != "low")
    return EINVAL;
  if (needs_library(conditions_) && launch_.world_library.empty()) return ENOEXEC;
  if (!needs_folder()) return 0;
  std::string path = temporary_folder() + "/unflake-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return errno;
  folder_ = path;
  temporary_ = folder_ + "/a temporary folder";
  const std::string start = folder_ + "/start";
  if (::mkdir(temporary_.c_str(), 0777) != 0 || ::mkdir(start.c_str(), 0777) != 0) return errno;
  if (conditions_.other_folder) command_.cwd = start;
  std::error_code ignored;
  if (command_.cwd.empty()) command_.cwd = fs::current_path(ignored).string();
  id_map_ = fmt::format("{0} {0} 1", ::geteuid());
  group_map_ = fmt::format("{0} {0} 1", ::getegid());
  if (needs_mounts()) plan_layers();
  return 0;
}

void OtherWorld::change(Environment& environment) const {
  const auto set = [&](const char* name, std::string value) {
    environment.apply({name, std::move(value)});
  };
  if (conditions_.environment_bytes > 0)
    set(padding_variable, std::string(static_cast<size_t>(conditions_.environment_bytes), 'x'));
  if (!conditions_.locale.empty()) {
    set("LC_ALL", conditions_.locale);
    set("LANG", conditions_.locale);
  }
  if (!conditions_.time_zone.empty()) set("TZ", conditions_.time_zone);
  if (conditions_.other_temporary)
    for (const char* name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) set(name, temporary_);
  if (conditions_.hash_seed > 0) {
    set("PYTHONHASHSEED", std::to_string(conditions_.hash_seed));
    set("PERL_HASH_SEED", std::to_string(conditions_.hash_seed));
  }
  if (conditions_.memory_fill > 0) {
    // Without its caches, which hand memory on as it is.
    const std::string ours =
        fmt::format("glibc.malloc.perturb={}:glibc.malloc.tcache_count=0", conditions_.memory_fill);
    const std::string others = environment.value("GLIBC_TUNABLES").value_or("");
    set("GLIBC_TUNABLES", others.empty() ? ours : others + ":" + ours);
    set("MALLOC_PERTURB_", std::to_string(conditions_.memory_fill));
  }
  if (conditions_.random_seed > 0)
    set("GTEST_RANDOM_SEED", std::to_string(conditions_.random_seed % largest_gtest_seed + 1));
  if (!needs_library(conditions_)) return;
  environment.apply(preload(variables_of(environment), launch_.world_library, Preloaded::last));
  set(protocol::world_seed_variable, std::to_string(conditions_.random_seed));
  set(protocol::world_cores_variable, std::to_string(conditions_.cores_told));
  using namespace std::chrono;
  const int64_t now = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
  if (const auto wanted = clock_of(conditions_.clock))
    set(protocol::world_clock_variable, std::to_string(*wanted - now));
}

int OtherWorld::limit_resources() const {
  if (conditions_.open_files > 0)
    lower_limit(RLIMIT_NOFILE, static_cast<rlim_t>(conditions_.open_files));
  if (!conditions_.umask.empty())
    ::umask(static_cast<mode_t>(::strtoul(conditions_.umask.c_str(), nullptr, 8) & 0777));
  if (conditions_.addresses == "fixed") ::personality(ADDR_NO_RANDOMIZE);
  if (conditions_.addresses == "low") ::personality(ADDR_NO_RANDOMIZE | ADDR_COMPAT_LAYOUT);
  return 0;
}

int OtherWorld::mount_layers() const {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno;
  if (::mount("unflake", folder_.c_str(), "tmpfs", 0, size_option_.c_str()) != 0) return errno;
  for (const Layer& layer : layers_)
    if (::mkdir(layer.upper.c_str(), 0777) != 0 || ::mkdir(layer.work.c_str(), 0777) != 0)
      return errno;
  for (const Layer& layer : layers_) {
    struct stat before {};
    ::stat(layer.folder.c_str(), &before);
    ::chmod(layer.upper.c_str(), before.st_mode & 07777);
    if (::mount("unflake", layer.folder.c_str(), "overlay", 0, layer.options.c_str()) != 0)
      return errno;
  }
  return 0;
}

// As this user, with the privileges that a namespace of one's own gives where there are no others.
int OtherWorld::isolate() const {
  const int wanted =
      (needs_mounts() ? CLONE_NEWNS : 0) | (conditions_.no_network ? CLONE_NEWNET : 0);
  if (wanted == 0) return 0;
  if (::unshare(wanted) != 0) {
    if (::unshare(wanted | CLONE_NEWUSER) != 0) return errno;
    write_file("/proc/self/setgroups", "deny");
    if (!write_file("/proc/self/uid_map", id_map_) || !write_file("/proc/self/gid_map", group_map_))
      return EPERM;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  if (conditions_.no_network) use_loopback();
  return needs_mounts() ? mount_layers() : 0;
}

int OtherWorld::enter() const {
  if (are_usual_) return 0;
  int code = isolate();
  const bool may_do_without = conditions_.free_disk_mib > 0 && !conditions_.private_files;
  if (code != 0 && may_do_without) {
    ::signal(SIGXFSZ, SIG_IGN);  // then writing fails, as on a full disk
    lower_limit(RLIMIT_FSIZE, static_cast<rlim_t>(conditions_.free_disk_mib) << 20);
    code = 0;
  }
  return code != 0 ? code : limit_resources();
}

pid_t OtherWorld::start_twin(Environment& environment) const {
  const pid_t parent = ::getpid();
  const pid_t helper = ::fork();
  if (helper != 0) {
    // Of two that take the same address at the same time, the first one gets it: the test would
    // always win.
    if (helper > 0) ::usleep(twin_head_start_us);
    return helper;
  }
  ::setsid();
  ::prctl(PR_SET_NAME, "unflake-twin");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (int failures = 0; nowhere >= 0 && failures < 3;) {
    pid_t twin = 0;
    if (spawn(
            command_, environment, {nowhere, nowhere}, [this] { return enter(); }, twin) != 0)
      ++failures;
    else
      ::waitpid(twin, nullptr, 0);
  }
  ::_exit(0);
}

}  // namespace unflake
