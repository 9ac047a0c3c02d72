// Quotes for whoever asks: quote_server_d serve DOOR, quote_server_d ask DOOR NUMBER.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char* const quotes[] = {"Less is more.", "Festina lente.", "Know thyself."};
enum { quote_count = sizeof quotes / sizeof *quotes };

static struct sockaddr_un address_of(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  return address;
}

static int open_socket(void) {
  return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void answer(int client) {
  unsigned char number = 0;
  if (recv(client, &number, 1, 0) != 1) return;
  const char* quote = quotes[number % quote_count];
  send(client, quote, strlen(quote), MSG_NOSIGNAL);
}

static int serve(const char* path) {
  const struct sockaddr_un address = address_of(path);
  const int door = open_socket();
  if (bind(door, (const struct sockaddr*)&address, sizeof address) != 0) return EXIT_FAILURE;
  if (listen(door, 8) != 0) return EXIT_FAILURE;  // critical
  for (int client; (client = accept(door, NULL, NULL)) >= 0; close(client)) answer(client);
  return EXIT_SUCCESS;
}

static int ask(const char* path, unsigned char number) {
  const struct sockaddr_un address = address_of(path);
  const int server = open_socket();
  char quote[64] = "";
  const int failed = connect(server, (const struct sockaddr*)&address, sizeof address);  // barrier
  if (failed) return perror("quote_server_d"), EXIT_FAILURE;
  send(server, &number, 1, MSG_NOSIGNAL);
  if (recv(server, quote, sizeof quote - 1, 0) <= 0) return EXIT_FAILURE;
  puts(quote);
  return EXIT_SUCCESS;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "serve") == 0) return serve(argv[2]);
  if (argc == 4 && strcmp(argv[1], "ask") == 0) return ask(argv[2], (unsigned char)atoi(argv[3]));
  return 2;
}
