#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "symbols/image.h"

namespace unflake {

// An executable without a file: every address says what a test wants it to say.
class FakeImage : public Image {
 public:
  explicit FakeImage(std::string path) : path_(std::move(path)) {}

  // Innermost first; the code from here up to the next address that something is said of.
  void set(uint64_t address, std::vector<Frame> frames) { places_[address] = std::move(frames); }

  const std::string& path() const override { return path_; }
  const std::string& build_id() const override { return build_id_; }
  bool has_debug_information() const override { return true; }
  std::string why_no_debug_information() const override { return ""; }
  std::vector<Frame> frames_at(uint64_t address) const override {
    const auto next = places_.upper_bound(address);
    return next == places_.begin() ? std::vector<Frame>() : std::prev(next)->second;
  }
  std::span<const Function> functions() const override { return functions_; }
  std::span<const LineRow> lines() const override { return lines_; }
  std::span<const std::string> files() const override { return files_; }
  std::span<const uint8_t> code_at(uint64_t address, size_t size) const override {
    const auto found = code_.find(address);
    if (found == code_.end()) return {};
    return std::span(found->second).first(std::min(size, found->second.size()));
  }

  std::vector<Import> imports() const override { return imports_; }

  std::vector<Import> imports_;
  std::vector<Function> functions_;
  std::vector<LineRow> lines_;
  std::vector<std::string> files_;
  std::map<uint64_t, std::vector<uint8_t>> code_;

 private:
  std::string path_;
  std::string build_id_;
  std::map<uint64_t, std::vector<Frame>> places_;
};

}  // namespace unflake
