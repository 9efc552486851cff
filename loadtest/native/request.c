#include "request.h"

#include <err.h>
#include <sys/socket.h>

size_t request_offset(const struct request *request, size_t offset) {
  size_t packet = 0;
  while (packet + HEADER <= request->length) {
    size_t body = (request->bytes[packet + 2] << 8 | request->bytes[packet + 3]) - HEADER;
    if (offset < body) return packet + HEADER + offset;
    offset -= body, packet += HEADER + body;
  }
  return request->length;
}

size_t request_difference(const struct request *one, const struct request *other, size_t offset) {
  if (one->length != other->length) errx(1, "recorded requests of one shape differ in length");
  for (;; offset++) {
    size_t at = request_offset(one, offset);
    if (at >= one->length) errx(1, "recorded requests do not show where their parameters are");
    if (one->bytes[at] != other->bytes[at]) return offset;
  }
}

void request_send(int fd, const struct request *request) {
  for (size_t sent = 0; sent < request->length;) {
    ssize_t part = send(fd, request->bytes + sent, request->length - sent, MSG_NOSIGNAL);
    if (part < 0) err(1, "sending to the gateway");
    sent += part;
  }
}
