#include "recording_proxy.h"

#include "bytes.h"
#include "sockets.h"

#include <err.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct recording_proxy {
  int listener, client, server, port;
  pthread_t thread;
  pthread_mutex_t lock; /* of the recording */
  struct bytes recording;
};

static void record(struct recording_proxy *proxy, const unsigned char *bytes, size_t length) {
  pthread_mutex_lock(&proxy->lock);
  bytes_append(&proxy->recording, bytes, length);
  pthread_mutex_unlock(&proxy->lock);
}

/* Passes bytes both ways until one side ends. */
static void *pass(void *argument) {
  struct recording_proxy *proxy = argument;
  proxy->client = accepted(proxy->listener);
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

struct recording_proxy *recording_proxy_open(const char *host, int port) {
  struct recording_proxy *proxy = calloc(1, sizeof *proxy);
  pthread_mutex_init(&proxy->lock, NULL);
  proxy->server = connected(host, port);
  proxy->listener = listening(&proxy->port);
  if (pthread_create(&proxy->thread, NULL, pass, proxy)) errx(1, "no thread");
  return proxy;
}

int recording_proxy_port(const struct recording_proxy *proxy) { return proxy->port; }

void recording_proxy_begin(struct recording_proxy *proxy) {
  pthread_mutex_lock(&proxy->lock);
  proxy->recording.length = 0;
  pthread_mutex_unlock(&proxy->lock);
}

unsigned char *recording_proxy_recording(struct recording_proxy *proxy, size_t *length) {
  pthread_mutex_lock(&proxy->lock);
  struct bytes copy = {0};
  bytes_append(&copy, proxy->recording.at, proxy->recording.length);
  *length = copy.length;
  pthread_mutex_unlock(&proxy->lock);
  return copy.at;
}

int recording_proxy_release(struct recording_proxy *proxy) {
  int server = proxy->server;
  shutdown(proxy->client, SHUT_RDWR);
  pthread_join(proxy->thread, NULL);
  close(proxy->client);
  close(proxy->listener);
  free(proxy->recording.at);
  free(proxy);
  return server;
}
