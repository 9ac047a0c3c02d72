#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/image.h"
#include "trace/raw_report.h"

namespace unflake {

// What stands at an address: the source frames there, innermost first, and which is the first of
// project code.
struct CodePlace {
  std::vector<Frame> frames;
  size_t first_project = 0;  // frames.size(): none

  const Frame* project() const {
    return first_project < frames.size() ? &frames[first_project] : nullptr;
  }
};

// The code of the images that a test's runs have shown. Every address is looked up once.
class CodeMap {
 public:
  virtual ~CodeMap() = default;

  const CodePlace& at(const RawImage& image, uint64_t address);
  // The code before a return address.
  const CodePlace& before(const RawImage& image, uint64_t return_address) {
    return at(image, return_address - 1);
  }
  // Null when the file cannot be read or is not the one that ran.
  std::shared_ptr<const Image> image(const RawImage& image) { return known(image).image; }
  std::vector<std::string> project_files(const RawImage& image);
  const std::vector<std::string>& problems() const { return problems_; }

 protected:
  virtual Result<std::shared_ptr<const Image>> open(const std::string& path) = 0;
  virtual bool is_project(const std::string& image_path, const Frame& frame) = 0;

 private:
  struct Known {
    std::shared_ptr<const Image> image;
    std::unordered_map<uint64_t, CodePlace> places;
  };
  Known& known(const RawImage& image);

  std::map<std::pair<std::string, std::string>, Known> images_;  // by path and build id
  std::vector<std::string> problems_;
};

}  // namespace unflake
