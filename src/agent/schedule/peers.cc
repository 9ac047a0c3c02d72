#include "agent/schedule/peers.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "agent/hash.h"
#include "agent/raw.h"
#include "agent/schedule/state.h"

namespace unflake::agent {
namespace {

// A port, whatever the address: all of a run are on one machine. Or where a socket is in the file
// system; one without a name says nothing about who has it.
struct SocketName {
  enum class Kind : uint8_t { none, port, path } kind = Kind::none;
  uint64_t value = 0;
};

SocketName name_of(const sockaddr_storage& address, uint32_t size) {
  constexpr size_t before_path = offsetof(sockaddr_un, sun_path);
  if (address.ss_family == AF_INET && size >= sizeof(sockaddr_in))
    return {SocketName::Kind::port, reinterpret_cast<const sockaddr_in&>(address).sin_port};
  if (address.ss_family == AF_INET6 && size >= sizeof(sockaddr_in6))
    return {SocketName::Kind::port, reinterpret_cast<const sockaddr_in6&>(address).sin6_port};
  if (address.ss_family != AF_UNIX || size <= before_path || size > sizeof address) return {};
  uint64_t hash = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&address);
  for (uint32_t i = before_path; i < size && (i == before_path || bytes[i] != 0); ++i)
    hash = mix(hash, bytes[i]);
  return {SocketName::Kind::path, hash};
}

// __NR_getsockname or __NR_getpeername; an error as the system gives it.
long ask_name(long call, int socket, SocketName& name) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  const long result = raw_syscall(call, socket, as_word(&address), as_word(&size));
  name = failed(result) ? SocketName{} : name_of(address, size);
  return result;
}

void remember(const SocketName& name) {
  if (name.kind == SocketName::Kind::port && name.value != 0)
    state->own_ports[name.value / 64] |= uint64_t{1} << name.value % 64;
  if (name.kind == SocketName::Kind::path && state->own_path_count < most_own_paths)
    state->own_paths[state->own_path_count++] = name.value;
}

bool is_outside(const SocketName& name) {
  if (name.kind == SocketName::Kind::none) return false;
  if (name.kind == SocketName::Kind::port)
    return name.value != 0 && (state->own_ports[name.value / 64] >> name.value % 64 & 1) == 0;
  if (state->own_path_count == most_own_paths) return false;
  for (uint32_t i = 0; i < state->own_path_count; ++i)
    if (state->own_paths[i] == name.value) return false;
  return true;
}

// On this machine that takes no time, unless the other one does not accept.
bool is_being_connected(int socket) {
  pollfd connected{socket, POLLOUT, 0};
  return raw_syscall(__NR_poll, as_word(&connected), 1, 0) == 0;
}

bool may_be_outside(const pollfd& descriptor) {
  SocketName peer;
  const long result = ask_name(__NR_getpeername, descriptor.fd, peer);
  if (!failed(result)) return is_outside(peer);
  if (result == -ENOTCONN) return (descriptor.events & POLLOUT) != 0;
  return result == -ENOTSOCK;  // an epoll, for whatever is in it
}

}  // namespace

void note_names(int socket, const void* wanted, uint32_t wanted_size) {
  if (!is_controlled() || this_participant() == nullptr) return;
  SocketName own, peer;
  ask_name(__NR_getsockname, socket, own);
  remember(own);
  const long result = ask_name(__NR_getpeername, socket, peer);
  if (result == -ENOTCONN && wanted != nullptr && wanted_size <= sizeof(sockaddr_storage) &&
      is_being_connected(socket)) {
    sockaddr_storage address{};
    __builtin_memcpy(&address, wanted, wanted_size);
    peer = name_of(address, wanted_size);
  }
  if (!is_outside(peer)) return;
  state->has_outside_peers = true;
  note_unrepeatable("a connection with somebody outside of the test");
}

bool waits_for_outside_peer(const Participant& thread) {
  if (!state->has_outside_peers || thread.next.wait != Wait::descriptors) return false;
  if (!is_own(thread)) return true;
  for (uint32_t i = 0; i < thread.next.descriptor_count; ++i)
    if (may_be_outside(thread.next.descriptors[i])) return true;
  return false;
}

}  // namespace unflake::agent
