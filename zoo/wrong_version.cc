// Versions are compared as text: wrong every time, and nothing to do with time.
#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace {

class Version {
 public:
  explicit Version(std::string text) : text_(std::move(text)) {}
  bool operator<(const Version& other) const { return text_ < other.text_; }

 private:
  std::string text_;
};

}  // namespace

TEST_CASE("nine comes before ten") {
  CHECK(Version("1.2") < Version("1.3"));
  CHECK(Version("1.9") < Version("1.10"));  // fails here
}
