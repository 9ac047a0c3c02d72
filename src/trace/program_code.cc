#include "trace/program_code.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "symbols/image.h"
#include "symbols/probe_plan.h"
#include "trace/names.h"
#include "util/files.h"
#include "util/paths.h"

namespace unflake {
namespace {

constexpr size_t most_copies_of_line = 8;  // that are looked at

namespace fs = std::filesystem;

constexpr uintmax_t largest_source = 16 << 20;

bool is_end_of(const std::string& path, const std::string& end) {
  return path.ends_with(end) &&
         (path.size() == end.size() || end[0] == '/' || path[path.size() - end.size() - 1] == '/');
}

std::vector<std::string> lines_of_file(const std::string& path) {
  std::vector<std::string> lines;
  std::error_code failed;
  if (!fs::is_regular_file(path, failed) || fs::file_size(path, failed) > largest_source)
    return lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class ProgramCode {
 public:
  ProgramCode(const Trace& trace, const ProjectCodeRules& rules)
      : policy_(rules), root_(rules.root) {
    if (!trace.processes.empty() && trace.processes.front().executable < trace.images.size())
      own_ = trace.images[trace.processes.front().executable].path;
    for (const TracedImage& image : trace.images)
      if (image.is_project) open(image.path);
  }

  const CodeView::Lines& source(const std::string& file) {
    const auto [known, is_new] = sources_.try_emplace(file);
    if (is_new) known->second = read(file);
    return known->second;
  }

  const FunctionPlaces& functions(const std::string& image) {
    const auto [known, is_new] = functions_.try_emplace(image);
    const Image* code = is_new ? find(image) : nullptr;
    if (!code) return known->second;
    for (const Function& function : code->functions())
      if (!function.file.empty() && policy_.is_project_file(function.file))
        known->second.emplace(qualified_name(function.name),
                              FunctionPlace{names_.short_name(function.file), function.line});
    return known->second;
  }

  std::vector<CodeLine> lines(const std::string& image, const std::string& file) {
    const Image* code = find(image);
    std::vector<CodeLine> found;
    if (!code) return found;
    std::map<int, std::vector<uint64_t>> copies;
    std::map<uint64_t, std::vector<LineRow>> beginning;  // lines of the project, by address
    for (const LineRow& row : code->lines())
      if (row.line > 0 && is_end_of(code->files()[row.file], file))
        if (auto& known = copies[row.line]; known.size() < most_copies_of_line) {
          known.push_back(row.address);
          beginning[row.address];
        }
    for (const LineRow& row : code->lines())
      if (const auto there = beginning.find(row.address);
          there != beginning.end() && policy_.is_project_file(code->files()[row.file]))
        there->second.push_back(row);
    for (const auto& [line, addresses] : copies)
      if (auto one = code_line(*code, file, line, addresses, beginning))
        found.push_back(std::move(*one));
    return found;
  }

  using Beginning = std::map<uint64_t, std::vector<LineRow>>;
  using Frames = std::vector<Frame>::const_iterator;

  static std::optional<CodeLine> code_line(const Image& code, const std::string& file, int line,
                                           const std::vector<uint64_t>& addresses,
                                           const Beginning& beginning) {
    std::optional<CodeLine> found;
    bool is_hidden = true;
    for (const uint64_t address : addresses) {
      const std::vector<Frame> frames = code.frames_at(address);
      if (frames.empty()) continue;
      // What was inlined there may begin with the line.
      Frames own = std::ranges::find_if(frames, [&](const Frame& frame) {
        return frame.line == line && is_end_of(frame.file, file);
      });
      const bool is_led_to = own != frames.end();
      if (!is_led_to) own = frames.begin();
      if (!found) found = CodeLine{line, own->function};
      found->functions.insert(own->function);
      for (const Frame& frame : frames) found->inlined_into.insert(frame.function);
      // The line of a function's name begins where its first statement does.
      const auto by = hiding(code, beginning.at(address), is_led_to ? own + 1 : own, frames.end());
      is_hidden = is_hidden && by != frames.end();
      if (by != frames.end()) found->hidden_in.insert(by->function);
    }
    if (found && !is_hidden) found->hidden_in.clear();
    return found;
  }

  static Frames hiding(const Image& code, const std::vector<LineRow>& rows, Frames from,
                       Frames end) {
    return std::find_if(from, end, [&](const Frame& frame) {
      return std::ranges::any_of(rows, [&](const LineRow& row) {
        return frame.line == row.line && frame.file == code.files()[row.file];
      });
    });
  }

  std::optional<CodeSpot> instruction(const SiteName& site) {
    const Image* code = find(site.image);
    if (!code) return std::nullopt;
    for (const Function* function : find_functions(*code, site.function).functions) {
      const uint64_t address = function->start + site.offset;
      if (!std::ranges::binary_search(instruction_addresses(*code, *function), address)) continue;
      const std::vector<Frame> frames = code->frames_at(address);
      const auto own = std::ranges::find_if(
          frames, [&](const Frame& frame) { return policy_.is_project_file(frame.file); });
      if (own == frames.end()) return CodeSpot{"", 0, function->name};
      return CodeSpot{names_.short_name(own->file), own->line, own->function};
    }
    return std::nullopt;
  }

 private:
  void open(const std::string& path) {
    auto image = Image::open(path);
    if (!image) return;
    for (const std::string& file : (*image)->files())
      if (policy_.is_project_file(file)) files_.insert(file);
    images_.push_back(std::move(*image));
    names_.add({files_.begin(), files_.end()});
  }

  const Image* find(const std::string& name) const {
    for (const auto& image : images_)
      if (name.empty() ? image->path() == own_ : base_name(image->path()) == name)
        return image.get();
    return nullptr;
  }

  // A build elsewhere, or one that shortens its paths, leaves names that are below the root here.
  CodeView::Lines read(const std::string& file) const {
    for (const std::string& path : files_) {
      if (!is_end_of(path, file)) continue;
      if (auto lines = lines_of_file(find_source(path, root_)); !lines.empty()) return lines;
    }
    return lines_of_file(find_source(file, root_));
  }

  const ProjectCode policy_;
  const std::string root_;
  std::string own_;  // the test's own executable
  std::vector<std::shared_ptr<const Image>> images_;
  std::set<std::string> files_;
  FileNames names_;
  std::map<std::string, CodeView::Lines> sources_;
  std::map<std::string, FunctionPlaces> functions_;
};

}  // namespace

CodeView program_code(const Trace& trace, const ProjectCodeRules& rules) {
  const auto code = std::make_shared<ProgramCode>(trace, rules);
  CodeView view;
  view.source = [code](const std::string& file) -> const CodeView::Lines& {
    return code->source(file);
  };
  view.functions = [code](const std::string& image) -> const FunctionPlaces& {
    return code->functions(image);
  };
  view.lines = [code](const std::string& image, const std::string& file) {
    return code->lines(image, file);
  };
  view.instruction = [code](const SiteName& site) { return code->instruction(site); };
  return view;
}

}  // namespace unflake
