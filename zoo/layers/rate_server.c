// Exchange rates for whoever asks: rate_server_d serve DOOR, rate_server_d ask DOOR CURRENCY.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/port.h"

static const char* rate_of(const char* currency) {
  if (strcmp(currency, "USD") == 0) return "1.08";
  if (strcmp(currency, "GBP") == 0) return "0.85";
  return "unknown";
}

static void answer(int client) {
  char currency[4] = "";
  if (recv(client, currency, 3, MSG_WAITALL) != 3) return;
  const char* rate = rate_of(currency);
  send(client, rate, strlen(rate), MSG_NOSIGNAL);
}

static int serve(const char* path) {
  const int door = port_listen(path);
  if (door < 0) return EXIT_FAILURE;
  puts("ready");
  fclose(stdout);
  for (int client; (client = port_accept(door)) >= 0; close(client)) answer(client);
  return EXIT_SUCCESS;
}

static int ask(const char* path, const char* currency) {
  char rate[16] = "";
  const int server = port_connect(path);
  if (server < 0) return perror("rate_server_d"), EXIT_FAILURE;
  send(server, currency, 3, MSG_NOSIGNAL);
  if (recv(server, rate, sizeof rate - 1, 0) <= 0) return EXIT_FAILURE;
  puts(rate);
  return EXIT_SUCCESS;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "serve") == 0) return serve(argv[2]);
  if (argc == 4 && strcmp(argv[1], "ask") == 0) return ask(argv[2], argv[3]);
  return 2;
}
