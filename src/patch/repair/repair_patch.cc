#include "patch/repair/repair_patch.h"

#include <fmt/format.h>

#include <algorithm>

#include "patch/repair/repair_sources.h"
#include "util/text.h"

namespace unflake {
namespace {

Result<RepairPatch> finished(const PatchRequest& request, RepairSources& sources,
                             DraftPatch draft) {
  if (!draft.is_tried)
    if (auto tried = sources.try_edits(draft.edits, draft.new_files); !tried) return tried.error();
  auto diff = unified_diff(draft.edits, request.root, draft.new_files);
  if (!diff) return diff.error();
  return RepairPatch{draft.idiom, std::move(draft.what), std::move(*diff),
                     std::move(draft.cautions), true};
}

using Draft = Result<DraftPatch> (*)(const PatchRequest&, RepairSources&);

struct Idiom {
  RepairIdiom idiom;
  Draft draft;
};

// A maintainer likes the first ones best.
constexpr Idiom idioms[] = {
    {RepairIdiom::bound, draft_bound},  // where it is of use, nothing else is
    {RepairIdiom::definition, draft_definition},
    {RepairIdiom::join, draft_join},
    {RepairIdiom::notify, draft_notify},
    {RepairIdiom::poll, draft_poll},
    {RepairIdiom::poll, draft_poll_keeping},
    {RepairIdiom::hand_over, draft_hand_over},
    {RepairIdiom::hand_over, draft_patient_hand_over},
};

bool is_wanted(const PatchRequest& request, RepairIdiom idiom) {
  if (idiom == RepairIdiom::bound && !request.bound) return false;
  if (request.idioms.empty()) return request.bound.has_value() == (idiom == RepairIdiom::bound);
  return std::find(request.idioms.begin(), request.idioms.end(), idiom) != request.idioms.end();
}

}  // namespace

Result<std::vector<RepairPatch>> patches_for(const PatchRequest& request,
                                             std::vector<std::string>* why_not) {
  RepairSources sources(request);
  std::vector<RepairPatch> patches;
  std::optional<Error> last;
  std::optional<RepairIdiom> before;
  for (const Idiom& each : idioms) {
    if (!is_wanted(request, each.idiom)) continue;
    const bool is_variant = before == each.idiom;
    before = each.idiom;
    sources.restore();
    auto draft = each.draft(request, sources);
    auto patch =
        draft ? finished(request, sources, std::move(*draft)) : Result<RepairPatch>(draft.error());
    if (patch) {
      patches.push_back(std::move(*patch));
      continue;
    }
    if (is_variant && !(each.draft == draft_patient_hand_over && request.patience)) continue;
    // Hardly any test is of such a kind: nobody misses it.
    if (each.idiom == RepairIdiom::definition) continue;
    last = patch.error();
    if (why_not != nullptr)
      why_not->push_back(fmt::format("{}: {}", to_string(each.idiom), to_string(patch.error())));
  }
  if (patches.empty())
    return last ? *last
                : usage_error("none of the wanted idioms is one that patches are written in");
  return patches;
}

}  // namespace unflake
