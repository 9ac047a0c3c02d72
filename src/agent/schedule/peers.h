#pragma once

#include "agent/schedule/participants.h"

// Whether the other end of a socket is in this run too. What others send takes real time, and time
// must not jump while a thread waits for it.
namespace unflake::agent {

// After a socket was bound, connected or accepted. `peer`: whom it was to be connected with;
// nullptr: nobody, or it is connected.
void note_names(int socket, const void* peer = nullptr, uint32_t peer_size = 0);

// One of its descriptors may have to do with somebody outside.
bool waits_for_outside_peer(const Participant& thread);

}  // namespace unflake::agent
