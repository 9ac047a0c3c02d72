#include "model/outcome.h"

#include <gtest/gtest.h>

#include <random>

namespace unflake {
namespace {

struct Equal {
  const char* one;
  const char* other;
};

class EqualTexts : public testing::TestWithParam<Equal> {};

TEST_P(EqualTexts, Differ_only_in_what_changes_from_run_to_run) {
  EXPECT_EQ(normalise(GetParam().one), normalise(GetParam().other));
}

INSTANTIATE_TEST_SUITE_P(
    Normalise, EqualTexts,
    testing::Values(
        Equal{"got 5 want 7", "got 6 want 7"}, Equal{"at 0x7ffe12", "at 0xDEADBEEF"},
        Equal{"took 12ms", "took 1.3s"}, Equal{"took 12 ms", "took 1.3 seconds"},
        Equal{"ratio 0.5", "ratio -1.5e-9"}, Equal{"ratio 1", "ratio nan"},
        Equal{"ratio -inf", "ratio 1e+300"}, Equal{"1 byte left", "200 bytes left"},
        Equal{"1 entry", "2 entries"}, Equal{"1 match", "3 matches"}, Equal{"pid 1", "pid 123456"},
        Equal{"[1234] gone", "[99] gone"}, Equal{"127.0.0.1:8080 refused", "10.0.0.12:443 refused"},
        Equal{"localhost:40001", "localhost:5"},
        Equal{"at 2024-01-02T03:04:05.678Z", "at 2025-11-15T10:00:00Z"},
        Equal{"Sun Nov 15 10:36:04 2026: x", "Mon Jan 1 00:00:00 2024: x"},
        Equal{"id 123e4567-e89b-12d3-a456-426614174000", "id ffffffff-aaaa-bbbb-cccc-dddddddddddd"},
        Equal{"commit 3f2a9bc01d", "commit deadbee7f00d"}, Equal{"worker-12 died", "worker-3 died"},
        Equal{"thread_7 died", "thread_12 died"}, Equal{"task #3", "task #14"},
        Equal{"open /tmp/abc/x.sock: no", "open /tmp/QzR3/deep/er.sock: no"},
        Equal{"open /dev/shm/a", "open /var/tmp/b"},
        Equal{"open /memfd:ring-1", "open /memfd:pool"},
        Equal{"in /proc/12/maps", "in /proc/4711/maps"},
        Equal{"/home/ann/proj/src/a.cc broke", "/builds/7/x/a.cc broke"},
        Equal{"got {1, 2, 3}", "got {4}"}, Equal{"got [1 2]", "got [1 2 3 4]"},
        Equal{"\x1b[31mred\x1b[0m alert", "red alert"}, Equal{"two  words \n", "two words"},
        Equal{"p is (nil)", "p is 0x7f00"}));

class DifferentTexts : public testing::TestWithParam<Equal> {};

TEST_P(DifferentTexts, Differ_in_a_word) {
  EXPECT_NE(normalise(GetParam().one), normalise(GetParam().other));
}

INSTANTIATE_TEST_SUITE_P(
    Normalise, DifferentTexts,
    testing::Values(Equal{"timeout", "connection refused"}, Equal{"int32_t", "int64_t"},
                    Equal{"utf8 text", "utf16 text"}, Equal{"sha256", "sha512"},
                    Equal{"protocol v1", "protocol v2"}, Equal{"Foo2", "Foo3"},
                    Equal{"GET /api/users failed", "GET /api/orders failed"},
                    Equal{"5 errors", "5 warnings"}, Equal{"read failed", "write failed"},
                    Equal{"/home/ann/a.cc", "/home/ann/b.cc"}));

TEST(Normalise, Keeps_words_readable) {
  EXPECT_EQ(normalise("worker-12 waited 1.5 s for 3 replies from 10.0.0.1:80"),
            "worker-<n> waited <n> for <n> reply from <n>");
  EXPECT_EQ(normalise("http://host:8080/items/7"), "http://host:<n>/items/<n>");
}

TEST(Normalise, Is_stable_when_applied_again) {
  for (const char* text : {"a 1 b", "open /tmp/x now", "worker-7", "1, 2, 3 things", "x_7_y"})
    EXPECT_EQ(normalise(normalise(text)), normalise(text)) << text;
}

// What a message holds that no two runs share, drawn at random.
class Noise {
 public:
  explicit Noise(unsigned seed) : random_(seed) {}

  std::string fill(std::string_view shape) {
    std::string text;
    for (const char c : shape) text += draw(c);
    return text;
  }

 private:
  size_t below(size_t bound) { return random_() % bound; }
  std::string digits(size_t most) {
    std::string text(1, static_cast<char>('1' + below(9)));
    for (size_t i = below(most); i > 0; --i) text += static_cast<char>('0' + below(10));
    return text;
  }
  std::string letters(size_t count) {
    std::string text;
    while (count-- > 0) text += static_cast<char>((below(2) ? 'a' : 'A') + below(26));
    return text;
  }
  std::string hexadecimal(size_t count) {
    std::string text;
    while (count-- > 0) text += "0123456789abcdef"[below(16)];
    return text;
  }
  std::string duration() {
    constexpr const char* units[] = {"ns", "us", "ms", "s", " ms", " s", " seconds", " min"};
    return digits(4) + (below(2) ? "." + digits(3) : "") + units[below(std::size(units))];
  }
  std::string draw(char kind) {
    switch (kind) {
      case '@':
        return "0x" + hexadecimal(1 + below(16));
      case '#':
        return below(4) ? digits(9) : "-" + digits(3) + "." + digits(5);
      case '$':
        return duration();
      case '%':
        return "/tmp/" + letters(6) + (below(2) ? "/" + letters(3) + "." + letters(6) : "");
      case '&':
        return hexadecimal(8) + "-" + hexadecimal(4) + "-" + hexadecimal(4) + "-" + hexadecimal(4) +
               "-" + hexadecimal(12);
      case '*':
        return digits(2) + "." + digits(2) + "." + digits(2) + "." + digits(2) + ":" + digits(4);
      default:
        return std::string(1, kind);
    }
  }

  std::mt19937 random_;
};

TEST(Normalise, Gives_one_text_for_all_runs_that_differ_in_noise_only) {
  Noise noise(1);
  for (const char* shape :
       {"connection to * lost after $ (pid #)", "object @ freed by thread # at @",
        "cannot open % for worker-#", "session & expired after $", "[#] retry # of #: %",
        "expected # item, got # item in %", "queue holds #, #, # at @"}) {
    const std::string first = normalise(noise.fill(shape));
    for (int i = 0; i < 300; ++i) {
      const std::string text = noise.fill(shape);
      ASSERT_EQ(normalise(text), first) << text;
    }
  }
}

}  // namespace
}  // namespace unflake
