#pragma once

#include <libelf.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "util/result.h"
#include "util/unique_fd.h"

namespace unflake {

struct EndElf {
  void operator()(Elf* elf) const { ::elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, EndElf>;

// An ELF file of x86-64 mapped into memory, with every access to it checked against its size.
class ElfFile {
 public:
  struct Section {
    std::string_view name;
    uint64_t start = 0;
    uint64_t end = 0;
  };
  struct DebugLink {
    std::string name;
    uint32_t checksum = 0;
  };

  static Result<std::unique_ptr<ElfFile>> open(const std::string& path);

  const std::string& path() const { return path_; }
  Elf* elf() const { return elf_.get(); }
  const std::string& build_id() const { return build_id_; }
  std::optional<DebugLink> debug_link() const;

  // The sections that hold instructions, ordered. A file without section headers has its executable
  // segments instead.
  std::span<const Section> code() const { return code_; }
  const Section* code_section_of(uint64_t address) const;
  bool is_code(uint64_t address) const { return code_section_of(address) != nullptr; }

  // As they are loaded; fewer at the end of what the file holds of a segment.
  std::span<const uint8_t> bytes_at(uint64_t address, size_t size) const;

  bool has_section(std::string_view name) const;
  // What the file holds of a section; decompressed once libdw has opened it.
  std::span<const uint8_t> section_bytes(std::string_view name) const;
  // Of a section that is loaded: where it is.
  std::optional<Section> section(std::string_view name) const;

 private:
  struct Segment {
    uint64_t start = 0;
    uint64_t size = 0;
    uint64_t offset = 0;  // in the file
    bool executable = false;
  };

  ElfFile(std::string path, UniqueFd file, ElfHandle elf);
  void read_segments();
  void read_code();
  void read_build_id();

  std::string path_;
  UniqueFd descriptor_;  // libdw asks it where the file is, to find what belongs to it
  ElfHandle elf_;
  std::span<const uint8_t> file_;
  std::vector<Segment> segments_;
  std::vector<Section> code_;
  std::string build_id_;
};

}  // namespace unflake
