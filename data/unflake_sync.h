/* unflake_sync.h: one thread of a test waits until another one has passed a place.
   C99 or C++11, POSIX threads, nothing else. Keep it with your sources; change what you like.

     UNFLAKE_SCOPE(saved);          first in the test: what follows is on to the end of the block
     UNFLAKE_REACHED(saved);        after the statement that must come first, in any thread
     UNFLAKE_REACHED_AT_END(saved); before `return save();`: counts when the block is left
     UNFLAKE_AWAIT(saved, 1);       before the statement that must wait until it has come once
     UNFLAKE_AWAIT_EACH(saved, 1);  in a loop: the n-th time waits until it has come n - 1 times
     UNFLAKE_SCOPE_OF_PROCESSES(saved); in place of UNFLAKE_SCOPE: children that the test forks
                                    count and wait, too; not what they execute

   Counting begins anew with every UNFLAKE_SCOPE, so that a test can be repeated. Tests that run at
   the same time and have a scope of the same name take turns. Where no scope of the name is open,
   in other tests and in the product, nobody counts or waits: both cost a look at one pointer.
   With -DUNFLAKE_SYNC_OFF nothing at all is left of them.

   A wait ends after UNFLAKE_SYNC_SECONDS (10), with a line on stderr, and the test goes on. The
   scope, the places and all that link them share one state, across translation units and shared
   libraries; a plugin needs a program that exports its symbols (-rdynamic). */
#ifndef UNFLAKE_SYNC_H
#define UNFLAKE_SYNC_H

#if defined(UNFLAKE_SYNC_OFF) || !defined(__GNUC__) || \
    !(defined(__unix__) || defined(__unix) || defined(__APPLE__))

#define UNFLAKE_SCOPE(name) struct unflake_sync_is_off
#define UNFLAKE_SCOPE_OF_PROCESSES(name) struct unflake_sync_is_off
#define UNFLAKE_REACHED(name) ((void)0)
#define UNFLAKE_REACHED_AT_END(name) struct unflake_sync_is_off
#define UNFLAKE_AWAIT(name, times) ((void)0)
#define UNFLAKE_AWAIT_EACH(name, ahead) ((void)0)

#else

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef UNFLAKE_SYNC_SECONDS
#define UNFLAKE_SYNC_SECONDS 10
#endif

/* Strict C leaves it out. */
#if !defined(MAP_ANONYMOUS) && defined(__linux__)
#define UNFLAKE_SYNC_ANONYMOUS 0x20
#else
#define UNFLAKE_SYNC_ANONYMOUS MAP_ANONYMOUS
#endif

/* One definition for the whole program, however many files include this. */
#define UNFLAKE_SYNC_SHARED __attribute__((weak, visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

struct unflake_scope {
  const char* name;
  unsigned long reached;
  unsigned long awaited; /* how often in turn */
  unsigned long* shared; /* in place of `reached`, with processes; else 0 */
  unsigned long number; /* of all that were opened */
  int gave_up;          /* a wait was in vain: no other one of this scope waits again */
  pthread_t owner;
  struct unflake_scope* next;
};

struct unflake_sync {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  struct unflake_scope* scopes; /* that are open, the newest first */
  unsigned long opened;
  long process; /* whose they are: a child has those that are shared */
};

extern struct unflake_sync unflake_sync_state;
struct unflake_scope* unflake_scope_named(const char* name, struct unflake_scope* from);
int unflake_sync_is_used(void);
void unflake_scope_open(struct unflake_scope* scope, const char* name);
void unflake_scope_share(struct unflake_scope* scope);
void unflake_scope_close(struct unflake_scope* scope);
unsigned long unflake_scope_count(const struct unflake_scope* scope);
void unflake_sync_pause(void);
void unflake_sync_reached(const char* name);
void unflake_sync_reached_at_end(const char** name);
void unflake_sync_await(const char* name, unsigned long times, const char* file, int line);
void unflake_sync_await_in_child(const char* name, unsigned long times);
void unflake_sync_await_each(const char* name, unsigned long ahead, const char* file, int line);

UNFLAKE_SYNC_SHARED struct unflake_sync unflake_sync_state = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};

UNFLAKE_SYNC_SHARED struct unflake_scope* unflake_scope_named(const char* name,
                                                              struct unflake_scope* from) {
  while (from != 0 && strcmp(from->name, name) != 0) from = from->next;
  return from;
}

UNFLAKE_SYNC_SHARED int unflake_sync_is_used(void) {
  return __atomic_load_n(&unflake_sync_state.scopes, __ATOMIC_ACQUIRE) != 0 &&
         __atomic_load_n(&unflake_sync_state.process, __ATOMIC_RELAXED) == (long)getpid();
}

UNFLAKE_SYNC_SHARED void unflake_scope_open(struct unflake_scope* scope, const char* name) {
  struct unflake_sync* sync = &unflake_sync_state;
  const struct unflake_scope* other;
  struct timespec end = {0, 0};
  unsigned long before = 0;
  int failed = 0;
  if (__atomic_load_n(&sync->scopes, __ATOMIC_ACQUIRE) != 0 &&
      !unflake_sync_is_used()) { /* the parent's: its threads are not here */
    static const struct unflake_sync nobodys = {PTHREAD_MUTEX_INITIALIZER,
                                                PTHREAD_COND_INITIALIZER, 0, 0, 0};
    memcpy(sync, &nobodys, sizeof nobodys);
  }
  scope->name = name;
  scope->reached = 0;
  scope->awaited = 0;
  scope->shared = 0;
  scope->gave_up = 0;
  scope->owner = pthread_self();
  pthread_mutex_lock(&sync->mutex);
  while ((other = unflake_scope_named(name, sync->scopes)) != 0 &&
         !pthread_equal(other->owner, scope->owner)) {
    if (other->number != before) { /* somebody else's turn: patience begins anew */
      before = other->number;
      end.tv_sec = time(0) + UNFLAKE_SYNC_SECONDS;
    } else if (failed) {
      fprintf(stderr, "unflake_sync: another test of `%s` still runs after %d s\n", name,
              UNFLAKE_SYNC_SECONDS);
      break;
    }
    failed = pthread_cond_timedwait(&sync->changed, &sync->mutex, &end) != 0;
  }
  scope->number = ++sync->opened;
  scope->next = sync->scopes;
  __atomic_store_n(&sync->process, (long)getpid(), __ATOMIC_RELAXED);
  __atomic_store_n(&sync->scopes, scope, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&sync->mutex);
}

/* Before the test starts a process. */
UNFLAKE_SYNC_SHARED void unflake_scope_share(struct unflake_scope* scope) {
  void* const shared = mmap(0, sizeof *scope->shared, PROT_READ | PROT_WRITE,
                            MAP_SHARED | UNFLAKE_SYNC_ANONYMOUS, -1, 0);
  if (shared != MAP_FAILED)
    __atomic_store_n(&scope->shared, (unsigned long*)shared, __ATOMIC_RELEASE);
}

UNFLAKE_SYNC_SHARED unsigned long unflake_scope_count(const struct unflake_scope* scope) {
  return scope->shared != 0 ? __atomic_load_n(scope->shared, __ATOMIC_ACQUIRE) : scope->reached;
}

/* Nobody wakes a process that waits for another one. */
UNFLAKE_SYNC_SHARED void unflake_sync_pause(void) {
  poll(0, 0, 1);
}

UNFLAKE_SYNC_SHARED void unflake_scope_close(struct unflake_scope* scope) {
  struct unflake_sync* sync = &unflake_sync_state;
  struct unflake_scope** link;
  if (!unflake_sync_is_used()) return;
  pthread_mutex_lock(&sync->mutex);
  for (link = &sync->scopes; *link != 0; link = &(*link)->next)
    if (*link == scope) {
      __atomic_store_n(link, scope->next, __ATOMIC_RELEASE);
      break;
    }
  if (scope->shared != 0) munmap(scope->shared, sizeof *scope->shared);
  pthread_cond_broadcast(&sync->changed);
  pthread_mutex_unlock(&sync->mutex);
}

/* A child has the scopes of its parent and none of its threads: it takes no lock. */
UNFLAKE_SYNC_SHARED void unflake_sync_reached(const char* name) {
  struct unflake_sync* sync = &unflake_sync_state;
  struct unflake_scope* scope = __atomic_load_n(&sync->scopes, __ATOMIC_ACQUIRE);
  const int is_ours = unflake_sync_is_used();
  if (scope == 0) return;
  if (is_ours) pthread_mutex_lock(&sync->mutex);
  scope = sync->scopes;
  while ((scope = unflake_scope_named(name, scope)) != 0) {
    if (scope->shared != 0)
      __atomic_add_fetch(scope->shared, 1, __ATOMIC_RELEASE);
    else
      ++scope->reached;
    scope = scope->next;
  }
  if (!is_ours) return;
  pthread_cond_broadcast(&sync->changed);
  pthread_mutex_unlock(&sync->mutex);
}

UNFLAKE_SYNC_SHARED void unflake_sync_reached_at_end(const char** name) {
  unflake_sync_reached(*name);
}

UNFLAKE_SYNC_SHARED void unflake_sync_await_in_child(const char* name, unsigned long times) {
  const time_t end = time(0) + UNFLAKE_SYNC_SECONDS;
  struct unflake_scope* scope =
      unflake_scope_named(name, __atomic_load_n(&unflake_sync_state.scopes, __ATOMIC_ACQUIRE));
  if (scope == 0 || scope->shared == 0) return;
  while (unflake_scope_count(scope) < times && !scope->gave_up) {
    if (time(0) > end) scope->gave_up = 1;
    unflake_sync_pause();
  }
}

UNFLAKE_SYNC_SHARED void unflake_sync_await(const char* name, unsigned long times,
                                            const char* file, int line) {
  struct unflake_sync* sync = &unflake_sync_state;
  struct unflake_scope* scope;
  struct timespec end = {0, 0};
  int failed = 0;
  if (!unflake_sync_is_used()) {
    unflake_sync_await_in_child(name, times);
    return;
  }
  end.tv_sec = time(0) + UNFLAKE_SYNC_SECONDS;
  pthread_mutex_lock(&sync->mutex);
  /* Looked up again each time: the test may be over meanwhile. */
  while ((scope = unflake_scope_named(name, sync->scopes)) != 0 &&
         unflake_scope_count(scope) < times && !scope->gave_up) {
    if (failed) {
      fprintf(stderr, "%s:%d: unflake_sync: `%s` was reached %lu of %lu times within %d s\n", file,
              line, name, unflake_scope_count(scope), times, UNFLAKE_SYNC_SECONDS);
      scope->gave_up = 1;
    } else if (scope->shared != 0) {
      pthread_mutex_unlock(&sync->mutex);
      unflake_sync_pause();
      failed = time(0) >= end.tv_sec;
      pthread_mutex_lock(&sync->mutex);
    } else {
      failed = pthread_cond_timedwait(&sync->changed, &sync->mutex, &end) != 0;
    }
  }
  pthread_mutex_unlock(&sync->mutex);
}

UNFLAKE_SYNC_SHARED void unflake_sync_await_each(const char* name, unsigned long ahead,
                                                 const char* file, int line) {
  struct unflake_sync* sync = &unflake_sync_state;
  struct unflake_scope* scope = __atomic_load_n(&sync->scopes, __ATOMIC_ACQUIRE);
  const int is_ours = unflake_sync_is_used();
  unsigned long turn = 0;
  if (scope == 0) return;
  if (is_ours) pthread_mutex_lock(&sync->mutex);
  scope = unflake_scope_named(name, sync->scopes);
  if (scope != 0) turn = ++scope->awaited;
  if (is_ours) pthread_mutex_unlock(&sync->mutex);
  if (turn > ahead) unflake_sync_await(name, turn - ahead, file, line);
}

#ifdef __cplusplus
} /* extern "C" */

struct unflake_scope_guard : unflake_scope {
  explicit unflake_scope_guard(const char* called, bool with_processes = false)
      : unflake_scope() {
    unflake_scope_open(this, called);
    if (with_processes) unflake_scope_share(this);
  }
  ~unflake_scope_guard() { unflake_scope_close(this); }
  unflake_scope_guard(const unflake_scope_guard&) = delete;
  unflake_scope_guard& operator=(const unflake_scope_guard&) = delete;
};

struct unflake_end_guard {
  explicit unflake_end_guard(const char* name) : name_(name) {}
  ~unflake_end_guard() { unflake_sync_reached(name_); }
  unflake_end_guard(const unflake_end_guard&) = delete;
  unflake_end_guard& operator=(const unflake_end_guard&) = delete;
  const char* const name_;
};

#define UNFLAKE_SCOPE(name) unflake_scope_guard unflake_scope_##name{#name}
#define UNFLAKE_SCOPE_OF_PROCESSES(name) \
  unflake_scope_guard unflake_scope_##name { #name, true }
#define UNFLAKE_REACHED_AT_END(name) const unflake_end_guard unflake_end_##name{#name}
#else
#define UNFLAKE_SCOPE(name)                                                                  \
  struct unflake_scope unflake_scope_##name __attribute__((cleanup(unflake_scope_close))); \
  unflake_scope_open(&unflake_scope_##name, #name)
#define UNFLAKE_SCOPE_OF_PROCESSES(name) \
  UNFLAKE_SCOPE(name);                   \
  unflake_scope_share(&unflake_scope_##name)
#define UNFLAKE_REACHED_AT_END(name) \
  const char* unflake_end_##name     \
      __attribute__((unused, cleanup(unflake_sync_reached_at_end))) = #name
#endif

#define UNFLAKE_REACHED(name) unflake_sync_reached(#name)
#define UNFLAKE_AWAIT(name, times) unflake_sync_await(#name, times, __FILE__, __LINE__)
#define UNFLAKE_AWAIT_EACH(name, ahead) unflake_sync_await_each(#name, ahead, __FILE__, __LINE__)

#endif
#endif
