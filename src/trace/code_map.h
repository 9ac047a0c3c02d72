#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/site.h"
#include "model/trace.h"
#include "protocol/schedule_protocol.h"
#include "symbols/image.h"
#include "symbols/project_code.h"
#include "trace/raw_trace.h"

namespace unflake {

// A function by which a test framework learns of failed checks, among others: the stack of such a
// call begins at the check.
struct AssertionReporter {
  Function function;
  protocol::FailureSign sign;
};

std::vector<AssertionReporter> assertion_reporters(const Image& image);

// Whether a shared library of this name is a test framework, wherever it is installed.
bool is_framework_library(std::string_view file_name);

// What is at an address: the source frames there, innermost first, and which is the first of
// project code.
struct NamedCode {
  std::vector<Frame> frames;
  size_t first_project = 0;  // frames.size(): none

  const Frame* project() const {
    return first_project < frames.size() ? &frames[first_project] : nullptr;
  }
};

// An instruction that touches memory, and the probe that can take its place.
struct ProbedAccess {
  protocol::Probe probe;  // its image is to be filled in
  protocol::PlanAccess access;
  SiteName name;     // by the function and where in it this is; without the image
  std::string text;  // of the name
};

// Which functions of an image are traced.
struct FunctionsWanted {
  bool project = false;
  bool callees = false;
  std::vector<std::string> library;  // globs over names

  bool operator==(const FunctionsWanted&) const = default;
};

// Where they begin, with the probes that tell that one was executed.
struct TracedEntries {
  std::vector<protocol::Probe> probes;        // ordered; their image is to be filled in
  std::map<std::string, size_t> unprobeable;  // how many have none, by reason
};

// The code of the images that a test's runs have shown. Every address is looked up once.
class CodeMap {
 public:
  using Open = std::function<Result<std::shared_ptr<const Image>>(const std::string& path)>;
  explicit CodeMap(ProjectCode policy, Open open = Image::open)
      : policy_(std::move(policy)), open_(std::move(open)) {}

  const NamedCode& at(const TracedImage& image, uint64_t address);
  // The code before a return address.
  const NamedCode& before(const TracedImage& image, uint64_t return_address) {
    return at(image, return_address - 1);
  }
  // Null when the file cannot be read or is not the one that ran.
  std::shared_ptr<const Image> image(const TracedImage& image) { return known(image).image; }
  std::vector<std::string> project_files(const TracedImage& image);
  // The same for every run that wants the same, and made once: a program may have 100,000.
  const TracedEntries& entries(const TracedImage& image, const FunctionsWanted& wanted);
  FunctionKind kind_of(const TracedImage& image, uint64_t entry);
  // Of an import too.
  std::string name_of_entry(const TracedImage& image, uint64_t entry);
  // By project code and by what system headers have put into the image: project code may be inlined
  // there.
  const std::vector<ProbedAccess>& accesses(const TracedImage& image);
  // Where the test frameworks in the image report failed checks.
  const std::vector<AssertionReporter>& reporters(const TracedImage& image);
  const std::vector<protocol::SkipRange>& skip_ranges(const TracedImage& image);
  // Which code of these images has no debug information, and entries of [code] that match nothing.
  const std::vector<CodeNote>& notes(const std::vector<TracedImage>& images);

  const ProjectCode& policy() const { return policy_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct Known {
    std::shared_ptr<const Image> image;
    std::unordered_map<uint64_t, NamedCode> places;
    std::optional<std::vector<protocol::SkipRange>> skips;
    std::optional<std::vector<AssertionReporter>> reporters;
    std::optional<std::vector<ProbedAccess>> accesses;
    std::optional<std::vector<Import>> imports;
    std::optional<std::pair<FunctionsWanted, TracedEntries>> entries;
  };
  Known& known(const TracedImage& image);
  const std::vector<Import>& imports(const TracedImage& image);
  const Import* import_at(const TracedImage& image, uint64_t entry);
  std::vector<Function> functions(const TracedImage& image, const FunctionsWanted& wanted);
  std::vector<ProbedAccess> find_accesses(const TracedImage& image);
  std::vector<CodeNote> notes_about(const std::vector<TracedImage>& images);
  std::optional<CodeNote> missing_debug_information(const TracedImage& image);

  const ProjectCode policy_;
  const Open open_;
  std::map<std::pair<std::string, std::string>, Known> images_;      // by path and build id
  std::map<std::vector<std::string>, std::vector<CodeNote>> notes_;  // by the images' paths
  std::vector<std::string> problems_;
};

// Where a line begins or a function is entered, in every copy of it that the image has. Adds to
// `similar` what the user may have meant when there is nothing.
std::vector<uint64_t> addresses_of(const Image& image, const SiteName& site,
                                   std::vector<std::string>& similar);

Error unknown_site(const SiteName& site, const std::vector<std::string>& known);

Result<protocol::Group> timing_group(const std::string& name);
std::vector<std::string> timing_groups();

}  // namespace unflake
