#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <thread>

#include "app/options.h"
#include "app/version.h"
#include "util/result.h"
#include "util/text.h"
#include "web/http_server.h"

namespace unflake {
namespace {

constexpr const char* serve_help =
    R"(Takes the reports that `unflake ingest --server` sends into a history, for any number of machines.

  UNFLAKE_TOKEN=... unflake serve
  UNFLAKE_TOKEN=... unflake serve --listen 0.0.0.0:8080 --store postgres://unflake@db/unflake

Whoever has the token may write. There is no TLS here: put a proxy in front of what others can reach.
SIGTERM and Ctrl-C end it when the requests in flight are answered.)";

struct ServeCommand {
  std::string listen = "127.0.0.1:8080", token;
  StoreOptions history;
  ConfigOptions configuration;
};

// Waits for the signals that end a server. They are blocked before any thread starts, so that none
// but this one gets them.
class EndSignals {
 public:
  EndSignals() {
    ::sigemptyset(&signals_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, end_of_server})
      ::sigaddset(&signals_, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }

  std::thread stop_at_signal(HttpServer& server) {
    return std::thread([this, &server] {
      int signal = 0;
      ::sigwait(&signals_, &signal);
      if (signal != end_of_server) server.stop();
    });
  }

  static void release(std::thread& waiting) {
    ::pthread_kill(waiting.native_handle(), end_of_server);
    waiting.join();
  }

 private:
  static constexpr int end_of_server = SIGUSR2;
  sigset_t signals_{};
};

// Fails at the start, not at the first report.
Result<void> check_store(const StoreAddress& address) {
  const auto store = open_store(address);
  return store ? Result<void>() : Result<void>(store.error());
}

Result<int> serve(const ServeCommand& command, const Project& project) {
  const auto config = command.configuration.load(project);
  if (!config) return config.error();
  ResultsApi api;
  api.store = command.history.address(project, *config);
  api.token = command.token.empty() ? environment_variable("UNFLAKE_TOKEN") : command.token;
  api.version = version;
  if (api.token.empty())
    return usage_error("a server without a token would take reports from anybody", "",
                       "set UNFLAKE_TOKEN to a long random word");
  make_folder(project);
  if (const auto usable = check_store(api.store); !usable) return usable.error();
  EndSignals signals;
  const auto server = HttpServer::listen(command.listen, {});
  if (!server) return server.error();
  serve_results(api, **server);
  const std::string host = command.listen.substr(0, command.listen.rfind(':'));
  fmt::print("unflake serves {} at http://{}:{}/\n", printable(to_string(api.store)),
             printable(host), (*server)->port());
  std::fflush(stdout);
  std::thread stopper = signals.stop_at_signal(**server);
  const auto ended = (*server)->run();
  EndSignals::release(stopper);
  if (!ended) return ended.error();
  return 0;
}

}  // namespace

int serve_command(const Words& words) {
  CommandLine line("serve", serve_help);
  ServeCommand command;
  line.option("--listen", command.listen, "where to listen; port 0: any [127.0.0.1:8080]")
      .takes("HOST:PORT");
  line.option("--token", command.token, "the token that writers must send [UNFLAKE_TOKEN]");
  command.history.add_to(line);
  command.configuration.add_to(line);
  if (const auto code = line.parse(words)) return *code;
  const auto project = find_project();
  if (!project) return report_error(project.error());
  const auto code = serve(command, *project);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
