#include <errno.h>
#include <linux/prctl.h>
#include <pthread.h>

#include "agent/real.h"
#include "agent/record/threads.h"

// What a program calls its threads. No call of these is a site: they only tell people who is who.
namespace unflake::agent {

HOOK(int, pthread_setname_np, (pthread_t thread, const char* title)) {
  resolve_real_functions();
  const int result = real::pthread_setname_np(thread, title);
  if (result != ERANGE) title_thread(thread, title, result == 0 ? Titled::living : Titled::ended);
  return result;
}

// Variadic as libc declares it; all of its arguments are words.
HOOK(int, prctl, (int what, unsigned long a, unsigned long b, unsigned long c, unsigned long d)) {
  resolve_real_functions();
  const int result = real::prctl(what, a, b, c, d);
  if (what == PR_SET_NAME && result == 0)
    title_thread(pthread_self(), reinterpret_cast<const char*>(a), Titled::living);
  return result;
}

}  // namespace unflake::agent
