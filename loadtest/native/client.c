#include "client.h"

#include <err.h>
#include <stdio.h>

struct client client_login(const char *host, int port, const char *user, const char *password, const char *version) {
  struct client client = {.proxy = recording_proxy_open(host, port)};
  char server[32];
  snprintf(server, sizeof server, "127.0.0.1:%d", recording_proxy_port(client.proxy));
  struct login login = {
    .server = server, .user = user, .password = password, .version = version, .program = "ringlog bench"};
  struct answer answer;
  client.connection = log_in(&login, &answer);
  if (!client.connection) errx(1, "login failed: %s", answer.text);
  return client;
}

void client_parameter(CS_COMMAND *command, const char *name, CS_INT type, const void *value) {
  if (!call_parameter(command, name, type, value, CS_UNUSED)) errx(1, "%s cannot be sent", name);
}

struct request client_record(struct client *client, CS_COMMAND *command, long *rows) {
  struct answer answer;
  struct request request = {0};
  recording_proxy_begin(client->proxy);
  if (call_end(command, &answer) != ANSWERED) errx(1, "error %d: %s", answer.error, answer.text);
  if (rows) *rows = answer.rows;
  request.bytes = recording_proxy_recording(client->proxy, &request.length);
  return request;
}

int client_leave(struct client *client) {
  int server = recording_proxy_release(client->proxy);
  log_out(client->connection);
  return server;
}
