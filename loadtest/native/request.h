/* A recorded request: packets as a client library sent them, of which a few bytes are to be changed. */
#ifndef REQUEST_H
#define REQUEST_H

#include <stddef.h>

struct request {
  unsigned char *bytes;
  size_t length;
};

enum { HEADER = 8, LAST = 1 }; /* of a packet: its size; the status bit of a message's last one */

/* The offset in the request of byte `offset` of the message that its packets carry. */
size_t request_offset(const struct request *request, size_t offset);
/* The first byte of the message, from `offset` on, in which two requests differ. */
size_t request_difference(const struct request *one, const struct request *other, size_t offset);
void request_send(int fd, const struct request *request);
/* The message of a request, without the headers of its packets. */
struct request request_message(const struct request *request);
/* Adds bytes of a message to a request, in packets of the size and kind of `like`'s; `bytes` NULL: the message is whole. */
void request_add(struct request *request, const struct request *like, const unsigned char *bytes, size_t length);

#endif
