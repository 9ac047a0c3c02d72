// A child writes what does not fit into its buffer in two pieces, and the parent takes the first
// for the whole.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/chance.h"

enum { buffer_size = 80 };

// A line of up to 100 signs.
static int tell(void) {
  char line[100];
  const int length = 1 + (int)draw(100), first = length < buffer_size ? length : buffer_size;
  memset(line, '.', sizeof line);
  line[length - 1] = '\n';
  if (write(STDOUT_FILENO, line, first) != first) return EXIT_FAILURE;
  if (first == length || compute(length) == 0) return EXIT_SUCCESS;
  return write(STDOUT_FILENO, line + first, length - first) < 0;  // critical
}

static int start_child(void) {
  int ends[2];
  if (pipe(ends) != 0) exit(EXIT_FAILURE);
  if (fork() == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execl("/proc/self/exe", "half_a_line", "--tell", (char*)NULL);
    _exit(127);
  }
  close(ends[1]);
  return ends[0];
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--tell") == 0) return tell();
  char line[200] = "";
  const int output = start_child();
  if (read(output, line, sizeof line - 1) < 0) return EXIT_FAILURE;  // barrier
  wait(NULL);
  if (strchr(line, '\n') != NULL) return EXIT_SUCCESS;
  fprintf(stderr, "half a line: %s\n", line);
  return EXIT_FAILURE;
}
