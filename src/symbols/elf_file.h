#pragma once

#include <gelf.h>
#include <libelf.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/image.h"
#include "util/files.h"
#include "util/result.h"

namespace unflake {

// Reads forward through bytes that end anywhere. Beyond their end everything is 0 and nothing is
// ok.
class Cursor {
 public:
  explicit Cursor(std::span<const uint8_t> bytes, uint64_t address = 0)
      : bytes_(bytes), address_(address) {}

  bool ok() const { return ok_; }
  size_t at() const { return at_; }
  uint64_t address() const { return address_ + at_; }
  size_t left() const { return bytes_.size() - at_; }
  void skip(uint64_t count) { count <= left() ? void(at_ += count) : fail(); }

  template <class T>
  T take() {
    T value{};
    if (left() < sizeof(T)) return fail(), value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  uint64_t take_unsigned() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = take<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return fail(), 0;
  }

  int64_t take_signed() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = take<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) != 0) continue;
      const bool negative = (byte & 0x40) != 0 && shift + 7 < 64;
      return static_cast<int64_t>(negative ? value | (~uint64_t{0} << (shift + 7)) : value);
    }
    return fail(), 0;
  }

  std::string_view take_string() {
    const auto* start = reinterpret_cast<const char*>(bytes_.data() + at_);
    const void* end = left() == 0 ? nullptr : std::memchr(start, 0, left());
    if (end == nullptr) return fail(), std::string_view();
    const size_t length = static_cast<const char*>(end) - start;
    at_ += length + 1;
    return {start, length};
  }

 private:
  void fail() {
    ok_ = false;
    at_ = bytes_.size();
  }

  std::span<const uint8_t> bytes_;
  uint64_t address_;
  size_t at_ = 0;
  bool ok_ = true;
};

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

// The separate debug file of a stripped one, where distributions and build systems put it: by build
// id below /usr/lib/debug, or by name next to the file. Null when there is none that matches.
std::unique_ptr<ElfFile> find_debug_file(const ElfFile& file);

struct Symbol {
  uint64_t start = 0;
  uint64_t size = 0;
  const char* name = "";  // mangled, in the file's mapping; empty when only the extent is known
};

// The functions that the linker sees, ordered and without overlaps.
class SymbolTable {
 public:
  // `debug` is the separate debug file, or null.
  SymbolTable(const ElfFile& file, const ElfFile* debug);

  std::span<const Symbol> symbols() const { return symbols_; }
  const Symbol* find(uint64_t address) const;

 private:
  std::vector<Symbol> symbols_;
};

// Every symbol of the file's tables of one type (SHT_SYMTAB, SHT_DYNSYM), with its name, which may
// be empty.
using SymbolVisitor = std::function<void(const GElf_Sym& symbol, const char* name)>;
void visit_symbols(const ElfFile& file, uint32_t table, const SymbolVisitor& visit);

// The extents of functions as exception handling sees them: what is left in a stripped file.
// Ordered; procedure linkage tables are left out.
std::vector<Extent> eh_frame_extents(const ElfFile& file);

}  // namespace unflake
