#include "tap.h"

#include <arpa/inet.h>
#include <err.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct tap {
  int listener, client, server, port;
  pthread_t thread;
  pthread_mutex_t lock; /* of the recording */
  unsigned char *bytes;
  size_t length, capacity;
};

static void send_all(int fd, const unsigned char *bytes, size_t length) {
  while (length) {
    ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
    if (sent < 0) return; /* the other side finds out by itself */
    bytes += sent, length -= sent;
  }
}

static void record(struct tap *tap, const unsigned char *bytes, size_t length) {
  pthread_mutex_lock(&tap->lock);
  if (tap->length + length > tap->capacity) {
    tap->capacity = 2 * (tap->length + length);
    tap->bytes = realloc(tap->bytes, tap->capacity);
    if (!tap->bytes) err(1, "no memory");
  }
  memcpy(tap->bytes + tap->length, bytes, length);
  tap->length += length;
  pthread_mutex_unlock(&tap->lock);
}

/* Passes bytes both ways until one side ends. */
static void *pass(void *argument) {
  struct tap *tap = argument;
  tap->client = accept(tap->listener, NULL, NULL);
  if (tap->client < 0) err(1, "accept");
  setsockopt(tap->client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  unsigned char bytes[65536];
  for (;;) {
    struct pollfd ends[2] = {{tap->client, POLLIN, 0}, {tap->server, POLLIN, 0}};
    if (poll(ends, 2, -1) < 0) err(1, "poll");
    for (int from = 0; from < 2; from++) {
      if (!ends[from].revents) continue;
      ssize_t length = recv(ends[from].fd, bytes, sizeof bytes, 0);
      if (length <= 0) {
        shutdown(tap->client, SHUT_RDWR);
        return NULL;
      }
      if (from == 0) record(tap, bytes, length);
      send_all(ends[!from].fd, bytes, length);
    }
  }
}

static int connected(const char *host, int port) {
  char service[16];
  snprintf(service, sizeof service, "%d", port);
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
  int failure = getaddrinfo(host, service, &hints, &found);
  if (failure) errx(1, "%s: %s", host, gai_strerror(failure));
  int fd = socket(found->ai_family, SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen)) err(1, "%s:%d", host, port);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  freeaddrinfo(found);
  return fd;
}

struct tap *tap_open(const char *host, int port) {
  struct tap *tap = calloc(1, sizeof *tap);
  pthread_mutex_init(&tap->lock, NULL);
  tap->server = connected(host, port);
  tap->listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  if (tap->listener < 0 || bind(tap->listener, (struct sockaddr *)&address, length) || listen(tap->listener, 1) ||
      getsockname(tap->listener, (struct sockaddr *)&address, &length))
    err(1, "listening on 127.0.0.1");
  tap->port = ntohs(address.sin_port);
  if (pthread_create(&tap->thread, NULL, pass, tap)) errx(1, "no thread");
  return tap;
}

int tap_port(const struct tap *tap) { return tap->port; }

void tap_begin(struct tap *tap) {
  pthread_mutex_lock(&tap->lock);
  tap->length = 0;
  pthread_mutex_unlock(&tap->lock);
}

unsigned char *tap_recording(struct tap *tap, size_t *length) {
  pthread_mutex_lock(&tap->lock);
  unsigned char *copy = malloc(tap->length + 1);
  if (!copy) err(1, "no memory");
  memcpy(copy, tap->bytes, tap->length);
  *length = tap->length;
  pthread_mutex_unlock(&tap->lock);
  return copy;
}

int tap_release(struct tap *tap) {
  int server = tap->server;
  shutdown(tap->client, SHUT_RDWR);
  pthread_join(tap->thread, NULL);
  close(tap->client);
  close(tap->listener);
  free(tap->bytes);
  free(tap);
  return server;
}
