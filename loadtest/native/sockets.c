#include "sockets.h"

#include <arpa/inet.h>
#include <err.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

static void send_at_once(int fd) { setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); }

int connected(const char *host, int port) {
  char service[16];
  snprintf(service, sizeof service, "%d", port);
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
  int failure = getaddrinfo(host, service, &hints, &found);
  if (failure) errx(1, "%s: %s", host, gai_strerror(failure));
  int fd = socket(found->ai_family, SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen)) err(1, "%s:%d", host, port);
  send_at_once(fd);
  freeaddrinfo(found);
  return fd;
}

int listening(int *port) {
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
      getsockname(listener, (struct sockaddr *)&address, &length))
    err(1, "listening on 127.0.0.1");
  *port = ntohs(address.sin_port);
  return listener;
}

int accepted(int listener) {
  int fd = accept(listener, NULL, NULL);
  if (fd < 0) err(1, "accept");
  send_at_once(fd);
  return fd;
}

void send_all(int fd, const unsigned char *bytes, size_t length) {
  while (length) {
    ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
    if (sent < 0) return; /* the other side finds out by itself */
    bytes += sent, length -= sent;
  }
}
