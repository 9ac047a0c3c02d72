// Three children, sometimes started together, write into one pipe, and are expected to do so in the
// order of their start.
#define _GNU_SOURCE  // for environ
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/chance.h"

static int say(const char* name) {
  if (draw(6) == 0 && compute(1) == 0) return EXIT_FAILURE;                 // its settings are long
  return write(STDOUT_FILENO, name, 1) == 1 ? EXIT_SUCCESS : EXIT_FAILURE;  // critical, barrier
}

static void start_child(char* name, int output) {
  char* const words[] = {"three_children", name, NULL};
  posix_spawn_file_actions_t actions;
  pid_t child;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn(&child, "/proc/self/exe", &actions, NULL, words, environ);
  posix_spawn_file_actions_destroy(&actions);
}

int main(int argc, char** argv) {
  if (argc == 2) return say(argv[1]);
  int ends[2];
  char* const names[] = {"a", "b", "c"};
  char said[4] = "";
  if (pipe(ends) != 0) return EXIT_FAILURE;
  const int one_by_one = draw(3) != 0;  // as if memory were short
  for (int i = 0; i < 3; ++i) {
    start_child(names[i], ends[1]);
    if (one_by_one) wait(NULL);
  }
  while (wait(NULL) > 0) continue;
  if (read(ends[0], said, 3) == 3 && strcmp(said, "abc") == 0) return EXIT_SUCCESS;
  fprintf(stderr, "they did not write in order\n");
  return EXIT_FAILURE;
}
