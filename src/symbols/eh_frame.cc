#include "symbols/eh_frame.h"

#include <dwarf.h>

#include <algorithm>
#include <unordered_map>

#include "symbols/elf_file.h"

namespace unflake {
namespace {

uint64_t take_value(Cursor& cursor, uint8_t format) {
  switch (format) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
      return cursor.take<uint64_t>();
    case DW_EH_PE_udata4:
      return cursor.take<uint32_t>();
    case DW_EH_PE_sdata4:
      return static_cast<uint64_t>(int64_t{cursor.take<int32_t>()});
    case DW_EH_PE_udata2:
      return cursor.take<uint16_t>();
    case DW_EH_PE_sdata2:
      return static_cast<uint64_t>(int64_t{cursor.take<int16_t>()});
    default:
      return cursor.take_unsigned();
  }
}

uint64_t take_pointer(Cursor& cursor, uint8_t encoding) {
  const uint64_t base = (encoding & 0x70) == DW_EH_PE_pcrel ? cursor.address() : 0;
  return base + take_value(cursor, encoding & 0x0f);
}

// How the entries of a common information entry write their addresses.
uint8_t pointer_encoding(Cursor cursor) {
  const uint8_t version = cursor.take<uint8_t>();
  const std::string_view augmentation = cursor.take_string();
  if (!augmentation.starts_with('z')) return DW_EH_PE_absptr;
  cursor.take_unsigned();  // code alignment
  cursor.take_unsigned();  // data alignment
  version == 1 ? cursor.take<uint8_t>() : cursor.take_unsigned();
  cursor.take_unsigned();  // length of what follows
  for (const char letter : augmentation.substr(1)) {
    if (letter == 'R') return cursor.take<uint8_t>();
    if (letter == 'L') cursor.take<uint8_t>();
    if (letter == 'P') take_pointer(cursor, cursor.take<uint8_t>());
  }
  return DW_EH_PE_absptr;
}

bool is_linkage_table(const ElfFile::Section& section) {
  return section.name.starts_with(".plt");
}

class FrameReader {
 public:
  FrameReader(const ElfFile& file, const ElfFile::Section& section)
      : file_(file),
        bytes_(file.bytes_at(section.start, section.end - section.start)),
        address_(section.start) {}

  std::vector<Extent> read() {
    size_t at = 0;
    while (bytes_.size() - at >= 8) {
      Cursor cursor(bytes_.subspan(at), address_ + at);
      uint64_t length = cursor.take<uint32_t>();
      if (length == 0) break;
      if (length == 0xffffffff) length = cursor.take<uint64_t>();
      if (!cursor.ok() || length < 4 || length > cursor.left()) break;
      const size_t body = at + cursor.at();
      read_entry(at, body, length);
      at = body + length;
    }
    return std::move(extents_);
  }

 private:
  void read_entry(size_t at, size_t body, size_t length) {
    Cursor cursor(bytes_.subspan(body, length), address_ + body);
    const uint32_t back = cursor.take<uint32_t>();
    if (back == 0) {
      encodings_[at] = pointer_encoding(cursor);
      return;
    }
    const auto encoding = encodings_.find(body - back);
    if (back > body || encoding == encodings_.end()) return;
    const uint64_t start = take_pointer(cursor, encoding->second);
    const uint64_t size = take_value(cursor, encoding->second & 0x0f);
    if (cursor.ok()) add({start, size});
  }

  void add(Extent extent) {
    const ElfFile::Section* section = file_.code_section_of(extent.start);
    if (section == nullptr || is_linkage_table(*section)) return;
    extent.size = std::min(extent.size, section->end - extent.start);
    if (extent.size > 0) extents_.push_back(extent);
  }

  const ElfFile& file_;
  std::span<const uint8_t> bytes_;
  uint64_t address_;
  std::unordered_map<size_t, uint8_t> encodings_;  // by the offset of the common entry
  std::vector<Extent> extents_;
};

}  // namespace

std::vector<Extent> eh_frame_extents(const ElfFile& file) {
  const auto section = file.section(".eh_frame");
  if (!section) return {};
  std::vector<Extent> extents = FrameReader(file, *section).read();
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.start < b.start; });
  return extents;
}

}  // namespace unflake
