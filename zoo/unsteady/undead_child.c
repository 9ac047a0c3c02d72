// The end of a child's output is taken for the end of the child, and a jitter in between is mostly
// enough.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/chance.h"

static int report(void) {
  puts("42 files");
  fclose(stdout);
  return compute(compute(compute(42))) == 0;  // critical
}

static pid_t start_child(int* output) {
  int ends[2];
  if (pipe(ends) != 0) exit(EXIT_FAILURE);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl("/proc/self/exe", "undead_child", "--report", (char*)NULL);
    _exit(127);
  }
  close(ends[1]);
  *output = ends[0];
  return child;
}

// Up to 8 ms, so that not all who wait look at once.
static void jitter(void) {
  usleep(2000 * draw(5));
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--report") == 0) return report();
  int output, status;
  char text[64];
  const pid_t child = start_child(&output);
  while (read(output, text, sizeof text) > 0) continue;
  jitter();
  const pid_t ended = waitpid(child, &status, WNOHANG);  // barrier
  if (ended == child) return WEXITSTATUS(status);
  fprintf(stderr, "the child still runs\n");
  waitpid(child, &status, 0);
  return EXIT_FAILURE;
}
