#pragma once

#include <algorithm>
#include <string>

#include "model/trace.h"
#include "protocol/agent_protocol.h"

namespace unflake {

// A trace written down by hand: threads and sites by name, times in milliseconds.
class TraceBuilder {
 public:
  TraceBuilder() { trace_.processes.push_back({100, no_index, no_index, "test", {}, {}}); }

  TraceBuilder& thread(const std::string& name, const std::string& parent = "", double started = 0,
                       double ended = 0) {
    TracedThread thread;
    thread.process = process_;
    thread.tid = 100 + static_cast<int>(trace_.threads.size());
    thread.parent = parent.empty() ? no_index : number_of(parent);
    thread.name = {name, trace_.threads.size() + 1, 1};
    thread.started = time(started);
    thread.ended = time(ended);
    trace_.threads.push_back(thread);
    return *this;
  }

  // The threads that follow are in another process.
  TraceBuilder& process() {
    process_ = static_cast<uint32_t>(trace_.processes.size());
    trace_.processes.push_back({101, 0, no_index, "other", {}, {}});
    return *this;
  }

  TraceBuilder& call(const std::string& thread, const std::string& site, double enter, double exit,
                     uint64_t object = 0) {
    TracedCall call;
    call.thread = number_of(thread);
    call.site = site_number(site);
    call.enter = time(enter);
    call.exit = time(exit);
    call.object = object;
    trace_.calls.push_back(call);
    return *this;
  }

  TraceBuilder& delay(const std::string& thread, const std::string& site, double enter,
                      double exit) {
    call(thread, site, enter, exit);
    trace_.calls.back().is_intervention = true;
    return *this;
  }

  // These are about the call before them.
  TraceBuilder& asks_for(double milliseconds) {
    trace_.calls.back().value = static_cast<int64_t>(milliseconds * 1e6);
    return *this;
  }
  TraceBuilder& times_out() {
    trace_.calls.back().timed_out = true;
    return *this;
  }
  TraceBuilder& never_ends() {
    trace_.calls.back().unfinished = true;
    return *this;
  }
  TraceBuilder& returns(int32_t result) {
    trace_.calls.back().result = result;
    return *this;
  }
  TraceBuilder& in(const std::string& function, const std::string& file, int line) {
    trace_.calls.back().stack = static_cast<uint32_t>(trace_.stacks.size());
    trace_.stacks.push_back({{{no_index, 0, {{function, file, line, 0, false}}}}});
    return *this;
  }

  // The next frame of that stack, in the project's own code.
  TraceBuilder& called_at(const std::string& function, const std::string& file, int line) {
    if (trace_.images.empty()) trace_.images.push_back({"/build/test", "", true});
    trace_.stacks.back().frames.push_back({0, 0, {{function, file, line, 0, false}}, 0});
    return *this;
  }

  TraceBuilder& fails(const std::string& thread, const std::string& file, int line, double at,
                      const std::string& function = "Test::TestBody") {
    TracedFailure failure;
    failure.kind = "assertion";
    failure.thread = number_of(thread);
    failure.file = file;
    failure.line = line;
    failure.at = time(at);
    failure.stack = {{{no_index, 0, {{function, file, line, 0, false}}}}};
    trace_.failures.push_back(failure);
    return *this;
  }

  Trace trace() const {
    Trace sorted = trace_;
    std::ranges::stable_sort(sorted.calls, [](const TracedCall& a, const TracedCall& b) {
      return std::pair(a.thread, a.enter) < std::pair(b.thread, b.enter);
    });
    return sorted;
  }

 private:
  static Duration time(double milliseconds) {
    return Duration(static_cast<int64_t>(milliseconds * 1000));
  }

  uint32_t number_of(const std::string& thread) const {
    for (uint32_t i = 0; i < trace_.threads.size(); ++i)
      if (trace_.threads[i].name.text == thread) return i;
    return no_index;
  }

  uint32_t site_number(const std::string& text) {
    const SiteName name = parse_site(text).value();
    for (uint32_t i = 0; i < trace_.sites.size(); ++i)
      if (trace_.sites[i].name == name) return i;
    TracedSite site{name, "probe", text, no_index, 0, 0};
    for (uint16_t i = 0; i < std::size(protocol::api_facts); ++i) {
      if (protocol::api_facts[i].name != name.api) continue;
      site.group = protocol::api_facts[i].group_name;
      site.api = i;
    }
    trace_.sites.push_back(site);
    return static_cast<uint32_t>(trace_.sites.size() - 1);
  }

  Trace trace_;
  uint32_t process_ = 0;
};

}  // namespace unflake
