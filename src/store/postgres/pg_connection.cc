#include "store/postgres/pg_connection.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "util/text.h"

namespace unflake {
namespace {

constexpr const char* library_name = "libpq.so.5";

[[noreturn]] void refuse(const std::string& why) {
  throw PgFailure(usage_error("a history on a server needs libpq, which cannot be loaded", why,
                              "install it (Debian: libpq5)"),
                  PgFailure::Cure::none);
}

LibPq load() {
  void* library = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse(::dlerror());
  LibPq functions;
#define UNFLAKE_RESOLVE(name)                                                                \
  functions.name = reinterpret_cast<decltype(functions.name)>(::dlsym(library, "PQ" #name)); \
  if (functions.name == nullptr) refuse("it has no PQ" #name);
  UNFLAKE_LIBPQ_FUNCTIONS(UNFLAKE_RESOLVE)
#undef UNFLAKE_RESOLVE
  return functions;
}

}  // namespace

const LibPq& pq() {
  static const LibPq functions = load();
  return functions;
}

namespace {

// Up to the last @, because who did not encode one in a password must not see half of it shown.
std::string without_credentials_password(const std::string& place) {
  const size_t scheme = place.find("://");
  const size_t user = scheme == std::string::npos ? 0 : scheme + 3;
  const size_t at = place.rfind('@'), colon = place.find(':', user);
  if (at == std::string::npos || colon > at) return place;
  return place.substr(0, colon) + place.substr(at);
}

bool is_secret(std::string_view option) {
  return option.find("password=") != std::string_view::npos;
}

}  // namespace

std::string url_without_passwords(const std::string& url) {
  const size_t query = url.find('?', url.rfind('@') == std::string::npos ? 0 : url.find('@'));
  const std::string place = without_credentials_password(url.substr(0, query));
  if (query == std::string::npos) return place;
  std::vector<std::string> shown;
  for (const std::string& option : split(url.substr(query + 1), '&'))
    if (!is_secret(option)) shown.push_back(option);
  return shown.empty() ? place : place + "?" + join(shown, "&");
}

namespace {

using Cure = PgFailure::Cure;

struct Explanation {
  std::string_view state;  // or the class that it starts with
  ErrorKind kind;
  Cure cure;
  const char* what;
  const char* next;
};

constexpr const char* grant =
    "let a role that may do so create the tables (`unflake run` once with its name in the url), "
    "and "
    "grant yours SELECT, INSERT, UPDATE and DELETE on them; to read, SELECT is enough";

constexpr Explanation explanations[] = {
    {"28", ErrorKind::usage, Cure::none, "the history's server refused the user or its password",
     "check both; PGPASSWORD or ~/.pgpass keep a password out of the url"},
    {"3D000", ErrorKind::usage, Cure::none, "the history's server has no such database",
     "create it with `createdb`, or correct the name after the last / of the url"},
    {"42501", ErrorKind::usage, Cure::none, "the history's server does not permit this", grant},
    {"25006", ErrorKind::usage, Cure::none, "the history's server only reads",
     "give the address of the primary server: replicas answer questions and record nothing"},
    {"40", ErrorKind::internal, Cure::repeat,
     "the history's server cancelled this in favour of somebody else's work", "try again"},
    {"55P03", ErrorKind::internal, Cure::none,
     "somebody else keeps a part of the history's database locked",
     "try again; pg_locks and pg_stat_activity on the server tell who it is"},
    {"57P03", ErrorKind::internal, Cure::wait, "the history's server is starting or stopping",
     "try again when it runs"},
    {"53300", ErrorKind::internal, Cure::wait, "the history's server has too many connections",
     "raise max_connections, or put a connection pool in front of it"},
    {"53100", ErrorKind::internal, Cure::none, "the disk of the history's server is full",
     "free some space there; `unflake history prune` makes the history smaller"},
    {"57P0", ErrorKind::internal, Cure::reconnect, "the history's server ended the connection",
     "try again; the server's log tells why"},
    {"08", ErrorKind::internal, Cure::reconnect, "the connection to the history's server was lost",
     "check the server and the network, then try again"},
};

Error unreachable(const PgComplaint& complaint, const std::string& place) {
  return internal_error(
      fmt::format("cannot reach the history's server: {}", printable(complaint.message)), place,
      "check the address, and that the server runs and takes connections from this machine");
}

Error unknown(const PgComplaint& complaint, const std::string& place) {
  return internal_error(fmt::format("the history's server failed: {} ({})",
                                    printable(complaint.message), printable(complaint.state)),
                        place, "try again; if it stays, look into the server's log");
}

bool is_state(std::string_view text) {
  return text.size() == 5 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
         });
}

}  // namespace

PgFailure explain_postgres(const PgComplaint& complaint, const std::string& place) {
  for (const Explanation& known : explanations) {
    if (!complaint.state.starts_with(known.state)) continue;
    return {{known.kind, fmt::format("{}: {}", known.what, printable(complaint.message)), place,
             known.next},
            known.cure};
  }
  if (!complaint.state.empty()) return {unknown(complaint, place), Cure::none};
  if (complaint.while_connecting) return {unreachable(complaint, place), Cure::none};
  return explain_postgres({"08006", complaint.message}, place);
}

PgComplaint read_complaint(const std::string& verbose_message) {
  const std::string line(
      trim(std::string_view(verbose_message).substr(0, verbose_message.find('\n'))));
  // "SEVERITY:  28P01: what happened", perhaps after the name of the server
  for (size_t at = line.find(":  "); at != std::string::npos; at = line.find(":  ", at + 3))
    if (is_state(std::string_view(line).substr(at + 3, 5)) && line.substr(at + 8, 2) == ": ")
      return {line.substr(at + 3, 5), line.substr(at + 10)};
  return {"", line};
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A server that went away without a word is noticed after half a minute; the url may say otherwise.
constexpr const char* names[] = {
    "fallback_application_name", "client_encoding",  "keepalives_idle", "keepalives_interval",
    "keepalives_count",          "tcp_user_timeout", "dbname",          nullptr};

PGconn* start_connecting(const std::string& url) {
  const char* values[] = {"unflake", "UTF8", "10", "5", "4", "30000", url.c_str(), nullptr};
  return pq().connectStartParams(names, values, 1);
}

bool is_number(const char* text) {
  return text == nullptr || text[std::strspn(text, "0123456789,")] == '\0';
}

// libpq would repeat parts of the url, which may be parts of a password.
void check_url(const std::string& url, const std::string& place) {
  struct Free {
    void operator()(PQconninfoOption* options) const { pq().conninfoFree(options); }
  };
  const std::unique_ptr<PQconninfoOption, Free> options(pq().conninfoParse(url.c_str(), nullptr));
  bool readable = options != nullptr;
  for (const PQconninfoOption* option = options.get(); readable && option->keyword; ++option)
    readable = std::strcmp(option->keyword, "port") != 0 || is_number(option->val);
  if (!readable)
    throw PgFailure(usage_error("cannot read the address of the history's server", place,
                                "write postgres://USER:PASSWORD@HOST:PORT/DATABASE, special "
                                "characters of the password as %XX"),
                    PgFailure::Cure::none);
}

template <class Number>
Number parse(const char* text) {
  Number number{};
  std::from_chars(text, text + std::strlen(text), number);
  return number;
}

// Waits until libpq can go on; false when there is no time left.
bool wait_for_socket(PGconn* handle, PostgresPollingStatusType wanted, Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  if (left.count() <= 0) return false;
  pollfd socket{pq().socket(handle), short(wanted == PGRES_POLLING_READING ? POLLIN : POLLOUT), 0};
  return ::poll(&socket, 1, static_cast<int>(std::min<int64_t>(left.count(), INT32_MAX))) != 0;
}

PgComplaint complaint_of(PGconn* handle, bool in_time) {
  PgComplaint complaint = read_complaint(pq().errorMessage(handle));
  if (!in_time) complaint = {"", "no answer in time"};
  if (pq().connectionNeedsPassword(handle)) complaint = {"28P01", "it asks for a password"};
  complaint.while_connecting = true;
  return complaint;
}

}  // namespace

int64_t PgRows::changed() const {
  return parse<int64_t>(pq().cmdTuples(result_.get()));
}

int64_t PgRows::integer(int row, int column) const {
  return parse<int64_t>(pq().getvalue(result_.get(), row, column));
}

double PgRows::real(int row, int column) const {
  return parse<double>(pq().getvalue(result_.get(), row, column));
}

std::string PgRows::text(int row, int column) const {
  return from_stored_text({pq().getvalue(result_.get(), row, column),
                           static_cast<size_t>(pq().getlength(result_.get(), row, column))});
}

std::string PgRows::bytes(int row, int column) const {
  struct Free {
    void operator()(unsigned char* memory) const { pq().freemem(memory); }
  };
  size_t length = 0;
  const auto* escaped =
      reinterpret_cast<const unsigned char*>(pq().getvalue(result_.get(), row, column));
  const std::unique_ptr<unsigned char, Free> bytes(pq().unescapeBytea(escaped, &length));
  if (!bytes) throw std::bad_alloc();
  return {reinterpret_cast<const char*>(bytes.get()), length};
}

PgConnection::PgConnection(std::string url, Duration patience)
    : url_(std::move(url)), place_(url_without_passwords(url_)), patience_(patience) {
  check_url(url_, place_);
  connect();
}

PgConnection::~PgConnection() = default;

std::string PgConnection::server_encoding() const {
  const char* encoding = pq().parameterStatus(handle_.get(), "server_encoding");
  return encoding != nullptr ? encoding : "";
}

void PgConnection::fail(const PgComplaint& complaint) const {
  throw explain_postgres(complaint, place_);
}

void PgConnection::connect_once(Clock::time_point deadline) {
  handle_.reset(start_connecting(url_));
  PGconn* handle = handle_.get();
  if (handle == nullptr) throw std::bad_alloc();
  pq().setErrorVerbosity(handle, PQERRORS_VERBOSE);
  pq().setNoticeProcessor(
      handle, [](void*, const char*) {}, nullptr);
  auto status =
      pq().status(handle) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  bool in_time = true;
  while (in_time && status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED) {
    in_time = wait_for_socket(handle, status, deadline);
    if (in_time) status = pq().connectPoll(handle);
  }
  if (status == PGRES_POLLING_OK) return;
  const PgComplaint complaint = complaint_of(handle, in_time);
  handle_.reset();
  fail(complaint);
}

void PgConnection::connect() {
  const auto deadline = Clock::now() + patience_;
  for (auto pause = milliseconds(10);; pause = std::min(pause * 2, milliseconds(500))) {
    try {
      connect_once(deadline);
      return;
    } catch (const PgFailure& failure) {
      if (failure.cure != PgFailure::Cure::wait || Clock::now() + pause > deadline) throw;
    }
    std::this_thread::sleep_for(pause);
  }
}

void PgConnection::make_sure_of_connection() {
  if (handle_ && pq().status(handle_.get()) == CONNECTION_OK) return;
  if (in_transaction_) fail({"08003", "it was lost in the middle of a transaction"});
  connect();
}

PgRows PgConnection::run_with(const char* sql, const PgValues& values) {
  make_sure_of_connection();
  const auto pointers = values.pointers();
  const auto lengths = values.lengths();
  const auto formats = values.formats();
  return checked(pq().execParams(handle_.get(), sql, static_cast<int>(pointers.size()), nullptr,
                                 pointers.data(), lengths.data(), formats.data(), 0));
}

void PgConnection::execute(const std::string& script) {
  make_sure_of_connection();
  checked(pq().exec(handle_.get(), script.c_str()));
}

PgRows PgConnection::checked(PGresult* result) {
  PgRows rows(result);
  const ExecStatusType status = pq().resultStatus(result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return rows;
  const char* state = result ? pq().resultErrorField(result, PG_DIAG_SQLSTATE) : nullptr;
  const char* message = result ? pq().resultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : nullptr;
  PgComplaint complaint{
      state ? state : "",
      message ? message : read_complaint(pq().errorMessage(handle_.get())).message};
  // An error that no server told comes from the connection, also while libpq still has hopes of it.
  const bool told_to_go = complaint.state.starts_with("57P0");
  const bool broken = complaint.state.empty() || pq().status(handle_.get()) != CONNECTION_OK;
  if (broken && !told_to_go) complaint.state = "08006";
  if (broken || told_to_go) {
    ++generation_;
    handle_.reset();
  }
  fail(complaint);
}

PgTransaction::PgTransaction(PgConnection& connection, PgAccess access) : connection_(connection) {
  const auto lock_timeout = std::chrono::ceil<milliseconds>(connection.patience()).count();
  // To compile a question takes longer than to answer it.
  connection.execute(access == PgAccess::read
                         ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off"
                         : fmt::format("BEGIN; SET LOCAL jit = off; SET LOCAL lock_timeout = {}",
                                       std::max<int64_t>(lock_timeout, 1)));
  connection.in_transaction_ = true;
}

PgTransaction::~PgTransaction() {
  if (!connection_.in_transaction_) return;
  connection_.in_transaction_ = false;
  if (connection_.handle_ && pq().status(connection_.handle_.get()) == CONNECTION_OK)
    pq().clear(pq().exec(connection_.handle_.get(), "ROLLBACK"));
}

void PgTransaction::commit() {
  connection_.execute("COMMIT");
  connection_.in_transaction_ = false;
}

RunRow read_run(const PgRows& rows, int row) {
  return {.test = rows.integer(row, 0),
          .started_us = rows.integer(row, 1),
          .session = rows.integer(row, 2),
          .attempt = rows.integer(row, 3),
          .duration_us = rows.integer(row, 4),
          .outcome = rows.integer(row, 5),
          .signature = rows.integer(row, 6),
          .plan = rows.integer(row, 7)};
}

RunColumns::RunColumns(std::span<const RunRow> runs) {
  for (const RunRow& run : runs) {
    test.push_back(run.test);
    started_us.push_back(run.started_us);
    session.push_back(run.session);
    attempt.push_back(run.attempt);
    duration_us.push_back(run.duration_us);
    outcome.push_back(run.outcome);
    signature.push_back(run.signature);
    plan.push_back(run.plan);
  }
}

Failure read_failure(const PgRows& rows, int row, int kind_column) {
  return {.kind = failure_from_code(rows.integer(row, kind_column)),
          .file = rows.text(row, kind_column + 1),
          .line = static_cast<int>(rows.integer(row, kind_column + 2)),
          .function = rows.text(row, kind_column + 3),
          .expression = rows.text(row, kind_column + 4),
          .message = rows.text(row, kind_column + 5)};
}

}  // namespace unflake
