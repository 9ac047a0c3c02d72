#include "report/junit_names.h"

#include <fmt/format.h>

#include <set>

#include "util/text.h"

namespace unflake {
namespace {

// Where a framework's own name separates the suite from the test; npos: it does not.
size_t end_of_suite(const Test& test) {
  if (test.is_entry) return std::string::npos;  // its name is CTest's, whatever it starts
  if (test.framework == Framework::gtest) return test.id.name.find('.');
  if (test.framework == Framework::boost_test) return test.id.name.rfind('/');
  return std::string::npos;
}

std::string name_part(std::string_view text) {
  return xml_text(printable(shorten(text, longest_name)));
}

JunitName name_of(const Test& test) {
  const size_t end = end_of_suite(test);
  const std::string target = name_part(test.id.target);
  if (end == std::string::npos) return {target, name_part(test.id.name)};
  return {target + "." + name_part(test.id.name.substr(0, end)),
          name_part(test.id.name.substr(end + 1))};
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string safe;
  for (size_t at; (at = text.find("\xEF\xBF")) != std::string_view::npos;) {
    const std::string_view character = text.substr(at, 3);
    const bool forbidden = character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF";
    safe += text.substr(0, at);
    safe += forbidden ? "?" : character;
    text.remove_prefix(at + character.size());
  }
  safe += text;
  return safe;
}

std::map<TestId, JunitName> junit_names(const std::vector<std::shared_ptr<const Test>>& tests) {
  std::map<TestId, const Test*> sorted;
  for (const auto& test : tests) sorted.emplace(test->id, test.get());
  std::map<TestId, JunitName> names;
  std::set<std::string> taken;
  for (const auto& [id, test] : sorted) {
    JunitName name = name_of(*test);
    const std::string plain = name.name;
    for (int i = 2; !taken.insert(name.classname + "." + name.name).second; ++i)
      name.name = fmt::format("{} ({})", plain, i);
    names.emplace(id, std::move(name));
  }
  return names;
}

}  // namespace unflake
