#include "history/postgres/pg_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "util/text.h"

namespace unflake {
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
     "create it with `createdb`, or correct the name behind the last / of the url"},
    {"42501", ErrorKind::usage, Cure::none, "the history's server does not permit this", grant},
    {"25006", ErrorKind::usage, Cure::none, "the history's server only reads",
     "give the address of the primary server: replicas answer questions and record nothing"},
    {"40", ErrorKind::internal, Cure::repeat, "the history's server gave the work of others way",
     "try again"},
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
  // "SEVERITY:  28P01: what happened", perhaps behind the name of the server
  for (size_t at = line.find(":  "); at != std::string::npos; at = line.find(":  ", at + 3))
    if (is_state(std::string_view(line).substr(at + 3, 5)) && line.substr(at + 8, 2) == ": ")
      return {line.substr(at + 3, 5), line.substr(at + 10)};
  return {"", line};
}

}  // namespace unflake
