/* A proxy in the line between a client library and a server: it passes everything on and keeps what the library
 * sends. Released, it leaves the logged-in connection to the server behind. */
#ifndef RECORDING_PROXY_H
#define RECORDING_PROXY_H

#include <stddef.h>

struct recording_proxy;

/* Connects to the server. The library is to connect to 127.0.0.1 at `recording_proxy_port`, once. */
struct recording_proxy *recording_proxy_open(const char *host, int port);
int recording_proxy_port(const struct recording_proxy *proxy);
/* Starts a new recording with the next sent bytes. */
void recording_proxy_begin(struct recording_proxy *proxy);
/* A copy of the recording so far; to be called when its answer has arrived. */
unsigned char *recording_proxy_recording(struct recording_proxy *proxy, size_t *length);
/* Cuts the library off. Returns the socket of the server and frees the proxy. */
int recording_proxy_release(struct recording_proxy *proxy);

#endif
