#include "agent/inherit.h"

#include <dlfcn.h>
#include <string.h>

#include "agent/memory.h"

namespace unflake::agent {
namespace {

constexpr char preload_name[] = "LD_PRELOAD=";

char library[preload_size / 2];
char memory[256];  // "UNFLAKE_AGENT=..."

bool starts_with(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool is_memory(const char* entry) {
  const size_t size = strlen(protocol::memory_variable);
  return strncmp(entry, protocol::memory_variable, size) == 0 && entry[size] == '=';
}

bool has_both(char* const* environment) {
  bool preload = false, named = false;
  for (; *environment != nullptr; ++environment) {
    preload |= starts_with(*environment, preload_name) && strstr(*environment, library) != nullptr;
    named |= strcmp(*environment, memory) == 0;
  }
  return preload && named;
}

// The child's own libraries stay behind the agent, as long as there is room for them.
void write_preload(char* out, const char* own) {
  strcpy(out, preload_name);
  strcat(out, library);
  if (own == nullptr || *own == '\0' || strstr(own, library) != nullptr) return;
  if (strlen(out) + strlen(own) + 2 > preload_size) return;
  strcat(out, ":");
  strcat(out, own);
}

}  // namespace

void remember_inheritance(const char* memory_name) {
  Dl_info info{};
  if (dladdr(library, &info) == 0 || info.dli_fname == nullptr) return;
  if (strlen(info.dli_fname) >= sizeof library || strlen(memory_name) + 32 > sizeof memory) return;
  strcpy(library, info.dli_fname);
  strcpy(memory, protocol::memory_variable);
  strcat(memory, "=");
  strcat(memory, memory_name);
}

size_t followed_size(char* const* environment) {
  size_t count = 0;
  while (environment != nullptr && environment[count] != nullptr) ++count;
  return count + 3;
}

char* const* follow_environment(char* const* environment, char** room, char* preload) {
  if (!attached() || library[0] == '\0') return environment;
  if (environment != nullptr && has_both(environment)) return environment;
  const char* own = nullptr;
  size_t count = 0;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    if (starts_with(*environment, preload_name))
      own = *environment + strlen(preload_name);
    else if (!is_memory(*environment))
      room[count++] = *environment;
  }
  write_preload(preload, own);
  room[count++] = preload;
  room[count++] = memory;
  room[count] = nullptr;
  return room;
}

}  // namespace unflake::agent
