#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "patch/repair/repair_patch.h"
#include "patch/repair/statements.h"
#include "patch/source/source_unit.h"

namespace unflake {

// A place of a repair in a source that can be changed.
struct PatchPlace {
  std::string file;  // real path
  int line = 0;
  std::string function;
  std::shared_ptr<SourceUnit> unit;  // that the file is compiled in
};

// The sources that a repair may change, as they are compiled. A header is read where one of them
// includes it.
class RepairSources {
 public:
  explicit RepairSources(const PatchRequest& request);

  Result<PatchPlace> place(const CodeSpot& spot);
  Result<PatchPlace> place(const std::string& file, int line);

  // Those that were looked at so far.
  const std::vector<std::shared_ptr<SourceUnit>>& units() const { return units_; }

  // Sources of the project that hold a word.
  std::vector<std::string> files_with(const std::string& word) const;

  // In every unit that reads a changed file. They stay changed until `restore`.
  Result<void> try_edits(const std::vector<SourceEdit>& edits,
                         const std::vector<NewSource>& new_files);
  void restore();

 private:
  Result<std::string> changeable(const std::string& file) const;
  std::string commands_folder_of(const std::string& file) const;
  Result<std::shared_ptr<SourceUnit>> unit_of(const std::string& file);

  const PatchRequest& request_;
  std::vector<std::shared_ptr<SourceUnit>> units_;
};

// A patch before it was tried.
struct DraftPatch {
  RepairIdiom idiom = RepairIdiom::hand_over;
  std::string what;
  std::vector<SourceEdit> edits;
  std::vector<NewSource> new_files;
  std::vector<std::string> cautions;
  bool is_tried = false;  // as it is
};

Result<DraftPatch> draft_definition(const PatchRequest& request, RepairSources& sources);
Result<DraftPatch> draft_join(const PatchRequest& request, RepairSources& sources);
Result<DraftPatch> draft_notify(const PatchRequest& request, RepairSources& sources);
Result<DraftPatch> draft_poll(const PatchRequest& request, RepairSources& sources);
// The same, with what was read in the wait: reading may take it away.
Result<DraftPatch> draft_poll_keeping(const PatchRequest& request, RepairSources& sources);
Result<DraftPatch> draft_hand_over(const PatchRequest& request, RepairSources& sources);
// The same, and the time-out that ran out is longer.
Result<DraftPatch> draft_patient_hand_over(const PatchRequest& request, RepairSources& sources);
Result<DraftPatch> draft_bound(const PatchRequest& request, RepairSources& sources);

// Of the first hand-over; an error when there is none.
struct HandOverPlaces {
  PatchPlace critical, barrier;
};
Result<HandOverPlaces> places_of(const PatchRequest& request, RepairSources& sources);

bool reads_file(const SourceUnit& unit, const std::string& file);
bool is_c_source(const SourceUnit& unit);
std::string short_place(const std::string& file, int line);

// `#include "name"` or `#include <name>` among the others; nothing when it is there.
std::vector<SourceEdit> include_edits(const SourceUnit& unit, const std::string& file,
                                      const std::string& name);
// Behind the includes, where functions can be defined.
size_t behind_includes(const SourceUnit& unit, const std::string& file);

// The sleep that the new wait replaces, if it is a statement of its own in one of these bodies.
std::vector<SourceEdit> sleep_removal(const PatchRequest& request, RepairSources& sources,
                                      const std::vector<InsertionPoint>& bodies,
                                      std::vector<std::string>& cautions);
// The same as a statement; an error: it cannot be taken out.
Result<InsertionPoint> sleep_statement(const PatchRequest& request, RepairSources& sources);

bool is_same_body(const InsertionPoint& a, const InsertionPoint& b);

}  // namespace unflake
