#pragma once

#include "model/events.h"
#include "report/layout.h"

namespace unflake {

// One JSON object per event and line, for programs; docs/formats.md describes every field. Each
// line is one write, so that a reader never sees half an event of a session that is killed.
class JsonLines : public Consumer {
 public:
  explicit JsonLines(Sink& sink) : sink_(sink) {}
  void on(const Event& event) override;

 private:
  Sink& sink_;
};

}  // namespace unflake
