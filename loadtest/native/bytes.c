#include "bytes.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

void bytes_append(struct bytes *to, const unsigned char *bytes, size_t length) {
  if (to->length + length > to->capacity) {
    to->capacity = 2 * (to->length + length);
    to->at = realloc(to->at, to->capacity);
    if (!to->at) err(1, "no memory");
  }
  memcpy(to->at + to->length, bytes, length);
  to->length += length;
}
