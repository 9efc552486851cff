/* A tap in the line between a client library and a server: it passes everything on and keeps what the library
 * sends. Released, it leaves the logged-in connection to the server behind. */
#ifndef TAP_H
#define TAP_H

#include <stddef.h>

struct tap;

/* Connects to the server. The library is to connect to 127.0.0.1 at `tap_port`, once. */
struct tap *tap_open(const char *host, int port);
int tap_port(const struct tap *tap);
/* What is sent from now on is a new recording. */
void tap_begin(struct tap *tap);
/* A copy of the recording so far; to be asked for when its answer has arrived. */
unsigned char *tap_recording(struct tap *tap, size_t *length);
/* Cuts the library off. Returns the socket of the server and frees the tap. */
int tap_release(struct tap *tap);

#endif
