// The post office says that a letter has come before it puts the letter there.
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int letter_has_come;
static const char* letter;

static void* deliver(void* text) {
  letter_has_come = 1;  // step
  letter = text;        // critical
  return NULL;
}

static void* fetch(void* length) {
  if (letter_has_come)                  // step
    *(size_t*)length = strlen(letter);  // barrier
  return NULL;
}

int main(void) {
  pthread_t postman, reader;
  size_t length = 0;
  pthread_create(&postman, NULL, deliver, "come home");
  pthread_create(&reader, NULL, fetch, &length);
  pthread_join(postman, NULL);
  pthread_join(reader, NULL);
  printf("%zu\n", length);
  return 0;
}
