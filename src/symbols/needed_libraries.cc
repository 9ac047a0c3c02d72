#include "symbols/needed_libraries.h"

#include <gelf.h>

#include <filesystem>
#include <set>

#include "symbols/elf_file.h"
#include "util/text.h"

namespace unflake {
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
