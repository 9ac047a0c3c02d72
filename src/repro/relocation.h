#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/repro.h"
#include "model/trace.h"
#include "trace/program_code.h"

namespace unflake {

// What became of a site or thread of a repro since it was recorded.
struct Relocated {
  enum class Kind { moved, edited, ambiguous, gone };
  Kind kind = Kind::moved;
  std::string from;
  std::string to;  // empty: gone
  std::string text;
};

std::string_view to_string(Relocated::Kind kind);

struct Relocation {
  Plan plan;                     // ready to run, unless something is gone
  std::vector<Relocated> notes;  // nothing about what is as it was

  bool is_complete() const;
};

// Finds the sites and threads of a repro in the program as it is now. `seen` is what fresh runs
// without interventions have shown: a call or a thread that none of them reached cannot be named.
Relocation relocate(const Repro& repro, const Trace& seen, const CodeView& code);

// Adds the sites and threads of another run of the same test, for relocate().
void add_names(Trace& seen, const Trace& other);

// Fills in what relocate() will need: `sites`, `spawns` and `failing_line` of a new repro.
void describe_sites(Repro& repro, const Trace& seen, const CodeView& code);

// Gives the threads of a plan, which has their names only, what the agent knows them by. False for
// a thread that was not seen.
bool refresh_thread(Intervention& intervention, const Trace& seen);

// Whether a run failed as recorded: the same signature, or the same line that has moved.
bool is_same_failure(const Repro& repro, const Outcome& outcome, const CodeView& code);

// The same, or another crash where it was one: what uses memory that is gone may break anywhere.
bool is_same_mistake(const Repro& repro, const Outcome& outcome, const CodeView& code);

// A site and the source around it.
struct SiteInSource {
  SiteName name;
  SiteContext context;
};

// The text at a line of a function.
SiteContext context_at(const CodeView& code, const std::string& image, const std::string& file,
                       int line, const std::string& function);

// How sure it is that a place is the one that was intended.
struct FoundPlace {
  enum class Kind { unchanged, moved, edited, ambiguous };
  Kind kind = Kind::unchanged;
  size_t index = 0;               // in the candidates
  std::vector<size_t> as_likely;  // of an ambiguous one: the others
};

// The place among those of the program as it is now; nothing when none is like it.
std::optional<FoundPlace> find_place(const SiteInSource& wanted,
                                     const std::vector<SiteInSource>& candidates);

// The last part of a qualified name.
std::string unqualified(const std::string& function);

}  // namespace unflake
