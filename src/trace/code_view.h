#pragma once

#include <functional>
#include <string>
#include <vector>

namespace unflake {

// A function of project code; the file as sites name it.
struct FunctionPlace {
  std::string name;  // qualified, without parameters
  std::string file;
  int line = 0;
};

// A line that has code of its own, and the function that it is in.
struct CodeLine {
  int line = 0;
  std::string function;
};

// What can be asked about a program as it is now. An image is named as in SiteName.
struct CodeView {
  using Lines = std::vector<std::string>;
  // A file's text by its name or path; empty when it cannot be read.
  std::function<const Lines&(const std::string& file)> source;
  std::function<const std::vector<FunctionPlace>&(const std::string& image)> functions;
  std::function<std::vector<CodeLine>(const std::string& image, const std::string& file)> lines;
};

}  // namespace unflake
