#include "trace/thread_book.h"

#include <fmt/format.h>

#include "protocol/agent_protocol.h"

namespace unflake {
namespace {

// `server!` before the names of threads in another program than the test's own.
std::string place_in_program(const Spawned& thread) {
  const std::string program = thread.executable.empty() ? "" : thread.executable + "!";
  if (!thread.place.empty()) return program + thread.place;
  return program + (thread.name == thread.thread_class ? "main" : "unknown");
}

bool is_numbered(const Spawned& thread) {
  return !thread.place.empty() || thread.name != thread.thread_class;
}

}  // namespace

const std::string& ThreadBook::class_text(const Spawned& thread) {
  const auto [known, is_new] = class_texts_.try_emplace({thread.executable, thread.thread_class});
  if (is_new) {
    const std::string place = place_in_program(thread);
    const bool shared = classes_of_place_[place].size() > 1;
    known->second = shared ? fmt::format("{}~{:04x}", place, thread.thread_class & 0xffff) : place;
  }
  return known->second;
}

std::vector<ThreadName> ThreadBook::name_threads(const std::vector<Spawned>& threads) {
  for (const Spawned& thread : threads)
    classes_of_place_[place_in_program(thread)].insert(thread.thread_class);
  std::vector<ThreadName> names;
  std::map<uint64_t, uint32_t> unknown;  // these have no ordinal of their own
  for (const Spawned& thread : threads) {
    ThreadName name{class_text(thread), thread.name, thread.thread_class};
    if (is_numbered(thread)) {
      const uint32_t ordinal =
          thread.place.empty() ? unknown[thread.thread_class]++ : thread.ordinal;
      known_[name.text + "#*"] = {name.text + "#*", thread.name, thread.thread_class};
      name.text += fmt::format("#{}", uint64_t{ordinal} + 1);
    }
    known_[name.text] = name;
    names.push_back(std::move(name));
  }
  return names;
}

const ThreadName* ThreadBook::find(const std::string& text) const {
  const auto found = known_.find(text);
  return found == known_.end() ? nullptr : &found->second;
}

std::vector<std::string> ThreadBook::names() const {
  std::vector<std::string> names;
  for (const auto& [text, name] : known_) names.push_back(text);
  return names;
}

}  // namespace unflake
