#include "symbols/debug_file.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <vector>

#include "util/hexadecimal.h"

namespace unflake {
namespace {

constexpr std::string_view debug_root = "/usr/lib/debug";

std::string build_id_path(const std::string& id) {
  const std::string hex = hexadecimal(id);
  return fmt::format("{}/.build-id/{}/{}.debug", debug_root, hex.substr(0, 2), hex.substr(2));
}

std::vector<std::string> debug_link_paths(const ElfFile& file, const std::string& name) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(file.path(), failed);
  if (failed) return {};
  const std::string folder = real.parent_path().string();
  return {folder + "/" + name, folder + "/.debug/" + name,
          fmt::format("{}{}/{}", debug_root, folder, name)};
}

uint32_t checksum(std::span<const uint8_t> bytes) {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320u : 0u);
    table[i] = value;
  }
  uint32_t sum = 0xffffffff;
  for (const uint8_t byte : bytes) sum = table[(sum ^ byte) & 0xff] ^ (sum >> 8);
  return ~sum;
}

bool belongs_to(const ElfFile& debug, const ElfFile& file, uint32_t expected) {
  if (!file.build_id().empty() && !debug.build_id().empty())
    return file.build_id() == debug.build_id();
  size_t size = 0;
  const char* bytes = ::elf_rawfile(debug.elf(), &size);
  return bytes != nullptr && checksum({reinterpret_cast<const uint8_t*>(bytes), size}) == expected;
}

}  // namespace

std::unique_ptr<ElfFile> find_debug_file(const ElfFile& file) {
  if (file.build_id().size() > 1) {
    auto debug = ElfFile::open(build_id_path(file.build_id()));
    if (debug && (*debug)->build_id() == file.build_id()) return std::move(*debug);
  }
  const auto link = file.debug_link();
  if (!link || link->name.find('/') != std::string::npos) return nullptr;
  for (const std::string& path : debug_link_paths(file, link->name)) {
    auto debug = ElfFile::open(path);
    if (debug && belongs_to(**debug, file, link->checksum)) return std::move(*debug);
  }
  return nullptr;
}

}  // namespace unflake
