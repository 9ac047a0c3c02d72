#pragma once

#include <string>

#include "util/result.h"

namespace unflake::eval {

// Where and when something was measured.
struct Surroundings {
  std::string date, machine, kernel, compiler, commit;
  double load_before = 0, load_after = 0;
  double minutes = 0;
};

// The clock runs from the beginning until the end is noted, and goes on from what was measured
// before.
class Watch {
 public:
  explicit Watch(const std::string& source, const Surroundings& before = {});
  Surroundings end();

 private:
  Surroundings surroundings_;
  double began_;
};

// "Measured on ... at commit ...: 2 cores of ..., load average ...; 8 minutes."
std::string to_string(const Surroundings& surroundings);

std::string contents(const std::string& file);
Result<void> write_file(const std::string& file, const std::string& text);

}  // namespace unflake::eval
