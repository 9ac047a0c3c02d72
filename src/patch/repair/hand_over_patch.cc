#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "patch/literals/time_literal.h"
#include "patch/repair/repair_sources.h"
#include "patch/repair/syntax.h"
#include "util/files.h"
#include "util/text.h"
#include "util/time.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view header_name = "unflake_sync.h";

// What a hand-over is called, by the function that comes first.
std::string name_from(const CodeAtLine& code, const std::string& test) {
  std::string function;
  for (const CodeBlock& block : code.blocks)
    if (block.is_body && !block.is_lambda) function = block.function;
  if (function.empty() || function == "TestBody" || function == "test_method") function = test;
  std::string name;
  for (const char c : function) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  const size_t first = name.find_first_not_of('_');
  name = first == std::string::npos ? "step" : name.substr(first);
  if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "step_" + name;
  return name + "_done";
}

class HandOverDraft {
 public:
  HandOverDraft(const PatchRequest& request, RepairSources& sources)
      : request_(request), sources_(sources) {}

  Result<DraftPatch> write() {
    draft_.idiom = RepairIdiom::hand_over;
    for (const HandOver& each : request_.hand_overs)
      if (auto added = add(each); !added) return added.error();
    if (points_.empty()) return usage_error("nothing is known to wait for anything");
    if (auto scoped = add_scopes(); !scoped) return scoped.error();
    for (SourceEdit& edit : sleep_removal(request_, sources_, points_, draft_.cautions))
      draft_.edits.push_back(std::move(edit));
    if (auto included = add_header(); !included) return included.error();
    describe();
    return std::move(draft_);
  }

 private:
  Result<void> add(const HandOver& each) {
    const auto critical = sources_.place(each.critical.spot);
    if (!critical) return critical.error();
    const auto barrier = sources_.place(each.barrier.spot);
    if (!barrier) return barrier.error();
    const auto reached = point_where_over(*critical, each.count > 1 || each.ahead);
    if (!reached) return reached.error();
    const auto awaited =
        point_before(*barrier->unit, barrier->file, barrier->line, barrier->function);
    if (!awaited) return awaited.error();
    const std::string name = unused_name(
        name_from(code_at(*critical->unit, critical->file, critical->line), request_.test));
    names_.push_back(name);
    if (each.across_processes) of_processes_.insert(name);
    insert(
        *critical, *reached,
        fmt::format("{}({});",
                    reached->at_end_of_block ? "UNFLAKE_REACHED_AT_END" : "UNFLAKE_REACHED", name));
    insert(*barrier, *awaited,
           each.ahead ? fmt::format("UNFLAKE_AWAIT_EACH({}, {});", name, *each.ahead)
                      : fmt::format("UNFLAKE_AWAIT({}, {});", name, each.count));
    points_.push_back(*awaited);
    return {};
  }

  // What takes a lock is over when all is done that it is taken for, unless that waits for
  // somebody.
  static Result<InsertionPoint> point_where_over(const PatchPlace& critical, bool each_time) {
    const auto statement =
        statement_at(*critical.unit, critical.file, critical.line, critical.function);
    if (!statement || !is_lock(statement->statement.cursor) || waits_in(statement->block))
      return point_after(*critical.unit, critical.file, critical.line, critical.function,
                         each_time);
    InsertionPoint point = *statement;
    point.kind = InsertionPoint::Kind::before;
    point.at_end_of_block = true;
    return point;
  }

  static bool is_lock(CXCursor statement) {
    return clang().getCursorKind(statement) == CXCursor_DeclStmt &&
           first_below(statement, [](CXCursor each) {
             const std::string type = type_name(each);
             return clang().getCursorKind(each) == CXCursor_VarDecl &&
                    (type.starts_with("std::lock_guard<") ||
                     type.starts_with("std::unique_lock<") ||
                     type.starts_with("std::scoped_lock<"));
           }).has_value();
  }

  static bool waits_in(const CodeBlock& block) {
    return first_below(block.owner,
                       [&](CXCursor each) {
                         const size_t at = extent_of(each).begin.offset;
                         return clang().getCursorKind(each) == CXCursor_CallExpr &&
                                block.open < at && at < block.close &&
                                (spelling(each).starts_with("wait") || spelling(each) == "unlock");
                       })
        .has_value();
  }

  void insert(const PatchPlace& place, const InsertionPoint& point, const std::string& statement) {
    for (SourceEdit& edit : insertion(*place.unit, point, statement)) draft_.edits.push_back(edit);
    if (!point.note.empty())
      draft_.cautions.push_back(
          fmt::format("{}: {}", short_place(point.file, point.line), point.note));
    files_[place.file] = place.unit;
  }

  std::string unused_name(const std::string& wanted) const {
    std::string name = wanted;
    for (int i = 2; is_used(name); ++i) name = fmt::format("{}_{}", wanted, i);
    return name;
  }

  bool is_used(const std::string& name) const {
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) return true;
    const auto& units = sources_.units();
    return std::any_of(units.begin(), units.end(), [&](const auto& unit) {
      return unit->text_of(unit->file()).find("(" + name + ")") != std::string::npos;
    });
  }

  Result<void> add_scopes() {
    const auto start = test_start(request_, sources_);
    if (!start) return start.error();
    const auto place = sources_.place(start->point.file, start->point.line);
    if (!place) return place.error();
    std::vector<std::string> scopes;
    for (const std::string& name : names_)
      scopes.push_back(fmt::format("UNFLAKE_SCOPE{}({});",
                                   of_processes_.contains(name) ? "_OF_PROCESSES" : "", name));
    insert(*place, start->point, join(scopes, "\n"));
    points_.push_back(start->point);
    if (!start->fixture.empty())
      draft_.cautions.push_back(
          fmt::format("all tests of {} wait where this one does", printable(start->fixture)));
    return {};
  }

  // One that is there already, or a new one beside what comes first: tests may know of the
  // product's files, but not the other way round.
  std::string header_file() const {
    for (const auto& [file, unit] : files_) {
      const fs::path beside = fs::path(file).parent_path() / header_name;
      std::error_code failed;
      if (fs::exists(beside, failed)) return beside.string();
    }
    const auto critical = find_source(request_.hand_overs[0].critical.spot.file, request_.root);
    return (fs::path(real_path(critical)).parent_path() / header_name).string();
  }

  Result<void> add_header() {
    const std::string header = header_file();
    std::error_code failed;
    if (!fs::exists(header, failed))
      draft_.new_files.push_back({header, std::string(unflake_sync_header())});
    for (const auto& [file, unit] : files_) {
      const std::string path =
          fs::path(header).lexically_relative(fs::path(file).parent_path()).generic_string();
      for (SourceEdit& edit : include_edits(*unit, file, "\"" + path + "\""))
        draft_.edits.push_back(edit);
    }
    return {};
  }

  void describe() {
    const HandOver& first = request_.hand_overs[0];
    const std::string times = first.ahead        ? " each time"
                              : first.count == 1 ? ""
                                                 : fmt::format(" {} times", first.count);
    draft_.what = fmt::format("{} waits until {} was passed{}, by a hand-over of {}",
                              short_place(first.barrier.spot.file, first.barrier.spot.line),
                              short_place(first.critical.spot.file, first.critical.spot.line),
                              times, header_name);
    if (request_.hand_overs.size() > 1)
      draft_.what += fmt::format(", and {} more pairs alike", request_.hand_overs.size() - 1);
  }

  const PatchRequest& request_;
  RepairSources& sources_;
  DraftPatch draft_;
  std::vector<std::string> names_;
  std::set<std::string> of_processes_;  // that more than one process counts
  std::vector<InsertionPoint> points_;
  std::map<std::string, std::shared_ptr<SourceUnit>> files_;
};

}  // namespace

Result<DraftPatch> draft_hand_over(const PatchRequest& request, RepairSources& sources) {
  return HandOverDraft(request, sources).write();
}

Result<DraftPatch> draft_patient_hand_over(const PatchRequest& request, RepairSources& sources) {
  if (!request.patience) return usage_error("no time-out ran out");
  const NewBound& bound = *request.patience;
  auto draft = HandOverDraft(request, sources).write();
  if (!draft) return draft;
  const auto place = sources.place(bound.place.spot);
  if (!place) return place.error();
  auto edit = edit_time_literal({place->file, place->line, bound.api, bound.old_value},
                                bound.new_value, request.compile_commands_folder);
  if (!edit) return edit.error();
  draft->what += fmt::format("; {} waits {} instead of {}", short_place(edit->file, edit->line),
                             format_duration(bound.new_value), format_duration(bound.old_value));
  if (!edit->caution.empty()) draft->cautions.push_back(edit->caution);
  draft->edits.push_back(std::move(*edit));
  return draft;
}

}  // namespace unflake
