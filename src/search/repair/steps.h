#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/repair.h"
#include "model/trace.h"
#include "trace/program_code.h"

namespace unflake {

// What a thread comes to, one after the other: calls, and lines that were watched.
struct ThreadStep {
  SiteName site;
  ThreadName thread;
  std::string executable;
  CodeSpot spot;
  uint64_t visit = 1;  // of the site, by the threads that are meant: this one, or all of its class
  Duration at{};
  size_t call = 0;       // of the trace
  uint32_t process = 0;  // of the trace: the test's own is the first
  // A wait that gave the lock back and took it again just before this: a thread that is late when
  // it returns keeps nobody from the lock.
  struct Wait {
    SiteName site;
    uint64_t visit = 1;
  };
  std::optional<Wait> woken_from{};

  bool is_line() const { return site.api.empty(); }
};

// Lines with code of one file of an image, as CodeView tells them.
using LinesOf =
    std::function<std::vector<CodeLine>(const std::string& image, const std::string& file)>;

// Files of the project's own code: those that its frames on stacks begin with. Frames further out
// may be a library's, inlined the other way round.
std::set<std::string> project_files(const Trace& trace);

// The lines of the project that a test may be at when its order is decided, and whose they are.
class RepairLines {
 public:
  // From runs with stacks: the functions on them, and others that were executed. Those on the
  // stacks of the failure and of late threads come first; no more than a run can watch, of which
  // each file has its share.
  RepairLines(const std::vector<const Trace*>& seen, const LinesOf& lines);

  // A watch at each of them, but for those that the plan names in another way.
  void watch_in(Plan& plan) const;
  // A line that cannot be watched is left out from now on; of two that are one instruction, the one
  // that is named first. False: none of them is named.
  bool leave_out(const std::string& complaint);

  const std::string& function_at(const SiteName& line) const;
  // Whether it has code of several functions, such as of a lambda, and of this one.
  bool is_shared(const SiteName& line) const;
  bool is_line_of(const SiteName& line, const std::string& function) const;
  // The whole path of the line's file, where a stack has shown it; else as the site names it.
  std::string path_of(const SiteName& line) const;
  // Lines with code of the same function, ascending.
  std::vector<SiteName> of_function(const std::string& function) const;
  size_t size() const { return lines_.size(); }

 private:
  struct File {
    std::string image, name;
    std::vector<CodeLine> lines;
  };
  void add_files(std::vector<File> files);
  void add_line(const File& file, const CodeLine& line);
  File file_of(const std::string& image, const std::string& name, const LinesOf& lines,
               const std::set<std::string>& functions);

  std::set<std::string> executed_;         // functions; a line that was inlined into one is its own
  std::map<SiteName, std::string> lines_;  // the function of each
  std::map<SiteName, std::set<std::string>> functions_;               // all of each line
  std::map<std::pair<std::string, std::string>, std::string> paths_;  // by image and short name
};

// All steps of a thread, by when it came there, and of the program that took its place. With
// `whole_class`, visits are counted for all threads that were started where it was.
std::vector<ThreadStep> steps_of(const Trace& trace, uint32_t thread, const RepairLines& lines,
                                 bool whole_class = false);

// Of these steps of a thread, those before which it could be late or made to wait while it holds no
// lock: whoever it would wait for may need that lock. A step under a lock is represented by the one
// that took it, or by the end of a wait that gave it back meanwhile.
std::vector<ThreadStep> steps_without_lock(const Trace& trace, std::vector<ThreadStep> steps);

// The thread of this name; no_index: none. Of several processes each may have one, such as `main`:
// the one with this number, or the last one where there are fewer.
uint32_t thread_named(const Trace& trace, const std::string& name, size_t namesake = 0);
// The same, else one that was started at the same place.
uint32_t thread_like(const Trace& trace, const std::string& name, size_t namesake = 0);
// How many threads of its name were there before it.
size_t namesake_number(const Trace& trace, uint32_t thread);

// "read at desk.cc:30 (time 2 of 3)": where the test, or what it tests, comes to the call, and not
// the wrapper in which it happens; which time, where its thread comes there more than once.
std::string step_words(const Trace& trace, const ThreadStep& step);

// The step as reports and patches name it.
RepairPlace place_of(const ThreadStep& step);

}  // namespace unflake
