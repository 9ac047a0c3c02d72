#include "suite/adapter.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>

#include "suite/program.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {

const Adapter& adapter_for(Framework framework) {
  switch (framework) {
    case Framework::gtest:
      return gtest_adapter();
    case Framework::catch2:
      return catch2_adapter();
    case Framework::doctest:
      return doctest_adapter();
    case Framework::boost_test:
      return boost_test_adapter();
    case Framework::ctest:
      return ctest_adapter();
    case Framework::command:
      break;
  }
  return command_adapter();
}

Result<Command> Adapter::in_order(const std::vector<const Test*>& order,
                                  const std::vector<const Test*>&) const {
  return cannot_share(*order.front(), "each of its tests is a command of its own");
}

Result<Adapter::Arranged> Adapter::arrange(const std::vector<const Test*>& tests,
                                           const std::vector<const Test*>&,
                                           const Arrangement&) const {
  return cannot_share(*tests.front(), "each of its tests is a command of its own");
}

namespace {

std::vector<const Test*> pointers(const Tests& tests) {
  std::vector<const Test*> all;
  for (const auto& test : tests) all.push_back(test.get());
  return all;
}

Result<void> check_company(const Test& test, const Test& first) {
  if (test.id.target != first.id.target || test.framework != first.framework)
    return cannot_share(test, fmt::format("it is of another program than {}", to_string(first.id)));
  if (test.is_entry) return cannot_share(test, "CTest decides how it is run");
  if (!test.obstacle.empty()) return cannot_share(test, test.obstacle);
  if (test.disabled && test.disabled_reason.starts_with(inseparable))
    return cannot_share(test, test.disabled_reason);
  return {};
}

}  // namespace

namespace {

Result<void> check_companions(const Tests& order) {
  if (order.empty()) return internal_error("there is no test to run");
  std::set<TestId> seen;
  for (const auto& test : order) {
    if (auto fits = check_company(*test, *order.front()); !fits) return fits.error();
    if (!seen.insert(test->id).second)
      return cannot_share(*test, "no framework runs a test twice in one process");
  }
  return {};
}

// The kernel takes no longer word.
Result<void> check_length(const Command& command, const Test& test) {
  constexpr size_t longest_word = 120 << 10;
  for (const std::string& word : command.argv)
    if (word.size() > longest_word)
      return cannot_share(test, "the names of all of them are too long for a command line");
  return {};
}

Tests in_order_of(const std::vector<const Test*>& order, const Tests& tests) {
  Tests sorted;
  for (const Test* test : order)
    sorted.push_back(*std::ranges::find(tests, test, &std::shared_ptr<const Test>::get));
  return sorted;
}

}  // namespace

Result<TestOrder> in_one_process(const Tests& order, const Tests& listed) {
  if (order.size() == 1) return TestOrder(order.front());
  if (auto fits = check_companions(order); !fits) return fits.error();
  auto command = adapter_for(order.front()->framework).in_order(pointers(order), pointers(listed));
  if (!command) return command.error();
  if (auto fits = check_length(*command, *order.front()); !fits) return fits.error();
  return TestOrder(order, std::move(*command));
}

Result<TestOrder> arranged_in_one_process(const Tests& tests, const Tests& listed,
                                          const Arrangement& how) {
  if (tests.size() == 1) return TestOrder(tests.front());
  if (auto fits = check_companions(tests); !fits) return fits.error();
  auto arranged =
      adapter_for(tests.front()->framework).arrange(pointers(tests), pointers(listed), how);
  if (!arranged) return arranged.error();
  if (auto fits = check_length(arranged->command, *tests.front()); !fits) return fits.error();
  TestOrder order(in_order_of(arranged->tests, tests), std::move(arranged->command));
  order.is_open = arranged->is_open;
  order.is_expected = arranged->is_expected;
  return order;
}

namespace {

// A shell's words for one test: marks before and after, and what its own process needs.
std::string sequence_part(const Test& test, size_t number) {
  std::string words = "exec env";
  for (const EnvChange& change : test.command.env)
    words += change.value ? " " + shell_quote(change.name + "=" + *change.value)
                          : " -u " + shell_quote(change.name);
  for (const std::string& word : test.command.argv) words += " " + shell_quote(word);
  if (!test.command.cwd.empty()) words = "cd " + shell_quote(test.command.cwd) + " && " + words;
  return fmt::format("printf '{0}begin {1}::\\n'\n( {2} )\nprintf '{0}end {1} %d::\\n' $?\n",
                     sequence_mark, number, words);
}

}  // namespace

namespace {

// The deepest one that holds the working folders of all.
std::string common_folder(const Tests& tests) {
  std::filesystem::path common = tests.front()->command.cwd;
  for (const auto& test : tests) {
    const std::filesystem::path folder = test->command.cwd;
    const auto [end, rest] =
        std::mismatch(common.begin(), common.end(), folder.begin(), folder.end());
    std::filesystem::path shared;
    for (auto part = common.begin(); part != end; ++part) shared /= *part;
    common = shared;
  }
  return common.string();
}

}  // namespace

Result<TestOrder> in_sequence(const Tests& order) {
  if (order.empty()) return internal_error("there is no test to run");
  if (order.size() == 1) return TestOrder(order.front());
  std::string script;
  for (size_t i = 0; i < order.size(); ++i) {
    if (!order[i]->obstacle.empty()) return cannot_share(*order[i], order[i]->obstacle);
    if (order[i]->command.argv.empty()) return cannot_share(*order[i], "it has no command");
    script += sequence_part(*order[i], i);
  }
  TestOrder sequence(order,
                     Command{{"/bin/sh", "-c", std::move(script)}, {}, common_folder(order)});
  sequence.has_processes = true;
  if (auto fits = check_length(*sequence.command, *order.front()); !fits) return fits.error();
  return sequence;
}

namespace {

namespace fs = std::filesystem;

// What gives a framework away in a linked file, stripped or not. `=` means the end of the string
// on that side; it also keeps this table, which is part of unflake's own read-only data, from
// being taken for evidence.
struct Evidence {
  Framework framework;
  std::array<std::string_view, 3> libraries;  // beginnings of DT_NEEDED names
  std::array<std::string_view, 5> symbols;    // beginnings of dynamic symbol names
  std::string_view type;                      // a class of the framework, as RTTI spells it
  std::string_view words;                     // said by its command line; for builds without RTTI
};

// GoogleTest comes last: suites of the other frameworks link it for GoogleMock, hardly ever the
// other way round.
constexpr std::array<Evidence, 4> known{{
    {Framework::doctest,
     {},
     {"=_ZN7doctest6detail7regTestE", "=_ZN7doctest7ContextC", "=_ZN7doctest6detail8TestCaseC"},
     "=N7doctest9IReporterE=",
     "=listing all test case names"},
    {Framework::catch2,
     {"=libCatch2"},
     {"=_ZN5Catch7SessionC", "=_ZN5Catch7AutoReg", "=_ZTIN5Catch12ITestInvokerE"},
     "=N5Catch12ITestInvokerE=",
     "=A Catch2 test executable"},
    {Framework::boost_test,
     {"=libboost_unit_test_framework"},
     {"=_ZN5boost9unit_test15unit_test_log_t", "=_ZN5boost9unit_test9framework"},
     "=N5boost9unit_test9test_unitE=",
     "=BOOST_TEST_RUN_FILTERS="},
    {Framework::gtest,
     {"=libgtest", "=libgmock"},
     {"=_ZTIN7testing4TestE", "=_ZN7testing8UnitTest11GetInstanceE", "=_ZN7testing14InitGoogleTest",
      "=_ZN7testing4TestC", "=_ZN7testing8internal23MakeAndRegisterTestInfo"},
     "=N7testing4TestE=",
     "=This program contains tests written using Google Test"},
}};

// Whether the NUL-separated strings of `data` hold one that `pattern` describes.
bool holds(std::string_view data, std::string_view pattern) {
  if (pattern.empty()) return false;
  std::string wanted(pattern);
  if (wanted.back() == '=') wanted.back() = '\0';
  if (wanted.front() == '=') wanted.front() = '\0';
  // Patterns begin with NUL, which is everywhere in such data and makes string_view::find() slow.
  return memmem(data.data(), data.size(), wanted.data(), wanted.size()) != nullptr;
}

template <size_t count>
bool holds_any(std::string_view data, const std::array<std::string_view, count>& patterns) {
  for (const std::string_view pattern : patterns)
    if (holds(data, pattern)) return true;
  return false;
}

struct ElfCloser {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, ElfCloser>;

struct Strings {
  std::string needed;                       // NUL before and after each name
  std::string_view dynamic_symbols;         // .dynstr
  std::vector<std::string_view> constants;  // .rodata
};

std::string_view bytes_of(Elf_Scn* section) {
  const Elf_Data* data = elf_rawdata(section, nullptr);
  if (!data || !data->d_buf) return {};
  return {static_cast<const char*>(data->d_buf), data->d_size};
}

std::string needed_libraries(Elf* elf, Elf_Scn* section, const GElf_Shdr& header) {
  std::string names(1, '\0');
  Elf_Data* data = elf_getdata(section, nullptr);
  const size_t count = data && header.sh_entsize ? header.sh_size / header.sh_entsize : 0;
  for (size_t i = 0; i < count && i < 100000; ++i) {
    GElf_Dyn entry;
    if (!gelf_getdyn(data, static_cast<int>(i), &entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag != DT_NEEDED) continue;
    if (const char* name = elf_strptr(elf, header.sh_link, entry.d_un.d_val))
      names.append(name).push_back('\0');
  }
  return names;
}

Strings read_strings(Elf* elf) {
  Strings strings;
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return strings;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section));) {
    GElf_Shdr header;
    if (!gelf_getshdr(section, &header)) continue;
    const char* found = elf_strptr(elf, names, header.sh_name);
    const std::string_view name = found ? found : "";
    if (header.sh_type == SHT_DYNAMIC) strings.needed = needed_libraries(elf, section, header);
    if (header.sh_type == SHT_STRTAB && name == ".dynstr")
      strings.dynamic_symbols = bytes_of(section);
    if (header.sh_type == SHT_PROGBITS && name.starts_with(".rodata"))
      strings.constants.push_back(bytes_of(section));
  }
  return strings;
}

bool any_constant(const Strings& strings, std::string_view pattern) {
  for (const std::string_view data : strings.constants)
    if (holds(data, pattern)) return true;
  return false;
}

// What is linked or instantiated counts more than words, which a program may contain for other
// reasons (a test runner's user interface, for one).
std::optional<Framework> framework_in(const Strings& strings) {
  for (const Evidence& evidence : known)
    if (holds_any(strings.needed, evidence.libraries) ||
        holds_any(strings.dynamic_symbols, evidence.symbols) ||
        any_constant(strings, evidence.type))
      return evidence.framework;
  for (const Evidence& evidence : known)
    if (any_constant(strings, evidence.words)) return evidence.framework;
  return std::nullopt;
}

std::string ways_out(const std::string& path) {
  return fmt::format(
      "run it as a plain command with `-- {}`, or name its framework with --framework",
      shell_quote(printable(path)));
}

std::vector<std::string> names_in(const fs::path& folder) {
  constexpr size_t enough = 10000;
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder.empty() ? "." : folder, error);
  for (const fs::directory_iterator end; !error && entry != end && names.size() < enough;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  return names;
}

Error missing(const fs::path& path) {
  const fs::path folder = path.parent_path();
  std::vector<std::string> near;
  for (const std::string& name : nearest(path.filename().string(), names_in(folder), 3))
    near.push_back(printable((folder / name).string()));
  return usage_error(
      "there is no file " + printable(path.string()), "",
      near.empty() ? "check the path; is it built?" : "did you mean " + join(near, " or ") + "?");
}

Result<Framework> recognise_folder(const std::string& path) {
  std::error_code ignored;
  if (fs::exists(fs::path(path) / "CTestTestfile.cmake", ignored)) return Framework::ctest;
  return usage_error(printable(path) + " is a folder without CTestTestfile.cmake", "",
                     "give a test executable, or the build folder of a CMake project that calls "
                     "enable_testing()");
}

Result<Framework> recognise_elf(const std::string& path, int fd) {
  elf_version(EV_CURRENT);
  const ElfHandle elf(elf_begin(fd, ELF_C_READ_MMAP, nullptr));
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF)
    return usage_error(printable(path) + " is not an ELF executable", "", ways_out(path));
  if (const auto framework = framework_in(read_strings(elf.get()))) return *framework;
  return usage_error("no known test framework in " + printable(path), "", ways_out(path));
}

}  // namespace

Result<Framework> recognise(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return missing(path);
  if (status.type() == fs::file_type::directory) return recognise_folder(path);
  if (status.type() == fs::file_type::none)
    return usage_error("cannot read " + printable(path) + ": " + error.message(), "",
                       "check its permissions");
  if (status.type() != fs::file_type::regular)
    return usage_error(printable(path) + " is not a file that can be run", "",
                       "give a test executable or a CTest build folder");
  if (access(path.c_str(), X_OK) != 0)
    return usage_error(printable(path) + " is not executable", "", "check its permissions");
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return usage_error("cannot read " + printable(path), "", "check its permissions");
  return recognise_elf(path, fd.get());
}

}  // namespace unflake
