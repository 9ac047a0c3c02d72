#include "cli/wanted.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "output/ci_log/ci_log.h"
#include "output/read_outcome.h"
#include "store/store.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr FailureKind kinds[] = {
    FailureKind::assertion,        FailureKind::exception,
    FailureKind::signal,           FailureKind::exit_status,
    FailureKind::output_pattern,   FailureKind::unexpected_pass,
    FailureKind::timeout,          FailureKind::address_sanitizer,
    FailureKind::thread_sanitizer, FailureKind::undefined_behaviour_sanitizer,
    FailureKind::memory_sanitizer, FailureKind::leak_sanitizer,
    FailureKind::valgrind};

std::optional<Failure> line_in(const std::string& word) {
  const size_t colon = word.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  Failure failure;
  failure.kind = FailureKind::assertion;
  failure.file = word.substr(0, colon);
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + colon + 1, end, failure.line);
  if (error != std::errc() || stop != end || failure.line < 1) return std::nullopt;
  return failure;
}

std::vector<SignatureSummary> failures_in(const StoreAddress& history, const TestId& test) {
  auto store = open_store_to_read(history);
  if (!store) return {};
  auto summary = (*store)->summarise_test(test);
  if (!summary || !*summary) return {};
  return std::move((*summary)->signatures);
}

std::optional<Failure> in_history(const std::string& signature, const TestId& test,
                                  const StoreAddress& history) {
  const std::vector<SignatureSummary> known = failures_in(history, test);
  const auto found = std::ranges::find(known, signature, &SignatureSummary::signature);
  if (found == known.end()) return std::nullopt;
  return found->failure;
}

}  // namespace

std::set<std::string> known_signatures(const TestId& test, const StoreAddress& history) {
  std::set<std::string> known;
  for (const SignatureSummary& failure : failures_in(history, test))
    known.insert(failure.signature);
  return known;
}

Result<Wanted> wanted_by_word(const std::string& word, const TestId& test,
                              const StoreAddress& history) {
  if (is_signature(word)) return Wanted{word, in_history(word, test, history)};
  if (auto failure = line_in(word)) return Wanted{"", failure};
  for (const FailureKind kind : kinds) {
    Failure failure;
    failure.kind = kind;
    if (to_string(kind) == word) return Wanted{"", failure};
  }
  std::vector<std::string> names;
  for (const FailureKind kind : kinds) names.emplace_back(to_string(kind));
  return usage_error(
      "this is no failure: " + shell_quote(word), "--failure",
      "give the 16 digits that `unflake history` shows, FILE:LINE of a check, or one "
      "of " +
          join(names, ", "));
}

Result<std::vector<Wanted>> wanted_by_log(const Test& test, const CiLog& log) {
  const auto logged = logged_failures_of(test, log);
  if (!logged) return logged.error();
  std::vector<Wanted> wanted;
  for (const LoggedFailure& failure : *logged) {
    Wanted one;
    if (!failure.failures.empty())
      one = {signature_of(failure.failures.front()), failure.failures.front()};
    const auto same = [&](const Wanted& other) { return other.signature == one.signature; };
    if (std::ranges::none_of(wanted, same)) wanted.push_back(std::move(one));
  }
  return wanted;
}

Result<std::vector<Wanted>> wanted_by_output(const Test& test, const std::string& output,
                                             const Error& otherwise) {
  ProcessResult process;
  process.code = 1;
  process.output.head = output;
  process.output.total = output.size();
  const Outcome outcome = read_outcome(test, process);
  if (outcome.failures.empty() || outcome.failures.front().kind == FailureKind::exit_status)
    return otherwise;
  return std::vector{Wanted{outcome.signature, outcome.failures.front()}};
}

}  // namespace unflake
