/* TCP connections of the proxies. */
#ifndef SOCKETS_H
#define SOCKETS_H

#include <stddef.h>

/* A connection to a server; the program ends when there is none. */
int connected(const char *host, int port);
/* A socket that listens on a free port of 127.0.0.1. */
int listening(int *port);
/* The next connection to it. */
int accepted(int listener);
/* Sends all of the bytes, unless the other side is gone. */
void send_all(int fd, const unsigned char *bytes, size_t length);

#endif
