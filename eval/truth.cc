#include "truth.h"

#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>

namespace unflake::eval {
namespace {

namespace fs = std::filesystem;

Truth truth_in(const std::string& name, const toml::table& table) {
  const auto text = [&](const char* key) { return table[key].value_or(std::string()); };
  Truth truth;
  truth.program = name;
  truth.framework = text("framework");
  truth.test = text("test");
  truth.category = text("category");
  truth.failure = text("failure");
  truth.critical = text("critical");
  truth.barrier = text("barrier");
  if (const toml::table* other = table["other_way"].as_table()) {
    const auto word = [&](const char* key) { return (*other)[key].value_or(std::string()); };
    truth.other_way = {word("category"), word("critical"), word("barrier")};
  }
  truth.expect = text("expect");
  truth.lateness_can_cause_it =
      table["lateness_can_cause_it"].value_or(truth.expect == "reproduced");
  truth.delays_needed = table["delays_needed"].value_or(0);
  truth.plain_failure_rate = table["plain_failure_rate"].value_or(0.0);
  truth.plain_runs = table["plain_runs"].value_or(0);
  return truth;
}

Result<std::vector<std::string>> names_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem());
  if (error) return internal_error("cannot list the truths: " + error.message(), folder);
  std::ranges::sort(names);
  return names;
}

}  // namespace

Result<std::vector<std::string>> truth_names(const std::string& folder,
                                             const std::vector<std::string>& only) {
  auto names = names_in(folder);
  if (!names || only.empty()) return names;
  for (const std::string& name : only)
    if (!std::ranges::binary_search(*names, name))
      return usage_error("there is no program '" + name + "'", folder, "give names without .cc");
  std::erase_if(
      *names, [&](const std::string& name) { return std::ranges::find(only, name) == only.end(); });
  return names;
}

std::string Truth::failure_word() const {
  std::string word = failure;
  if (word.find(':') == std::string::npos) std::ranges::replace(word, ' ', '_');
  return word;
}

Result<std::vector<Truth>> read_truths(const std::string& zoo,
                                       const std::vector<std::string>& only) {
  std::vector<Truth> truths;
  for (const char* family : {"", "interleavings", "layers", "unsteady"}) {
    const std::string folder = *family ? zoo + "/" + family : zoo;
    const auto names = names_in(folder);
    if (!names) return names.error();
    for (const std::string& name : *names) {
      if (!only.empty() && std::ranges::find(only, name) == only.end()) continue;
      const std::string file = folder + "/" + name + ".toml";
      try {
        truths.push_back(truth_in(name, toml::parse_file(file)));
      } catch (const toml::parse_error& error) {
        return internal_error(std::string(error.description()), file);
      }
      truths.back().family = family;
    }
  }
  for (const std::string& name : only)
    if (std::ranges::find(truths, name, &Truth::program) == truths.end())
      return usage_error("there is no program '" + name + "'", zoo, "give names without .cc");
  return truths;
}

TestWords test_words(const std::string& framework, const std::string& executable,
                     const std::string& test) {
  if (framework == "plain") return {{}, {executable}};
  return {{executable, test}, {}};
}

}  // namespace unflake::eval
