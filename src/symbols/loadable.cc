#include "symbols/loadable.h"

#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>

#include "symbols/elf_file.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

// The path of the loader that starts the program; empty: none does.
std::string interpreter_of(Elf* elf) {
  size_t count = 0, size = 0;
  const char* file = ::elf_rawfile(elf, &size);
  if (file == nullptr || ::elf_getphdrnum(elf, &count) != 0) return "";
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (::gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) continue;
    if (header.p_type != PT_INTERP || header.p_offset >= size) continue;
    const size_t longest = std::min<size_t>(header.p_filesz, size - header.p_offset);
    return {file + header.p_offset, ::strnlen(file + header.p_offset, longest)};
  }
  return "";
}

constexpr std::array<std::string_view, 4> starts_of_sanitizers{"__asan_init", "__tsan_init",
                                                               "__msan_init", "__hwasan_init"};

bool names_a_sanitizer(Elf* elf, Elf_Scn* section, const GElf_Shdr& header) {
  Elf_Data* data = ::elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return false;
  const auto count = static_cast<int>(header.sh_size / header.sh_entsize);
  for (int i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (::gelf_getsym(data, i, &symbol) == nullptr) return false;
    const char* name = ::elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name != nullptr &&
        std::ranges::find(starts_of_sanitizers, name) != starts_of_sanitizers.end())
      return true;
  }
  return false;
}

struct OpenElf {
  UniqueFd file;
  ElfHandle elf;  // none: it is not an ELF file, or cannot be read

  explicit OpenElf(const std::string& path) : file(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    ::elf_version(EV_CURRENT);
    if (file) elf.reset(::elf_begin(file.get(), ELF_C_READ_MMAP, nullptr));
    if (elf && ::elf_kind(elf.get()) != ELF_K_ELF) elf.reset();
  }
};

Error refusal(const std::string& path, const std::string& why, const std::string& next) {
  return usage_error("the agent cannot be loaded into this program: " + why, path, next);
}

}  // namespace

Result<void> check_loadable(const std::string& path) {
  const OpenElf opened(path);
  struct stat status {};
  if (!opened.file || ::fstat(opened.file.get(), &status) != 0)
    return refusal(path, "it cannot be read", "make the file readable");
  if ((status.st_mode & (S_ISUID | S_ISGID)) != 0)
    return refusal(path, "it is setuid or setgid, and the loader then preloads nothing",
                   "test a copy without these bits");
  Elf* elf = opened.elf.get();
  GElf_Ehdr header;
  if (elf == nullptr || ::gelf_getehdr(elf, &header) == nullptr) return {};
  if (header.e_machine != EM_X86_64 || ::gelf_getclass(elf) != ELFCLASS64)
    return refusal(path, "it is not made for 64-bit x86", "build it for x86-64");
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
    return refusal(path, "it is not an executable", "name the program that contains the tests");
  if (interpreter_of(elf).empty())
    return refusal(path, "it is linked statically, and there is no loader that could preload it",
                   "link it dynamically: without -static");
  return {};
}

bool has_sanitizer(const std::string& path) {
  const OpenElf opened(path);
  Elf* elf = opened.elf.get();
  for (Elf_Scn* section = nullptr; elf && (section = ::elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (::gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNSYM) continue;
    if (names_a_sanitizer(elf, section, header)) return true;
  }
  return false;
}

bool has_glibc_loader(const std::string& path) {
  const OpenElf opened(path);
  return opened.elf != nullptr &&
         interpreter_of(opened.elf.get()).ends_with("/ld-linux-x86-64.so.2");
}

namespace {

namespace fs = std::filesystem;

constexpr size_t most_libraries = 512;
constexpr const char* system_folders[] = {"/lib/x86_64-linux-gnu",
                                          "/usr/lib/x86_64-linux-gnu",
                                          "/lib64",
                                          "/usr/lib64",
                                          "/usr/local/lib",
                                          "/lib",
                                          "/usr/lib"};

struct Wants {
  std::vector<std::string> names;
  std::vector<std::string> folders;
};

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> folders;
  while (!path.empty()) {
    const size_t end = std::min(path.find(':'), path.size());
    if (end > 0) folders.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return folders;
}

std::string with_origin(std::string folder, const std::string& origin) {
  for (const std::string_view word : {"$ORIGIN", "${ORIGIN}"})
    if (const size_t at = folder.find(word); at != std::string::npos)
      folder.replace(at, word.size(), origin);
  return folder;
}

void read_entry(Elf* elf, const GElf_Shdr& section, const GElf_Dyn& entry,
                const std::string& origin, Wants& wants) {
  const bool is_path = entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH;
  if (entry.d_tag != DT_NEEDED && !is_path) return;
  const char* text = ::elf_strptr(elf, section.sh_link, entry.d_un.d_val);
  if (text == nullptr) return;
  if (!is_path) {
    wants.names.emplace_back(text);
    return;
  }
  for (std::string& folder : split_path(text))
    wants.folders.push_back(with_origin(std::move(folder), origin));
}

Wants read_wants(const std::string& path) {
  Wants wants;
  const auto file = ElfFile::open(path);
  if (!file) return wants;
  Elf* elf = (*file)->elf();
  const std::string origin = fs::path(path).parent_path().string();
  for (Elf_Scn* scn = nullptr; (scn = ::elf_nextscn(elf, scn)) != nullptr;) {
    GElf_Shdr section;
    if (::gelf_getshdr(scn, &section) == nullptr || section.sh_type != SHT_DYNAMIC) continue;
    Elf_Data* data = ::elf_getdata(scn, nullptr);
    GElf_Dyn entry;
    for (int i = 0; data != nullptr && ::gelf_getdyn(data, i, &entry) != nullptr; ++i)
      read_entry(elf, section, entry, origin, wants);
  }
  return wants;
}

std::string find_library(const std::string& name, const std::vector<std::string>& folders) {
  std::error_code failed;
  for (const std::string& folder : folders) {
    const fs::path path = fs::path(folder) / name;
    if (!fs::is_regular_file(path, failed)) continue;
    const fs::path real = fs::canonical(path, failed);
    if (!failed) return real.string();
  }
  return "";
}

}  // namespace

std::vector<std::string> needed_libraries(const std::string& program,
                                          std::string_view library_path) {
  std::vector<std::string> found{program};
  std::set<std::string> known{program};
  for (size_t i = 0; i < found.size() && found.size() < most_libraries; ++i) {
    Wants wants = read_wants(found[i]);
    for (std::string& folder : split_path(library_path)) wants.folders.push_back(std::move(folder));
    wants.folders.insert(wants.folders.end(), std::begin(system_folders), std::end(system_folders));
    for (const std::string& name : wants.names) {
      std::string path = find_library(name, wants.folders);
      if (!path.empty() && known.insert(path).second) found.push_back(std::move(path));
    }
  }
  found.erase(found.begin());
  return found;
}

}  // namespace unflake
