// What differs from system to system, behind one face: for programs in C.
#pragma once

#include <pthread.h>
#include <sys/types.h>

typedef pthread_mutex_t port_mutex;
typedef pthread_cond_t port_cond;
typedef pthread_t port_thread;

void port_mutex_init(port_mutex* mutex);
void port_mutex_lock(port_mutex* mutex);
void port_mutex_unlock(port_mutex* mutex);

void port_cond_init(port_cond* cond);
void port_cond_wait(port_cond* cond, port_mutex* mutex);
void port_cond_signal(port_cond* cond);

void port_thread_start(port_thread* thread, const char* name, void (*body)(void*), void* argument);
void port_thread_join(port_thread thread);

void port_sleep_ms(int milliseconds);

// Runs this program again, with two words; the process is the caller's to end.
pid_t port_spawn_self(const char* word, const char* argument);
// Asks it to end, and waits until it has.
void port_stop(pid_t process);

// Sockets in the file system; negative when they cannot be had.
int port_listen(const char* path);
int port_accept(int door);
int port_connect(const char* path);
