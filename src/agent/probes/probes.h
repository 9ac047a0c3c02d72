#pragma once

#include <stdint.h>
#include <ucontext.h>

namespace unflake::agent {

// Puts the plan's probes into all images that are loaded, and into those that will be. Called once
// per process, while it has one thread.
void install_probes();

// The same before the process is part of a run, for runs that will all have the plan in this
// memory: what they are forked from has the probes already.
void install_probes_ahead(const char* memory_name);

// Memory accesses have probes from when there are two threads. Whether they may be taken out when
// one is left: then this is called again before the next thread.
bool arm_accesses();

// Called by the probe engine at every hit, on the stack of the thread that hit it, with its
// registers; rip is the probed address. May sleep. Must be left by returning. Not called for probes
// without a site that report no failure: their hits are only counted. False: the probe is needed no
// longer.
bool on_probe(uint32_t probe, ucontext_t* context);

// Where a thread was in the copy of an instruction, and where the program believes it to be.
struct Displacement {
  uint64_t rip = 0;  // 0: it was in the program's own code
  uint64_t rsp = 0;
  uint64_t program_rip = 0;
  uint64_t program_rsp = 0;
};

// Makes the registers of an interrupted thread those that it would have without probes. Whoever
// looks at the context of any signal but a probe's must call it first.
Displacement translate(ucontext_t* context);

// Lets the thread go on in the copy, unless a signal handler has sent it elsewhere.
void restore(const Displacement& displacement, ucontext_t* context);

}  // namespace unflake::agent
