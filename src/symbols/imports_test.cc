#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/code_fixture.h"
#include "symbols/elf_file.h"

namespace unflake {
namespace {

using testing::Contains;
using testing::IsEmpty;

std::set<std::string> names_of(const std::vector<Import>& imports) {
  std::set<std::string> names;
  for (const Import& import : imports) names.insert(import.name);
  return names;
}

std::set<std::string> dynamic_symbols(const std::string& fixture) {
  std::set<std::string> names;
  const auto file = ElfFile::open(code_fixture(fixture));
  EXPECT_TRUE(file);
  if (file)
    visit_symbols(**file, SHT_DYNSYM,
                  [&](const GElf_Sym&, const char* name) { names.insert(name); });
  return names;
}

class Imports : public testing::TestWithParam<const char*> {};

TEST_P(Imports, Are_the_functions_of_other_libraries_that_the_program_calls) {
  const auto imports = open_fixture(GetParam())->imports();
  const auto names = names_of(imports);
  EXPECT_THAT(names, Contains("pthread_testcancel"));
  EXPECT_THAT(names, Contains("_ZNSt6thread4joinEv"));
  const auto all = dynamic_symbols(GetParam());
  for (const std::string& name : names) EXPECT_THAT(all, Contains(name));
}

TEST_P(Imports, Are_entered_at_different_addresses_in_order) {
  const auto image = open_fixture(GetParam());
  const auto imports = image->imports();
  for (size_t i = 1; i < imports.size(); ++i) EXPECT_LT(imports[i - 1].entry, imports[i].entry);
  for (const Import& import : imports) EXPECT_FALSE(image->code_at(import.entry, 6).empty());
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Imports,
                         testing::Values("gcc_O0", "gcc_O2", "gcc_no_pie", "gcc_shared",
                                         "gcc_stripped", "gcc_no_debug"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Import, A_static_program_has_none_with_a_name) {
  EXPECT_THAT(open_fixture("gcc_static")->imports(), IsEmpty());
}

}  // namespace
}  // namespace unflake
