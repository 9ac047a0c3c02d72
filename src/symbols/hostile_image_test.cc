#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <random>

#include "support/code_fixture.h"
#include "symbols/project_code.h"
#include "util/files.h"

namespace unflake {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Everything that can be asked about a file, for the sanitizers to watch.
void ask_everything(const std::string& path) {
  const auto image = Image::open(path);
  if (!image) return;
  (*image)->has_debug_information();
  (*image)->why_no_debug_information();
  for (const Function& function : (*image)->functions()) {
    (*image)->code_at(function.start, function.size);
    (*image)->frames_at(function.start);
    (*image)->frames_at(function.start + function.size / 2);
  }
  (*image)->lines();
  for (const Import& import : (*image)->imports()) (*image)->code_at(import.entry, 8);
  skip_ranges(**image, ProjectCode({"/", {}, {}}));
}

class HostileImage : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!has_fixture(GetParam())) GTEST_SKIP() << "needs clang";
    sound = bytes_of(code_fixture(GetParam()));
  }

  void ask_about(const std::string& bytes) {
    const UniqueFd file(::memfd_create("broken", MFD_CLOEXEC));
    ASSERT_EQ(::write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ask_everything("/proc/self/fd/" + std::to_string(file.get()));
  }

  std::string sound;
};

TEST_P(HostileImage, May_be_truncated_anywhere) {
  for (size_t size = 0; size < sound.size(); size += 89) ask_about(sound.substr(0, size));
}

TEST_P(HostileImage, May_have_any_bytes_changed) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string broken = sound;
    for (int change = 0; change < 1 + round % 20; ++change)
      broken[random() % broken.size()] = static_cast<char>(random());
    ask_about(broken);
  }
}

TEST_P(HostileImage, May_have_absurd_numbers_anywhere) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    std::string broken = sound;
    const size_t at = random() % (broken.size() - 8);
    broken.replace(at, 8, 8, round % 2 == 0 ? '\xff' : '\x7f');
    ask_about(broken);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, HostileImage, testing::Values("gcc_tiny", "clang_tiny"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace unflake
