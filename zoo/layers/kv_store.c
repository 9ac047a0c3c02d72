// A store in a process of its own, and a check that it keeps what it is given.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/port.h"

enum { key_size = 8, value_size = 24 };

typedef struct {
  char verb;  // 's' to set, 'g' to get
  char key[key_size];
  char value[value_size];
} request;

static void answer(int client, char* stored) {
  request asked;
  while (recv(client, &asked, sizeof asked, MSG_WAITALL) == sizeof asked) {
    if (asked.verb == 's') memcpy(stored, asked.value, value_size);
    send(client, stored, value_size, MSG_NOSIGNAL);
  }
}

static int serve(const char* path) {
  char stored[value_size] = "";
  const int door = port_listen(path);  // critical
  if (door < 0) return EXIT_FAILURE;
  for (int client = port_accept(door); client >= 0; client = port_accept(door)) {
    answer(client, stored);
    close(client);
  }
  return EXIT_SUCCESS;
}

static void ask(int store, request asked, char* value) {
  send(store, &asked, sizeof asked, MSG_NOSIGNAL);
  if (recv(store, value, value_size, MSG_WAITALL) != value_size) value[0] = '\0';
}

static int keeps_a_value(const char* path) {
  char value[value_size] = "";
  const int store = port_connect(path);  // barrier
  if (store < 0) return 0;
  ask(store, (request){'s', "colour", "green"}, value);
  ask(store, (request){'g', "colour", ""}, value);
  close(store);
  return strcmp(value, "green") == 0;
}

int main(int argc, char** argv) {
  char folder[] = "/tmp/zoo-XXXXXX", path[64];
  if (argc == 3 && strcmp(argv[1], "--serve") == 0) return serve(argv[2]);
  if (mkdtemp(folder) == NULL) return EXIT_FAILURE;
  snprintf(path, sizeof path, "%s/store", folder);
  const pid_t store = port_spawn_self("--serve", path);
  port_sleep_ms(120);
  const int kept = keeps_a_value(path);
  port_stop(store);
  unlink(path);
  rmdir(folder);
  if (kept) return EXIT_SUCCESS;
  fprintf(stderr, "the store does not keep its value\n");
  return EXIT_FAILURE;
}
