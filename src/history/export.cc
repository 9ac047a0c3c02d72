#include "history/export.h"

#include "history/spill_json.h"
#include "util/json.h"

namespace unflake {
namespace {

class Export {
 public:
  Export(Store& store, TimePoint since, const TakeLine& take)
      : store_(store), since_(since), take_(take) {}

  Result<ExportCount> operator()(const std::string& project) {
    if (auto written = write(export_header(project)); !written) return written.error();
    if (auto written = sessions(); !written) return written.error();
    if (auto written = events(); !written) return written.error();
    if (auto written = causes(); !written) return written.error();
    if (auto written = write(export_end(count_.sessions, count_.runs)); !written)
      return written.error();
    return count_;
  }

 private:
  Result<void> sessions() {
    bool wanted = false;
    const Store::Visitor visitor{
        .session =
            [&](const SessionRecord& session) {
              wanted = session.started >= since_;
              count_.sessions += wanted;
              return wanted ? write(to_json(session)) : Result<void>();
            },
        .run =
            [&](const RunRecord& run) {
              count_.runs += wanted;
              return wanted ? write(to_json(run)) : Result<void>();
            },
        .suppression =
            [&](const TestId& test, const std::string& signature) {
              return wanted ? write(to_json(SuppressedFailure{test, signature})) : Result<void>();
            }};
    return store_.visit(visitor);
  }

  Result<void> events() {
    const auto events = store_.lifecycle({since_, TimePoint::max()});
    if (!events) return events.error();
    for (const LifecycleEvent& event : *events) {
      ++count_.events;
      if (auto written = write(to_json(event)); !written) return written;
    }
    return {};
  }

  Result<void> causes() {
    const auto causes = store_.causes();
    if (!causes) return causes.error();
    for (const CauseRecord& cause : *causes) {
      if (cause.opened < since_) continue;
      ++count_.causes;
      if (auto written = write(to_json(cause)); !written) return written;
    }
    return {};
  }

  Result<void> write(const nlohmann::json& line) {
    text_ = json_text(line);
    text_ += '\n';
    return take_(text_);
  }

  Store& store_;
  TimePoint since_;
  const TakeLine& take_;
  std::string text_;
  ExportCount count_;
};

}  // namespace

Result<ExportCount> export_history(Store& store, const std::string& project, TimePoint since,
                                   const TakeLine& take) {
  return Export(store, since, take)(project);
}

}  // namespace unflake
