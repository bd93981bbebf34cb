/* SPDX-License-Identifier: Apache-2.0 */
#include "packed.h"

#include "thread.h"

#include <errno.h>
#include <unistd.h>

void packed_open(struct packed *p, int fd, struct bytes start)
{
    assert(start.len <= sizeof p->bytes);
    p->fd = fd;
    p->stop_event = -1;
    memcpy(p->bytes, start.at, start.len);
    p->len = start.len;
    p->rest = (struct bytes){ p->bytes, p->len };
    p->received = start.len;
}

static void receive(struct packed *p)
{
    ssize_t n = 0;
    if (thread_wait_for_bytes(p->fd, p->stop_event)) {
        do {
            n = read(p->fd, p->bytes, sizeof p->bytes);
        } while (n < 0 && errno == EINTR);
    }
    p->error = n < 0 ? errno : 0;
    p->ended = n <= 0;
    p->len = n > 0 ? (size_t)n : 0;
    p->rest = (struct bytes){ p->bytes, p->len };
    p->received += p->len;
}

bool packed_has_more(struct packed *p)
{
    if (p->rest.len == 0 && !p->ended)
        receive(p);
    return p->rest.len > 0;
}

void packed_give_back(struct packed *p, uint64_t n)
{
    struct bytes piece = { p->bytes, p->len };
    p->rest = bytes_after(piece, n < p->len ? p->len - (size_t)n : 0);
}

uint64_t packed_position(const struct packed *p)
{
    return p->received - p->rest.len;
}
