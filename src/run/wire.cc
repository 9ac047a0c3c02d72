#include "run/wire.h"

#include <sys/socket.h>

#include <cerrno>

namespace unflake {
namespace {

bool send_all(int socket, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(socket, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, char* data, size_t size) {
  while (size > 0) {
    const ssize_t received = ::recv(socket, data, size, MSG_WAITALL);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    data += received;
    size -= static_cast<size_t>(received);
  }
  return true;
}

}  // namespace

bool send_message(int socket, const std::string& bytes) {
  const size_t size = bytes.size();
  std::string framed(reinterpret_cast<const char*>(&size), sizeof size);
  framed += bytes;
  return send_all(socket, framed.data(), framed.size());
}

std::optional<std::string> receive_message(int socket) {
  size_t size = 0;
  if (!receive_all(socket, reinterpret_cast<char*>(&size), sizeof size)) return std::nullopt;
  std::string bytes(size, '\0');
  if (!receive_all(socket, bytes.data(), size)) return std::nullopt;
  return bytes;
}

}  // namespace unflake
