/* A proxy that answers repeated requests by itself: repeating_proxy HOST PORT
 *
 * It prints the port of 127.0.0.1 where it listens, and passes the bytes of one client to the server and the answers back.
 * When the client sends the bytes of its latest request once more, it gets the bytes of the answer again, at once, and the
 * server hears nothing. So the time of such an answer is what the client and the way take by themselves.
 *
 * The client is one that asks only when it has its answer: what it sends after the server has sent is the next request. */
#include "bytes.h"
#include "sockets.h"

#include <err.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static bool begins_with(const struct bytes *whole, const struct bytes *start) {
  return whole->length >= start->length && !memcmp(whole->at, start->at, start->length);
}

int main(int count, char **arguments) {
  if (count != 3) errx(2, "usage: repeating_proxy HOST PORT");
  int server = connected(arguments[1], atoi(arguments[2])), port, listener = listening(&port);
  printf("%d\n", port);
  fflush(stdout);
  int client = accepted(listener);
  /* the latest request and its answer, and what of the next request is not passed on yet */
  struct bytes request = {0}, answer = {0}, held = {0};
  unsigned char bytes[65536];
  for (;;) {
    struct pollfd ends[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    if (poll(ends, 2, -1) < 0) err(1, "poll");
    if (ends[1].revents) {
      ssize_t length = recv(server, bytes, sizeof bytes, 0);
      if (length <= 0) return 0;
      bytes_append(&answer, bytes, length);
      send_all(client, bytes, length);
    }
    if (ends[0].revents) {
      ssize_t length = recv(client, bytes, sizeof bytes, 0);
      if (length <= 0) return 0;
      bytes_append(&held, bytes, length);
      if (answer.length && begins_with(&request, &held)) {
        if (held.length < request.length) continue; /* the rest is to come */
        send_all(client, answer.at, answer.length);
      } else {
        if (answer.length) request.length = answer.length = 0;
        bytes_append(&request, held.at, held.length);
        send_all(server, held.at, held.length);
      }
      held.length = 0;
    }
  }
}
