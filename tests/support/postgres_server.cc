#include "support/postgres_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

namespace unflake {
namespace {

using Words = std::vector<std::string>;

[[noreturn]] void give_up(const std::string& why) {
  throw std::runtime_error("PostgreSQL for tests: " + why);
}

int version_of(const std::filesystem::path& folder) {
  return std::atoi(folder.filename().c_str());
}

// Debian keeps one folder for each version, and none of these programs in the PATH.
std::string newest_binaries() {
  std::filesystem::path newest;
  std::error_code missing;
  for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", missing))
    if (std::filesystem::exists(version.path() / "bin/initdb") &&
        version_of(version.path()) > version_of(newest))
      newest = version.path();
  if (newest.empty()) give_up("it is not installed; tools/setup installs it");
  return newest / "bin/";
}

// The server refuses to run as root.
const passwd* server_user() {
  if (::geteuid() != 0) return nullptr;
  for (const char* name : {"postgres", "nobody"})
    if (const passwd* user = ::getpwnam(name)) return user;
  give_up("there is no user to run it as: neither postgres nor nobody");
}

void become(const passwd* user) {
  if (user == nullptr) return;
  if (::setgroups(0, nullptr) != 0 || ::setgid(user->pw_gid) != 0 || ::setuid(user->pw_uid) != 0)
    ::_exit(126);
}

// Ends by `last_signal` when the process that called this dies.
pid_t spawn(const Words& words, const std::string& log, int last_signal) {
  const passwd* user = server_user();
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) give_up("fork failed");
  if (child > 0) return child;
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::dup2(::open("/dev/null", O_RDONLY), 0);
  ::dup2(out, 1);
  ::dup2(out, 2);
  become(user);
  ::prctl(PR_SET_PDEATHSIG, last_signal);
  if (::getppid() != parent) ::_exit(125);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Close {
  void operator()(PGconn* connection) const { PQfinish(connection); }
  void operator()(PGresult* result) const { PQclear(result); }
};

std::unique_ptr<PGresult, Close> ask(const std::string& url, const std::string& sql) {
  const std::unique_ptr<PGconn, Close> connection(PQconnectdb(url.c_str()));
  PQsetNoticeProcessor(
      connection.get(), [](void*, const char*) {}, nullptr);
  std::unique_ptr<PGresult, Close> result(PQexec(connection.get(), sql.c_str()));
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    give_up(sql + ": " + PQerrorMessage(connection.get()));
  return result;
}

}  // namespace

PostgresServer::PostgresServer(Durability durability)
    : durability_(durability), owner_(::getpid()) {
  make_cluster();
  start();
}

PostgresServer::~PostgresServer() {
  if (server_ > 0 && ::getpid() == owner_) stop();
}

PostgresServer& PostgresServer::shared() {
  static PostgresServer server;
  return server;
}

void PostgresServer::make_cluster() {
  if (const passwd* user = server_user())
    if (::chown(folder_.path().c_str(), user->pw_uid, user->pw_gid) != 0) give_up("chown failed");
  const std::string log = folder_.file("initdb.log");
  const pid_t initdb =
      spawn({newest_binaries() + "initdb", "--pgdata=" + folder_.file("data"), "--username=unflake",
             "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"},
            log, SIGKILL);
  int status = 0;
  if (::waitpid(initdb, &status, 0) != initdb || status != 0) give_up(contents(log));
  // One user for tests of passwords; all others are trusted.
  std::ofstream(folder_.file("data/pg_hba.conf"))
      << "local all locked scram-sha-256\nlocal all all trust\n";
}

void PostgresServer::start() {
  Words words = {newest_binaries() + "postgres", "-D", folder_.file("data"), "-k", folder_.path()};
  std::vector<std::string> settings = {"listen_addresses=", "max_connections=50"};
  if (durability_ == Durability::as_in_production)
    for (const char* setting : {"shared_buffers=512MB", "max_wal_size=4GB"})
      settings.push_back(setting);
  else
    for (const char* setting :
         {"fsync=off", "full_page_writes=off", "shared_buffers=16MB", "autovacuum=off"})
      settings.push_back(setting);
  for (const std::string& setting : settings) {
    words.push_back("-c");
    words.push_back(setting);
  }
  server_ = spawn(words, folder_.file("server.log"), SIGQUIT);
  wait_until_ready();
}

void PostgresServer::wait_until_ready() {
  while (PQping(url_of("postgres").c_str()) != PQPING_OK) {
    if (::waitpid(server_, nullptr, WNOHANG) == server_) {
      server_ = -1;
      give_up(contents(folder_.file("server.log")));
    }
    ::usleep(5000);
  }
}

void PostgresServer::stop() {
  ::kill(server_, SIGQUIT);
  ::waitpid(server_, nullptr, 0);
  server_ = -1;
}

std::string PostgresServer::url_of(const std::string& database, const std::string& user) const {
  return fmt::format("postgresql://{}@/{}?host={}", user, database, folder_.path());
}

std::string PostgresServer::new_database() {
  const std::string name = fmt::format("test_{}", ++databases_);
  execute("postgres", "CREATE DATABASE " + name);
  return url_of(name);
}

std::string PostgresServer::new_namespace() {
  const std::string name = fmt::format("space_{}", ++namespaces_);
  execute("postgres", "CREATE SCHEMA " + name);
  return url_of("postgres") + "&options=-csearch_path%3D" + name;
}

void PostgresServer::execute(const std::string& database, const std::string& sql) const {
  ask(url_of(database), sql);
}

std::string PostgresServer::value_of(const std::string& database, const std::string& sql) const {
  return PQgetvalue(ask(url_of(database), sql).get(), 0, 0);
}

}  // namespace unflake
