#include "trace/wrappers.h"

#include <algorithm>
#include <map>

#include "symbols/project_code.h"
#include "trace/happens_before.h"
#include "trace/names.h"

namespace unflake {
namespace {

constexpr int most_layers = 6;  // of wrappers around wrappers
constexpr size_t several = 2, many = 3;

// What is in a standard header was compiled for whoever uses it.
bool is_of_library(const Frame& frame) {
  return is_system_function(frame.function) || is_framework_function(frame.function) ||
         frame.file.starts_with("/usr/include/") || frame.file.starts_with("/usr/lib/");
}

}  // namespace

std::vector<const Frame*> own_frames(const TracedStack& stack) {
  std::vector<const Frame*> own;
  for (const TracedFrame& frame : stack.frames)
    for (const Frame& source : frame.source)
      if (is_own(frame, source) && !is_of_library(source)) own.push_back(&source);
  return own;
}

// Looks for functions that do one thing for many: first those that call a timing API themselves,
// then those that only call such ones.
class WrapperSearch {
 public:
  WrapperSearch(const std::vector<const Trace*>& seen, Wrappers& found) : found_(found) {
    for (const Trace* trace : seen) {
      ++run_;
      for (const TracedCall& call : trace->calls) add(*trace, call);
    }
  }

  void operator()() {
    for (int layer = 0; layer < most_layers && find_layer(); ++layer) continue;
  }

 private:
  using Function = Wrappers::Function;
  struct Reached {
    std::vector<const Frame*> frames;
    const TracedSite* site = nullptr;
    uint64_t object = 0;
    int run = 0;  // objects are others in each
  };
  struct Use {
    std::set<Function> callers;
    std::set<std::string> apis;
    std::map<std::pair<int, int>, std::set<uint64_t>> objects;  // by line of the function and run
  };

  void add(const Trace& trace, const TracedCall& call) {
    if (call.is_intervention || call.stack >= trace.stacks.size() ||
        call.site >= trace.sites.size() || trace.sites[call.site].name.api.empty())
      return;
    calls_.push_back(
        {own_frames(trace.stacks[call.stack]), &trace.sites[call.site], call.object, run_});
  }

  static Function function_of(const Frame& frame) { return {frame.function, frame.file}; }

  // Whether this made any difference.
  bool find_layer() {
    std::map<Function, Use> uses;
    for (const Reached& call : calls_) add_use(call, uses);
    const size_t before = found_.functions_.size();
    for (const auto& [function, use] : uses)
      if (is_wrapper(function, use)) found_.functions_.insert(function);
    return found_.functions_.size() > before;
  }

  // The functions of a stack up to the first one that does more than call the next.
  void add_use(const Reached& call, std::map<Function, Use>& uses) const {
    for (size_t i = 0; i + 1 < call.frames.size(); ++i) {
      Use& use = uses[function_of(*call.frames[i])];
      use.callers.insert(function_of(*call.frames[i + 1]));
      use.apis.insert(call.site->name.api);
      use.objects[{call.frames[i]->line, call.run}].insert(call.object);
      if (!found_.contains(*call.frames[i]) && use.apis.size() > 1) return;
    }
  }

  static bool is_for_several(const Use& use) {
    return std::ranges::all_of(use.objects,
                               [](const auto& line) { return line.second.size() >= several; });
  }

  bool is_among_wrappers(const Function& function, const Use& use) const {
    const auto is_elsewhere = [&](const Function& caller) {
      return caller.second != function.second;
    };
    const auto is_here = [&](const Function& wrapper) { return wrapper.second == function.second; };
    return std::ranges::all_of(use.callers, is_elsewhere) &&
           std::ranges::any_of(found_.functions_, is_here);
  }

  // A function that takes a lock and gives it back does something in between, for which it is
  // called; unless it does so for several objects. One that nobody but a wrapper calls is part of
  // it, and one that stands among wrappers for code elsewhere is one as well.
  bool is_wrapper(const Function& function, const Use& use) const {
    if (use.callers.size() >= several && is_for_several(use)) return true;
    if (use.callers.size() >= many && use.apis.size() == 1) return true;
    if (std::ranges::all_of(use.callers, [&](const Function& caller) {
          return found_.functions_.contains(caller) && caller.second == function.second;
        }))
      return true;
    return is_among_wrappers(function, use);
  }

  Wrappers& found_;
  std::vector<Reached> calls_;
  int run_ = 0;
};

Wrappers::Wrappers(const std::vector<const Trace*>& seen, const std::vector<std::string>& named)
    : named_(named.begin(), named.end()) {
  WrapperSearch(seen, *this)();
}

bool Wrappers::contains(const Frame& frame) const {
  return functions_.contains({frame.function, frame.file}) ||
         (!named_.empty() && named_.contains(frame.function));
}

std::vector<const Frame*> frames_above(const TracedStack& stack, const Wrappers& wrappers) {
  std::vector<const Frame*> own = own_frames(stack);
  const auto first =
      std::ranges::find_if(own, [&](const Frame* frame) { return !wrappers.contains(*frame); });
  if (first != own.end()) own.erase(own.begin(), first);
  return own;
}

}  // namespace unflake
