#include "symbols/loadable.h"

#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>

#include "symbols/elf_file.h"
#include "util/unique_fd.h"

namespace unflake {
namespace {

bool has_interpreter(Elf* elf) {
  size_t count = 0;
  if (::elf_getphdrnum(elf, &count) != 0) return false;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (::gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type == PT_INTERP)
      return true;
  }
  return false;
}

Error refusal(const std::string& path, const std::string& why, const std::string& next) {
  return usage_error("the agent cannot be loaded into this program: " + why, path, next);
}

}  // namespace

Result<void> check_loadable(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0)
    return refusal(path, "it cannot be read", "make the file readable");
  if ((status.st_mode & (S_ISUID | S_ISGID)) != 0)
    return refusal(path, "it is setuid or setgid, and the loader then preloads nothing",
                   "test a copy without these bits");
  ::elf_version(EV_CURRENT);
  const ElfHandle elf(::elf_begin(file.get(), ELF_C_READ_MMAP, nullptr));
  GElf_Ehdr header;
  if (!elf || ::elf_kind(elf.get()) != ELF_K_ELF || ::gelf_getehdr(elf.get(), &header) == nullptr)
    return {};
  if (header.e_machine != EM_X86_64 || ::gelf_getclass(elf.get()) != ELFCLASS64)
    return refusal(path, "it is not made for 64-bit x86", "build it for x86-64");
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
    return refusal(path, "it is no executable", "name the program that contains the tests");
  if (!has_interpreter(elf.get()))
    return refusal(path, "it is linked statically, and there is no loader that could preload it",
                   "link it dynamically: without -static");
  return {};
}

}  // namespace unflake
