#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/site.h"
#include "model/trace.h"
#include "trace/code_map.h"

namespace unflake {

// The shortest names under which source files can be told apart: "queue.cc", or "server/queue.cc"
// where there are two. A name, once given, stays, whatever files come later.
class FileNames {
 public:
  void add(const std::vector<std::string>& paths);
  const std::string& short_name(const std::string& path);

 private:
  bool is_taken(const std::string& suffix, const std::string& by_other_than) const;

  std::map<std::string, std::set<std::string>> by_base_;  // paths
  std::map<std::string, std::string> given_;              // path -> short name
  std::set<std::string> taken_;
};

struct CodeAddress {
  std::string image_path;
  uint64_t address = 0;
  auto operator<=>(const CodeAddress&) const = default;
};

// A call that some run has shown: where the agent finds it again.
struct LearnedSite {
  SiteName name;
  uint16_t api = 0;
  std::vector<CodeAddress> addresses;  // several when the code was inlined or instantiated
};

// Names the calls of one test, the same way in every run.
class SiteBook {
 public:
  // Image names are left out for this one.
  void set_own_executable(const std::string& path) { own_executable_ = path; }
  const std::string& own_executable() const { return own_executable_; }
  FileNames& files() { return files_; }

  // The name of the place itself, without an api: it also names threads.
  SiteName name_place(const TracedImage& image, const NamedCode& place, uint64_t address);

  // Calls on one line of one function are numbered in the order in which they come here; copies of
  // the function (inlined, instantiated) are all the same site.
  const LearnedSite& learn_call(const TracedImage& image, const NamedCode& place,
                                uint64_t return_address, uint16_t api);

  const LearnedSite* find(const SiteName& name) const;
  std::vector<std::string> names() const;

 private:
  std::string own_executable_;
  FileNames files_;
  std::map<std::string, LearnedSite> sites_;  // by name
  // The addresses of one copy of a line, by the line's name and what makes the copy.
  std::map<std::pair<std::string, std::string>, std::vector<CodeAddress>> copies_;
};

// A thread before it has a name that people can read.
struct Spawned {
  uint64_t name = 0;  // as the agent hashes them
  uint64_t thread_class = 0;
  std::string executable;  // base name; empty: the test's own
  std::string place;       // that spawned it; empty: it is the first of its program, or unknown
  uint32_t ordinal = 0;
};

// Names the threads of one test, the same way in every run.
class ThreadBook {
 public:
  // All threads of a run at once: whether a place is enough of a name depends on the others.
  std::vector<ThreadName> name_threads(const std::vector<Spawned>& threads);

  // By the text of a name, or of a class (`#*`); nothing when no run has shown such a thread.
  const ThreadName* find(const std::string& text) const;
  std::vector<std::string> names() const;

 private:
  const std::string& class_text(const Spawned& thread);

  using Class = std::pair<std::string, uint64_t>;               // executable and class
  std::map<std::string, std::set<uint64_t>> classes_of_place_;  // with the executable
  std::map<Class, std::string> class_texts_;
  std::map<std::string, ThreadName> known_;
};

// Whether the frame is the line that the site names.
bool is_at(const Frame& frame, const SiteName& site);

// Whether it is one of the project's own lines.
bool is_own(const TracedFrame& frame, const Frame& source);

// "main at pool.cc:31"; empty for a process's first thread.
std::string started_by(const Trace& trace, uint32_t thread);

// "src/queue.cc:57 in Queue::pop"
std::string location_of(const Frame& frame);

// The project's own lines that led to a site, nearest first.
std::vector<const Frame*> callers_of(const TracedStack& stack, const SiteName& site);

// The failure of a trace that names its outcome; nullptr: none was captured.
const TracedFailure* main_failure(const Trace& trace);

// The frame of the stack at the site's line, or null.
const Frame* frame_at(const TracedStack& stack, const SiteName& site);

// Where a site is, with the file's full name when a stack of the trace has it.
CodeSpot place_of(const Trace& trace, const SiteName& site);

// Functions that several places call only to reach a timing API, such as a library's own mutex,
// event or sleep. Nothing happens there: what happens is in whoever calls them.
class Wrappers {
 public:
  Wrappers() = default;
  // From the stacks of runs; `named` are those that the user has listed, by qualified name.
  explicit Wrappers(const std::vector<const Trace*>& seen,
                    const std::vector<std::string>& named = {});

  bool contains(const Frame& frame) const;

 private:
  friend class WrapperSearch;
  using Function = std::pair<std::string, std::string>;  // its name and file
  std::set<Function> functions_;
  std::set<std::string> named_;
};

// The lines of the project on a stack, innermost first: neither what templates of the standard
// library became nor a framework's own.
std::vector<const Frame*> own_frames(const TracedStack& stack);

// Of these, those from the first one that is in no wrapper; all of them when every one is.
std::vector<const Frame*> frames_above(const TracedStack& stack, const Wrappers& wrappers);

// Who made a call through wrappers. Null when it was made through none, or its stack is not known.
const Frame* caller_past(const Trace& trace, const TracedCall& call, const Wrappers& wrappers);

}  // namespace unflake
