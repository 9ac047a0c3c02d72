#include "causes/cause_links.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <unordered_set>

#include "model/outcome.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_bytes = 8 * 1024;
constexpr size_t most_words = 200;
constexpr size_t shortest_name_part = 4;
constexpr size_t telling_enough = 4;
constexpr size_t long_expression = 3;  // `ok` may be on any line of a test
constexpr int hashes_per_text = 8;     // two texts with 60 % in common miss each other once in 1500

// What test frameworks of any language say around a failure, and what half of all failures are
// about.
const std::unordered_set<std::string_view>& common_to_all() {
  static const std::unordered_set<std::string_view> words{"a",
                                                          "after",
                                                          "all",
                                                          "an",
                                                          "and",
                                                          "are",
                                                          "as",
                                                          "assert",
                                                          "at",
                                                          "be",
                                                          "been",
                                                          "before",
                                                          "but",
                                                          "by",
                                                          "can",
                                                          "cannot",
                                                          "could",
                                                          "did",
                                                          "do",
                                                          "does",
                                                          "for",
                                                          "from",
                                                          "had",
                                                          "has",
                                                          "have",
                                                          "in",
                                                          "into",
                                                          "is",
                                                          "it",
                                                          "its",
                                                          "no",
                                                          "not",
                                                          "of",
                                                          "on",
                                                          "or",
                                                          "should",
                                                          "so",
                                                          "than",
                                                          "that",
                                                          "the",
                                                          "there",
                                                          "these",
                                                          "this",
                                                          "to",
                                                          "too",
                                                          "was",
                                                          "were",
                                                          "which",
                                                          "will",
                                                          "with",
                                                          "within",
                                                          "would",
                                                          "actual",
                                                          "assertion",
                                                          "assertionerror",
                                                          "check",
                                                          "condition",
                                                          "equal",
                                                          "equality",
                                                          "error",
                                                          "errors",
                                                          "exception",
                                                          "exit",
                                                          "expect",
                                                          "expected",
                                                          "fail",
                                                          "failed",
                                                          "failure",
                                                          "false",
                                                          "fatal",
                                                          "got",
                                                          "java",
                                                          "lang",
                                                          "message",
                                                          "n",
                                                          "nil",
                                                          "null",
                                                          "nullptr",
                                                          "org",
                                                          "panic",
                                                          "result",
                                                          "returned",
                                                          "right",
                                                          "left",
                                                          "root",
                                                          "runtime",
                                                          "signal",
                                                          "status",
                                                          "std",
                                                          "test",
                                                          "tests",
                                                          "thrown",
                                                          "throws",
                                                          "tmp",
                                                          "true",
                                                          "type",
                                                          "unexpected",
                                                          "unknown",
                                                          "util",
                                                          "value",
                                                          "values",
                                                          "want",
                                                          "what",
                                                          "code",
                                                          "deadline",
                                                          "elapsed",
                                                          "exceeded",
                                                          "expired",
                                                          "finish",
                                                          "finished",
                                                          "long",
                                                          "out",
                                                          "second",
                                                          "seconds",
                                                          "still",
                                                          "time",
                                                          "timed",
                                                          "timeout",
                                                          "timeouterror",
                                                          "timeoutexception",
                                                          "took",
                                                          "wait",
                                                          "waited",
                                                          "waiting",
                                                          "ms",
                                                          "s",
                                                          "runtime_error",
                                                          "logic_error",
                                                          "index",
                                                          "object",
                                                          "pointer",
                                                          "process",
                                                          "terminated",
                                                          "terminate",
                                                          "called",
                                                          "throwing",
                                                          "instance",
                                                          "killed",
                                                          "aborted",
                                                          "core",
                                                          "dumped",
                                                          "sigsegv",
                                                          "sigabrt",
                                                          "sigkill",
                                                          "sigterm",
                                                          "segmentation",
                                                          "fault"};
  return words;
}

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::vector<std::string_view> words_in(std::string_view text) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while (at < text.size() && words.size() < most_words) {
    size_t end = at;
    while (end < text.size() && is_word_char(text[end])) ++end;
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::unordered_set<std::string_view> name_parts(const TestId& test) {
  std::unordered_set<std::string_view> parts;
  for (const std::string* name : {&test.target, &test.name})
    for (const std::string_view part : words_in(*name))
      if (part.size() >= shortest_name_part) parts.insert(part);
  return parts;
}

uint64_t hash_of(std::string_view text, uint64_t seed = 0) {
  const uint64_t value = fnv1a(text, fnv1a_start ^ (seed * 0x9E3779B97F4A7C15u));
  return value ^ (value >> 29);
}

void sort_and_unite(std::vector<uint64_t>& numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

// Words of the checked expression show where a failure is, not why it happened.
void read_words(FailureTraits& traits, const Failure& failure) {
  const auto own_names = name_parts(traits.test);
  std::unordered_set<std::string> not_telling;
  for (const std::string_view word : words_in(traits.expression))
    not_telling.insert(lower_case(word));
  traits.expression_words = not_telling.size();
  const std::string said =
      normalise(said_in(std::string_view(failure.message).substr(0, most_bytes)));
  std::string before;
  for (const std::string_view word : words_in(said)) {
    if (own_names.contains(word)) continue;
    std::string small = lower_case(word);
    traits.shingles.push_back(hash_of(small));
    traits.shingles.push_back(hash_of(before + ' ' + small));
    if (!common_to_all().contains(small) && not_telling.insert(small).second) ++traits.telling;
    before = std::move(small);
  }
  sort_and_unite(traits.shingles);
}

void read_place(FailureTraits& traits, const Failure& failure) {
  traits.file = base_name(failure.file);
  const size_t folder_end = failure.file.size() - traits.file.size();
  if (folder_end > 1) traits.folder = base_name(failure.file.substr(0, folder_end - 1));
  traits.line = failure.line;
  traits.function = failure.function;
  traits.expression = normalise(std::string_view(failure.expression).substr(0, most_bytes));
}

bool is_same_file(const FailureTraits& a, const FailureTraits& b) {
  if (a.file.empty() || a.file != b.file) return false;
  return a.folder.empty() || b.folder.empty() || a.folder == b.folder;
}

bool is_same_function(const FailureTraits& a, const FailureTraits& b) {
  if (a.function.empty() || a.function != b.function) return false;
  return is_same_file(a, b) || a.file.empty() || b.file.empty();
}

// What is known about these is where the program was, not what was checked.
bool is_told_by_function(FailureKind kind) {
  return is_sanitizer(kind) || kind == FailureKind::signal || kind == FailureKind::timeout;
}

bool is_same_place(const FailureTraits& a, const FailureTraits& b) {
  if (is_told_by_function(a.kind)) return is_same_function(a, b);
  return is_same_file(a, b) && a.line > 0 && a.line == b.line && a.expression == b.expression;
}

bool comes_after(const FailureTraits& later, const FailureTraits& earlier) {
  return earlier.last < later.first &&
         (later.first_commit.empty() || later.first_commit != earlier.last_commit);
}

bool has_moved(const FailureTraits& a, const FailureTraits& b) {
  return a.test == b.test && is_same_file(a, b) && a.function == b.function &&
         a.expression == b.expression && a.expression_words >= long_expression &&
         (comes_after(a, b) || comes_after(b, a));
}

size_t count_common(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  size_t common = 0;
  for (auto in_a = a.begin(), in_b = b.begin(); in_a != a.end() && in_b != b.end();) {
    if (*in_a == *in_b)
      ++common, ++in_a, ++in_b;
    else if (*in_a < *in_b)
      ++in_a;
    else
      ++in_b;
  }
  return common;
}

uint64_t mixed(uint64_t number, uint64_t seed) {
  number = (number ^ (seed * 0x9E3779B97F4A7C15u)) * 0xBF58476D1CE4E5B9u;
  return number ^ (number >> 31);
}

uint64_t place_bucket(const FailureTraits& traits, std::string_view rest) {
  return hash_of(traits.file, hash_of(rest, static_cast<uint64_t>(traits.kind) + 1));
}

}  // namespace

FailureTraits traits_of(const FlakyFailure& failure) {
  FailureTraits traits;
  traits.kind = failure.failure.kind;
  traits.test = failure.test;
  traits.first = failure.first;
  traits.last = failure.last;
  traits.first_commit = failure.first_commit;
  traits.last_commit = failure.last_commit;
  read_place(traits, failure.failure);
  read_words(traits, failure.failure);
  return traits;
}

bool is_vague(const FailureTraits& traits) {
  return traits.file.empty() && traits.function.empty() && traits.expression.empty() &&
         traits.telling < telling_enough;
}

double common_words(const FailureTraits& a, const FailureTraits& b) {
  if (a.shingles.empty() && b.shingles.empty()) return 1;
  const size_t both = count_common(a.shingles, b.shingles);
  const size_t all = a.shingles.size() + b.shingles.size() - both;
  return static_cast<double>(both) / static_cast<double>(all);
}

bool have_one_cause(const FailureTraits& a, const FailureTraits& b) {
  if (a.kind != b.kind || is_vague(a) || is_vague(b)) return false;
  const double common = common_words(a, b);
  if (is_same_place(a, b)) return common >= 0.5;
  if (has_moved(a, b)) return common >= 0.8;
  if (std::min(a.telling, b.telling) < telling_enough) return false;
  return common >= (is_same_file(a, b) ? 0.6 : 0.8);
}

std::vector<uint64_t> buckets_of(const FailureTraits& traits) {
  std::vector<uint64_t> buckets;
  if (is_told_by_function(traits.kind) && !traits.function.empty())
    buckets.push_back(hash_of(traits.function, 1));
  if (!traits.file.empty()) {
    buckets.push_back(place_bucket(traits, std::to_string(traits.line)));
    buckets.push_back(place_bucket(traits, to_string(traits.test)));
  }
  if (traits.telling < telling_enough) return buckets;
  for (uint64_t number = 0; number < hashes_per_text; ++number) {
    uint64_t least = std::numeric_limits<uint64_t>::max();
    for (const uint64_t shingle : traits.shingles)
      least = std::min(least, mixed(shingle, number + 1));
    buckets.push_back(least);
  }
  sort_and_unite(buckets);
  return buckets;
}

}  // namespace unflake
