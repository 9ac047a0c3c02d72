#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "support/temp_folder.h"
#include "util/files.h"
#include "web/delivery.h"
#include "web/http_server.h"

namespace unflake {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using State = Delivered::State;

std::string report_of(int cases) {
  std::string text = "<testsuite name='s' timestamp='2026-03-01T12:00:00Z'>";
  for (int i = 0; i < cases; ++i)
    text += "<testcase name='t" + std::to_string(i) + "' time='0.001'/>";
  return text + "</testsuite>";
}

// `unflake serve` in this process.
class RunningServer {
 public:
  RunningServer(const std::string& history, const ServerLimits& limits = {}) {
    auto made = HttpServer::listen("127.0.0.1:0", limits);
    EXPECT_TRUE(made);
    server_ = std::move(*made);
    serve_results({.store = {history, ""}, .token = "secret", .version = "1"}, *server_);
    thread_ = std::thread([this] { EXPECT_TRUE(server_->run()); });
  }
  ~RunningServer() {
    server_->stop();
    thread_.join();
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  int port() const { return server_->port(); }

 private:
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

class Serve : public testing::Test {
 protected:
  ReportFile file(const std::string& text) {
    const std::string path = folder_.file(std::to_string(++files_) + ".xml");
    std::ofstream(path) << text;
    auto opened = ReportFile::open(path);
    EXPECT_TRUE(opened);
    return std::move(*opened);
  }

  int64_t recorded() {
    int64_t runs = 0;
    const auto store = open_store({history(), ""});
    if (!store) return -1;
    EXPECT_TRUE((*store)->visit({.session = [](const auto&) { return Result<void>(); },
                                 .run = [&](const auto&) { return ++runs, Result<void>(); }}));
    return runs;
  }

  std::string history() const { return folder_.file("history.db"); }

  // Sends raw bytes and gives everything that comes back.
  static std::string talk(int port, const std::string& bytes, bool close_early = false) {
    const UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t sent = ::send(fd.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) break;
      at += static_cast<size_t>(sent);
    }
    if (close_early) ::shutdown(fd.get(), SHUT_WR);
    std::string answer;
    char piece[4096];
    for (ssize_t count; (count = ::recv(fd.get(), piece, sizeof piece, 0)) > 0;)
      answer.append(piece, static_cast<size_t>(count));
    return answer;
  }

  static std::string heading(const std::string& more) {
    return "POST /api/v1/results HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n" + more +
           "\r\n";
  }

  TempFolder folder_;
  int files_ = 0;
};

TEST_F(Serve, A_report_that_is_sent_is_recorded) {
  const RunningServer server(history());
  Delivery delivery;
  delivery.settings.origin.target = "mine & yours";
  const Delivered delivered = deliver(file(report_of(3000)), delivery, {server.url(), "secret"});
  EXPECT_EQ(delivered.state, State::taken) << to_string(delivered.error);
  EXPECT_EQ(delivered.report.counts.runs, 3000);
  EXPECT_EQ(recorded(), 3000);
  const auto store = open_store({history(), ""});
  ASSERT_TRUE(store);
  const auto test = (*store)->summarise_test({"mine & yours", "t7"});
  ASSERT_TRUE(test);
  EXPECT_TRUE(test->has_value());
}

TEST_F(Serve, A_report_that_is_sent_twice_counts_once) {
  const RunningServer server(history());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(deliver(file(report_of(10)), {}, {server.url(), "secret"}).state, State::taken);
  EXPECT_EQ(recorded(), 10);
}

TEST_F(Serve, Many_clients_at_a_time_lose_nothing) {
  const RunningServer server(history());
  std::vector<ReportFile> files;
  for (int i = 0; i < 6; ++i) files.push_back(file(report_of(100 + i)));
  std::vector<std::thread> clients;
  for (const ReportFile& one : files)
    clients.emplace_back([&] {
      EXPECT_EQ(deliver(one, {}, {server.url(), "secret"}).state, State::taken);
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(recorded(), 615);
}

TEST_F(Serve, Without_the_token_nothing_is_taken) {
  const RunningServer server(history());
  const Delivered delivered = deliver(file(report_of(3)), {}, {server.url(), "guess"});
  EXPECT_EQ(delivered.state, State::rejected);
  EXPECT_THAT(delivered.error.what, HasSubstr("token"));
  EXPECT_EQ(knock({server.url(), ""}).state, State::rejected);
  EXPECT_EQ(knock({server.url(), "secret"}).state, State::taken);
  EXPECT_EQ(recorded(), 0);
}

TEST_F(Serve, What_is_no_report_is_rejected_with_the_reason) {
  const RunningServer server(history());
  const Delivered delivered = deliver(file("no report"), {}, {server.url(), "secret"});
  EXPECT_EQ(delivered.state, State::rejected);
  EXPECT_THAT(delivered.error.what, HasSubstr("is not XML"));
}

TEST_F(Serve, A_report_that_was_cut_short_is_taken_as_far_as_it_goes) {
  const RunningServer server(history());
  const std::string whole = report_of(10);
  const Delivered delivered =
      deliver(file(whole.substr(0, whole.size() - 30)), {}, {server.url(), "secret"});
  EXPECT_EQ(delivered.state, State::taken);
  ASSERT_TRUE(delivered.report.refused);
  EXPECT_THAT(delivered.report.refused->what, HasSubstr("cut short"));
}

TEST_F(Serve, A_history_that_cannot_be_written_is_for_later) {
  std::filesystem::create_directory(history());  // no file can be there
  const RunningServer server(history());
  EXPECT_EQ(deliver(file(report_of(3)), {}, {server.url(), "secret"}).state, State::later);
}

TEST_F(Serve, Of_a_body_that_breaks_off_nothing_is_recorded) {
  const RunningServer server(history());
  const std::string body = report_of(5);
  talk(server.port(), heading("Content-Length: 100000\r\n") + body, true);
  talk(server.port(), heading("Transfer-Encoding: chunked\r\n") + "10\r\n" + body, true);
  EXPECT_EQ(recorded(), 0);
}

TEST_F(Serve, A_body_without_a_length_is_refused) {
  const RunningServer server(history());
  EXPECT_THAT(talk(server.port(), heading("") + report_of(1), true), HasSubstr("411"));
}

TEST_F(Serve, Wrong_methods_addresses_and_forms_are_refused) {
  const RunningServer server(history());
  EXPECT_THAT(
      talk(server.port(), "DELETE /api/v1/results HTTP/1.1\r\nHost: x\r\n\r\n", true),
      AllOf(HasSubstr("405"), HasSubstr("Allow: GET, POST"),
            HasSubstr(R"({"error":{"next":"use GET, POST","what":"this address has no such )"
                      R"(method","where":"/api/v1/results"},"format":1})")));
  EXPECT_THAT(talk(server.port(), "GET /etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", true),
              AllOf(HasSubstr("404"), HasSubstr(R"("where":"/etc/passwd"},"format":1})")));
  EXPECT_THAT(talk(server.port(), "nonsense\r\n\r\n", true),
              AllOf(HasSubstr("400"), HasSubstr(R"(},"format":1})")));
  EXPECT_THAT(
      talk(server.port(),
           heading("Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 1\r\n") + "x",
           true),
      HasSubstr("415"));
}

TEST_F(Serve, Endless_headings_and_lines_are_cut_off) {
  const RunningServer server(history());
  const std::string much(4 * 1024 * 1024, 'x');
  EXPECT_EQ(talk(server.port(), "GET /" + much).find("200 OK"), std::string::npos);
  std::string headers = "GET /health HTTP/1.1\r\n";
  for (int i = 0; i < 100'000; ++i) headers += "A: b\r\n";
  EXPECT_EQ(talk(server.port(), headers + "\r\n").find("200 OK"), std::string::npos);
  EXPECT_EQ(talk(server.port(), heading("Transfer-Encoding: chunked\r\n") + much).find("200 OK"),
            std::string::npos);
  EXPECT_THAT(talk(server.port(), "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"), HasSubstr("200 OK"));
}

TEST_F(Serve, A_client_that_says_nothing_is_cut_off) {
  ServerLimits limits;
  limits.heading = std::chrono::milliseconds(50);
  const RunningServer server(history(), limits);
  EXPECT_EQ(talk(server.port(), "GET /hea").find("200 OK"), std::string::npos);
}

TEST_F(Serve, Says_what_it_is) {
  const RunningServer server(history());
  EXPECT_THAT(send({.url = server.url() + "/"})->body, HasSubstr("unflake ingest"));
  EXPECT_THAT(send({.url = server.url() + "/health"})->body, HasSubstr("\"ok\""));
}

TEST_F(Serve, An_address_that_is_taken_is_told) {
  const RunningServer server(history());
  EXPECT_FALSE(HttpServer::listen("127.0.0.1:" + std::to_string(server.port()), {}));
  for (const char* bad : {"", "8080", "127.0.0.1:", "127.0.0.1:99999", ":80x"})
    EXPECT_FALSE(HttpServer::listen(bad, {})) << bad;
}

TEST(HttpClient, A_server_that_is_not_there_is_an_error) {
  std::string url;
  { url = RunningServer("/nonexistent/history.db").url(); }
  const auto response = send({.url = url});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind, ErrorKind::internal);
  EXPECT_EQ(knock({url, "secret"}).state, State::later);
}

TEST(HttpClient, Refuses_addresses_and_headers_that_could_mean_something_else) {
  for (const char* url : {"", "ftp://x/", "http://", "http://user:word@host/", "https://a b/"})
    EXPECT_FALSE(send({.url = url})) << url;
  EXPECT_FALSE(send({.url = "http://127.0.0.1:1/", .headers = {{"A", "b\r\nC: d"}}}));
}

TEST(Secrets, Are_compared_as_a_whole) {
  EXPECT_TRUE(is_same_secret("word", "word"));
  for (const char* other : {"", "wor", "words", "Word"})
    EXPECT_FALSE(is_same_secret("word", other));
}

class Outboxes : public Serve {
 protected:
  Outbox::Send to(const std::string& url) {
    return [url](const ReportFile& report, const Delivery& delivery) {
      return deliver(report, delivery, {url, "secret"});
    };
  }
  Outbox outbox_{folder_.file("outbox")};
};

TEST_F(Outboxes, What_waited_is_delivered_once) {
  const RunningServer server(history());
  Delivery delivery;
  delivery.settings.surroundings.build = "7";
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(outbox_.keep(file(report_of(10)), delivery, server.url()));
  const auto flushed = outbox_.flush(server.url(), to(server.url()));
  ASSERT_TRUE(flushed);
  EXPECT_EQ(flushed->delivered, 1);
  EXPECT_EQ(recorded(), 10);
  EXPECT_EQ(outbox_.flush(server.url(), to(server.url()))->delivered, 0);
}

TEST_F(Outboxes, What_cannot_be_delivered_stays) {
  ASSERT_TRUE(outbox_.keep(file(report_of(10)), {}, "http://gone"));
  ASSERT_TRUE(outbox_.keep(file(report_of(11)), {}, "http://gone"));
  int tries = 0;
  const auto away = [&](const ReportFile&, const Delivery&) { return ++tries, Delivered(); };
  EXPECT_EQ(outbox_.flush("http://gone", away)->left, 2);
  EXPECT_EQ(tries, 1);
  EXPECT_EQ(outbox_.flush("http://other", away)->elsewhere, 2);
}

TEST_F(Outboxes, What_is_rejected_is_put_aside_and_told) {
  ASSERT_TRUE(outbox_.keep(file("no report"), {}, "http://x"));
  const auto rejects = [](const ReportFile&, const Delivery&) {
    return Delivered{State::rejected, {}, usage_error("is not XML")};
  };
  EXPECT_EQ(outbox_.flush("http://x", rejects)->problems.size(), 1u);
  EXPECT_EQ(outbox_.flush("http://x", rejects)->problems.size(), 0u);
}

TEST_F(Outboxes, Several_that_flush_at_once_neither_lose_nor_double) {
  const RunningServer server(history());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(outbox_.keep(file(report_of(10 + i)), {}, server.url()));
  std::vector<std::thread> flushers;
  for (int i = 0; i < 4; ++i)
    flushers.emplace_back([&] { EXPECT_TRUE(outbox_.flush(server.url(), to(server.url()))); });
  for (std::thread& flusher : flushers) flusher.join();
  ASSERT_TRUE(outbox_.flush(server.url(), to(server.url())));
  EXPECT_EQ(recorded(), 60);
}

TEST_F(Outboxes, What_goes_along_comes_out_as_it_went_in) {
  Delivery delivery;
  delivery.settings.origin = {"a b/\xC3\xB6.xml", "t&=%", "p"};
  delivery.settings.surroundings = {"c0ffee", "main", true, "m1", "", "42"};
  delivery.settings.modified = TimePoint(std::chrono::seconds(1'772'366'400));
  delivery.project = "acme/queue";
  const QueryFields fields = to_fields(delivery);
  EXPECT_EQ(to_fields(delivery_from(fields)), fields);
}

}  // namespace
}  // namespace unflake
