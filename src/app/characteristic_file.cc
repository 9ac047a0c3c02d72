#include "app/characteristic_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "util/text.h"

namespace unflake {
namespace {

constexpr int64_t functions_format = 1;
constexpr size_t largest_functions_file = 16 << 20;

class FunctionsReader {
 public:
  explicit FunctionsReader(std::string path) : path_(std::move(path)) {}

  Result<FunctionsFile> operator()(const toml::table& table) {
    const auto format = table["format"].value<int64_t>();
    if (!format || *format < 1)
      return usage_error("the file does not say which format it has", path_,
                         fmt::format("begin it with `format = {}`", functions_format));
    if (*format > functions_format)
      return usage_error(fmt::format("the file has format {}, this unflake knows up to {}", *format,
                                     functions_format),
                         path_, "use the newer unflake that wrote it");
    for (const auto& [key, node] : table)
      if (auto read = read_entry(std::string(key.str()), node); !read) return read.error();
    return std::move(file_);
  }

 private:
  Result<void> read_entry(const std::string& key, const toml::node& node) {
    if (key == "format") return {};
    if (key == "shipped") {
      const auto shipped = node.value_exact<bool>();
      if (!shipped) return wrong(node, "'shipped' must be true or false");
      file_.with_shipped = *shipped;
      return {};
    }
    if (const toml::table* cause = node.as_table()) return read_cause(key, *cause);
    return wrong(node, fmt::format("'{}' is no table of functions", printable(key)));
  }

  Result<void> read_cause(const std::string& cause, const toml::table& table) {
    for (const auto& [key, node] : table) {
      const auto kind = function_kind_from(key.str());
      if (!kind)
        return wrong(node, fmt::format("there is no kind of functions '{}'",
                                       printable(std::string(key.str()))));
      const toml::array* names = node.as_array();
      if (names == nullptr) return wrong(node, "the functions of a kind are a list");
      for (const toml::node& name : *names)
        if (auto read = read_function(cause, *kind, name); !read) return read;
    }
    return {};
  }

  Result<void> read_function(const std::string& cause, FunctionKind kind, const toml::node& node) {
    const toml::table* described = node.as_table();
    const auto name =
        described ? (*described)["name"].value<std::string>() : node.value<std::string>();
    if (!name || name->empty()) return wrong(node, "a function is a name, or a table with one");
    const auto evidence = described ? (*described)["evidence"].value<std::string>() : std::nullopt;
    file_.functions.push_back({cause, kind, *name, evidence.value_or("")});
    return {};
  }

  Error wrong(const toml::node& node, std::string what) const {
    return usage_error(std::move(what), fmt::format("{}, line {}", path_, node.source().begin.line),
                       "a root cause is a table with the lists call, library and project");
  }

  std::string path_;
  FunctionsFile file_;
};

Result<FunctionsFile> read_functions(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return FunctionsFile{};
  std::ifstream file(path, std::ios::binary);
  std::string text(largest_functions_file + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (file.bad() || (text.empty() && !file.eof()))
    return internal_error("the file cannot be read", path, "make it readable");
  if (text.size() > largest_functions_file)
    return usage_error("the file is too large for a set of functions", path, "");
  return parse_functions(text, path);
}

}  // namespace

Result<FunctionsFile> parse_functions(std::string_view text, const std::string& path) {
  try {
    return FunctionsReader(path)(toml::parse(text, path));
  } catch (const toml::parse_error& error) {
    return usage_error(
        fmt::format("this is not TOML: {}", printable(std::string(error.description()))),
        fmt::format("{}, line {}", path, error.source().begin.line), "");
  }
}

const CharacteristicSet& shipped_functions() {
  static const CharacteristicSet shipped = [] {
    auto parsed = parse_functions(shipped_functions_text(), "data/characteristic-functions.toml");
    if (!parsed) throw std::logic_error(to_string(parsed.error()));
    return std::move(parsed->functions);
  }();
  return shipped;
}

std::string own_functions_path(const Project& project) {
  return project.path("characteristic-functions.toml");
}

std::string learned_functions_path(const Project& project) {
  return project.path("learned-functions.toml");
}

Result<CharacteristicSet> load_functions(const Project& project) {
  CharacteristicSet all;
  bool with_shipped = true;
  for (const std::string& path : {own_functions_path(project), learned_functions_path(project)}) {
    auto file = read_functions(path);
    if (!file) return file.error();
    with_shipped = with_shipped && file->with_shipped;
    all.insert(all.end(), file->functions.begin(), file->functions.end());
  }
  if (with_shipped) all.insert(all.begin(), shipped_functions().begin(), shipped_functions().end());
  return all;
}

namespace {

// Any text as TOML's basic string.
std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::toml_formatter{toml::value<std::string>(printable(text))};
  return out.str();
}

}  // namespace

std::string functions_text(const CharacteristicSet& set, const std::vector<std::string>& heading) {
  std::map<std::string, std::map<std::string_view, std::vector<const CharacteristicFunction*>>> all;
  for (const CharacteristicFunction& one : set) all[one.cause][to_string(one.kind)].push_back(&one);
  std::string text;
  for (const std::string& line : heading) text += "# " + printable(line) + "\n";
  text += fmt::format("format = {}\n", functions_format);
  for (const auto& [cause, kinds] : all) {
    text += fmt::format("\n[{}]\n", quoted(cause));
    for (const auto& [kind, functions] : kinds) {
      text += fmt::format("{} = [\n", kind);
      for (const CharacteristicFunction* one : functions)
        text += one->evidence.empty() ? fmt::format("  {},\n", quoted(one->name))
                                      : fmt::format("  {{ name = {}, evidence = {} }},\n",
                                                    quoted(one->name), quoted(one->evidence));
      text += "]\n";
    }
  }
  return text;
}

}  // namespace unflake
