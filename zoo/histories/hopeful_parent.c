// A child writes a file, its parent reads it.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  int ends[2];
  assert(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    usleep(1000);
    _exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
  }
  int status = 0;
  const pid_t ended = waitpid(child, &status, 0);        //-
  usleep(40000);                                         //+
  const pid_t ended = waitpid(child, &status, WNOHANG);  //+
  assert(ended == child);
  return WEXITSTATUS(status);
}
