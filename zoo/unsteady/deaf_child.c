// A child sets itself up in an order that is drawn; it may say that it has started before it
// listens to signals.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/chance.h"

static unsigned cache;

static void leave(int signal) {
  (void)signal;
  _exit(EXIT_SUCCESS);
}

static void listen_to_signals(void) {
  signal(SIGTERM, leave);  // critical
}

static void say_started(void) {
  if (write(STDOUT_FILENO, "started", 7) != 7) _exit(EXIT_FAILURE);
}

static void fill_cache(void) {
  cache = compute(cache);
}

static void open_journal(void) {
  if (open("/dev/null", O_WRONLY) < 0) _exit(EXIT_FAILURE);
}

// Plug-ins come in any order, as they would out of a hash table with a seed.
static void serve(void) {
  void (*const plug_ins[])(void) = {fill_cache, open_journal, listen_to_signals, say_started};
  const unsigned seed = draw(4);
  for (unsigned i = 0; i < 4; ++i) plug_ins[(seed + i) % 4]();
  while (1) pause();
}

static pid_t start_child(int* output) {
  int ends[2];
  if (pipe(ends) != 0) exit(EXIT_FAILURE);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execl("/proc/self/exe", "deaf_child", "--serve", (char*)NULL);
    _exit(127);
  }
  *output = ends[0];
  return child;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--serve") == 0) serve();
  int output, status;
  char word[8] = "";
  const pid_t child = start_child(&output);
  if (read(output, word, sizeof word) <= 0) return EXIT_FAILURE;
  kill(child, SIGTERM);  // barrier
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  fprintf(stderr, "the child did not hear the signal\n");
  return EXIT_FAILURE;
}
