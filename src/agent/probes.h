#pragma once

#include <stdint.h>
#include <ucontext.h>

namespace unflake::agent {

// Puts the plan's probes into all images that are loaded, and into those that will be. Called once
// per process, while it has one thread.
void install_probes();

// Called by the probe engine at every hit, on the stack of the thread that hit it, with its
// registers; rip is the probed address. May sleep. Must be left by returning.
void on_probe(uint32_t probe, ucontext_t* context);

}  // namespace unflake::agent
