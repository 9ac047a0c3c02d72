#define _GNU_SOURCE
#include "port.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void check(int error) {
  if (error != 0) abort();
}

void port_mutex_init(port_mutex* mutex) {
  check(pthread_mutex_init(mutex, NULL));
}

void port_mutex_lock(port_mutex* mutex) {
  check(pthread_mutex_lock(mutex));
}

void port_mutex_unlock(port_mutex* mutex) {
  check(pthread_mutex_unlock(mutex));
}

void port_cond_init(port_cond* cond) {
  check(pthread_cond_init(cond, NULL));
}

void port_cond_wait(port_cond* cond, port_mutex* mutex) {
  check(pthread_cond_wait(cond, mutex));
}

void port_cond_signal(port_cond* cond) {
  check(pthread_cond_signal(cond));
}

typedef struct {
  char name[16];
  void (*body)(void*);
  void* argument;
} port_start;

static void* run(void* given) {
  const port_start start = *(port_start*)given;
  free(given);
  pthread_setname_np(pthread_self(), start.name);
  start.body(start.argument);
  return NULL;
}

void port_thread_start(port_thread* thread, const char* name, void (*body)(void*), void* argument) {
  port_start* start = calloc(1, sizeof *start);
  if (start == NULL) abort();
  strncpy(start->name, name, sizeof start->name - 1);
  start->body = body;
  start->argument = argument;
  check(pthread_create(thread, NULL, run, start));
}

void port_thread_join(port_thread thread) {
  check(pthread_join(thread, NULL));
}

void port_sleep_ms(int milliseconds) {
  struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}

pid_t port_spawn_self(const char* word, const char* argument) {
  const pid_t process = fork();
  if (process != 0) return process;
  execl("/proc/self/exe", "self", word, argument, (char*)NULL);
  _exit(127);
}

void port_stop(pid_t process) {
  kill(process, SIGTERM);
  while (waitpid(process, NULL, 0) < 0 && errno == EINTR) continue;
}

static struct sockaddr_un address_of(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  return address;
}

int port_listen(const char* path) {
  const struct sockaddr_un address = address_of(path);
  const int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(door, (const struct sockaddr*)&address, sizeof address) != 0) return -1;
  return listen(door, 4) == 0 ? door : -1;
}

int port_accept(int door) {
  return accept(door, NULL, NULL);
}

int port_connect(const char* path) {
  const struct sockaddr_un address = address_of(path);
  const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(client, (const struct sockaddr*)&address, sizeof address) == 0) return client;
  close(client);
  return -1;
}
