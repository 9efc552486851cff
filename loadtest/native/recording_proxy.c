#include "recording_proxy.h"

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

struct recording_proxy {
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

static void record(struct recording_proxy *proxy, const unsigned char *bytes, size_t length) {
  pthread_mutex_lock(&proxy->lock);
  if (proxy->length + length > proxy->capacity) {
    proxy->capacity = 2 * (proxy->length + length);
    proxy->bytes = realloc(proxy->bytes, proxy->capacity);
    if (!proxy->bytes) err(1, "no memory");
  }
  memcpy(proxy->bytes + proxy->length, bytes, length);
  proxy->length += length;
  pthread_mutex_unlock(&proxy->lock);
}

/* Passes bytes both ways until one side ends. */
static void *pass(void *argument) {
  struct recording_proxy *proxy = argument;
  proxy->client = accept(proxy->listener, NULL, NULL);
  if (proxy->client < 0) err(1, "accept");
  setsockopt(proxy->client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  unsigned char bytes[65536];
  for (;;) {
    struct pollfd ends[2] = {{proxy->client, POLLIN, 0}, {proxy->server, POLLIN, 0}};
    if (poll(ends, 2, -1) < 0) err(1, "poll");
    for (int from = 0; from < 2; from++) {
      if (!ends[from].revents) continue;
      ssize_t length = recv(ends[from].fd, bytes, sizeof bytes, 0);
      if (length <= 0) {
        shutdown(proxy->client, SHUT_RDWR);
        return NULL;
      }
      if (from == 0) record(proxy, bytes, length);
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

struct recording_proxy *recording_proxy_open(const char *host, int port) {
  struct recording_proxy *proxy = calloc(1, sizeof *proxy);
  pthread_mutex_init(&proxy->lock, NULL);
  proxy->server = connected(host, port);
  proxy->listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  if (proxy->listener < 0 || bind(proxy->listener, (struct sockaddr *)&address, length) || listen(proxy->listener, 1) ||
      getsockname(proxy->listener, (struct sockaddr *)&address, &length))
    err(1, "listening on 127.0.0.1");
  proxy->port = ntohs(address.sin_port);
  if (pthread_create(&proxy->thread, NULL, pass, proxy)) errx(1, "no thread");
  return proxy;
}

int recording_proxy_port(const struct recording_proxy *proxy) { return proxy->port; }

void recording_proxy_begin(struct recording_proxy *proxy) {
  pthread_mutex_lock(&proxy->lock);
  proxy->length = 0;
  pthread_mutex_unlock(&proxy->lock);
}

unsigned char *recording_proxy_recording(struct recording_proxy *proxy, size_t *length) {
  pthread_mutex_lock(&proxy->lock);
  unsigned char *copy = malloc(proxy->length + 1);
  if (!copy) err(1, "no memory");
  memcpy(copy, proxy->bytes, proxy->length);
  *length = proxy->length;
  pthread_mutex_unlock(&proxy->lock);
  return copy;
}

int recording_proxy_release(struct recording_proxy *proxy) {
  int server = proxy->server;
  shutdown(proxy->client, SHUT_RDWR);
  pthread_join(proxy->thread, NULL);
  close(proxy->client);
  close(proxy->listener);
  free(proxy->bytes);
  free(proxy);
  return server;
}
