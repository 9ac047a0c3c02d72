#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

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

}  // namespace unflake
