#include "search/detect/touched.h"

#include <algorithm>

namespace unflake {
namespace {

// A statement or a list of arguments may take so many lines; beyond that, what is between two lines
// of a function may be another one, as when one further up was inlined.
constexpr int longest_statement = 20;

bool is_same_file(const std::string& path, const std::string& named) {
  return path == named || (!named.empty() && path.ends_with("/" + named)) ||
         named.ends_with("/" + path);
}

// The lines ascend.
bool covers(const std::vector<int>& lines, int edited) {
  const auto after = std::ranges::lower_bound(lines, edited);
  if (after == lines.end()) return false;
  if (*after == edited) return true;
  return after != lines.begin() && *after - *std::prev(after) <= longest_statement;
}

class Touching {
 public:
  explicit Touching(const EditedCode& edited) : edited_(edited) {}

  void look_at(const FunctionId& function, const std::vector<int>& lines) {
    if (function.kind != FunctionKind::project || function.file.empty()) return;
    for (const std::string& file : edited_.new_files)
      if (is_same_file(file, function.file)) return add(function, file, {});
    for (const auto& [file, changed] : edited_.lines) {
      if (!is_same_file(file, function.file)) continue;
      std::vector<int> touched;
      for (const int line : changed)
        if (covers(lines, line)) touched.push_back(line);
      if (lines.empty() || !touched.empty()) return add(function, file, std::move(touched));
    }
  }

  std::vector<TouchedFunction> take() { return std::move(found_); }

 private:
  void add(const FunctionId& function, const std::string& file, std::vector<int> lines) {
    found_.push_back({function, file, std::move(lines)});
  }

  const EditedCode& edited_;
  std::vector<TouchedFunction> found_;
};

}  // namespace

std::vector<TouchedFunction> touched_functions(std::span<const TracedFunction> executed,
                                               const EditedCode& edited) {
  Touching touching(edited);
  for (const TracedFunction& function : executed)
    touching.look_at({function.kind, function.name, function.file}, function.lines);
  return touching.take();
}

std::vector<TouchedFunction> touched_functions(std::span<const FunctionId> executed,
                                               const EditedCode& edited) {
  Touching touching(edited);
  for (const FunctionId& function : executed) touching.look_at(function, {});
  return touching.take();
}

}  // namespace unflake
