#pragma once

#include <string>
#include <vector>

namespace unflake {

// Columns as wide as what is in them, two blanks apart and indented by two. Cells come from tests:
// they are made safe for a terminal.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> cells);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace unflake
