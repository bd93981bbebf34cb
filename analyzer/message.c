/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include "hello.h"

#include <stdlib.h>

static uint32_t bytes_wanted(uint8_t type)
{
    switch (type) {
    case HANDSHAKE_CLIENT_HELLO:
    case HANDSHAKE_SERVER_HELLO:
    case HANDSHAKE_HELLO_RETRY_REQUEST_DRAFT:
        return MESSAGE_HELLO_BYTES_MAX;
    default:
        return MESSAGE_OTHER_BYTES_MAX;
    }
}

void message_record_begins(struct message_reader *m)
{
    m->at_record_begin = true;
    m->lost = false;
}

void message_reset(struct message_reader *m)
{
    m->header_len = 0;
    m->left = 0;
    m->kept_len = 0;
    m->lossy = false;
}

void message_done(struct message_reader *m)
{
    free(m->kept);
    *m = (struct message_reader){ 0 };
}

/* Appends to the kept prefix, growing by what was received, never by what was announced. */
static enum status keep(struct message_reader *m, struct bytes data)
{
    uint32_t cap = bytes_wanted(m->current.type);
    uint32_t n = (uint32_t)data.len < cap - m->kept_len ? (uint32_t)data.len : cap - m->kept_len;
    if (n == 0)
        return STATUS_OK;
    if (m->kept_len + n > m->kept_capacity) {
        uint32_t capacity = m->kept_len + n + (m->kept_len == 0 ? 0 : 2048);
        uint8_t *grown = realloc(m->kept, capacity);
        if (grown == NULL)
            return STATUS_NO_MEMORY;
        m->kept = grown;
        m->kept_capacity = capacity;
    }
    memcpy(m->kept + m->kept_len, data.at, n);
    m->kept_len += n;
    return STATUS_OK;
}

/* Reads up to four header bytes; false when a byte is missing, which loses the messages. */
static bool take_header(struct message_reader *m, struct run *body)
{
    while (m->header_len < sizeof m->header && body->len > 0) {
        if (body->data.len == 0) {
            message_reset(m);
            m->lost = true;
            run_skip(body, body->len);
            return false;
        }
        if (m->header_len == 0) {
            m->current = (struct message){ .at_ns = body->at_ns,
                                           .offset = body->offset,
                                           .begins_record = m->at_record_begin };
        }
        m->at_record_begin = false;
        m->header[m->header_len++] = body->data.at[0];
        m->current.last_at_ns = body->at_ns;
        run_skip(body, 1);
    }
    if (m->header_len < sizeof m->header)
        return false;
    struct reader r = reader_of((struct bytes){ m->header, sizeof m->header });
    m->current.type = reader_u8(&r);
    m->current.len = (uint32_t)reader_be(&r, 3);
    m->left = m->current.len;
    return true;
}

static struct message finish(struct message_reader *m, struct bytes body, int64_t end_offset)
{
    m->current.body = body;
    m->current.end_offset = end_offset;
    struct message done = m->current;
    m->header_len = 0;
    m->left = 0;
    m->lossy = false;
    m->kept_len = 0;
    return done;
}

bool message_next(struct message_reader *m, struct run *body, struct message *ret_message,
                  enum status *ret_status)
{
    *ret_status = STATUS_OK;
    if (m->lost)
        run_skip(body, body->len);
    if (m->header_len < sizeof m->header && !take_header(m, body))
        return false;
    uint32_t n = body->len < m->left ? body->len : m->left;
    struct run part = run_first(body, n);
    bool whole = n == m->current.len; /* nothing kept so far: a view will do */
    run_skip(body, n);
    m->left -= n;
    if (n > 0) {
        m->at_record_begin = false;
        m->current.last_at_ns = part.at_ns;
    }
    if (whole) {
        struct bytes wanted = bytes_first(part.data, bytes_wanted(m->current.type));
        *ret_message = finish(m, wanted, part.offset + n);
        return true;
    }
    if (!m->lossy)
        *ret_status = keep(m, part.data);
    m->lossy = m->lossy || part.data.len < n;
    if (*ret_status != STATUS_OK || m->left > 0)
        return false;
    *ret_message = finish(m, (struct bytes){ m->kept, m->kept_len }, part.offset + n);
    return true;
}

bool message_begun(const struct message_reader *m, struct message *ret_message)
{
    if (m->header_len < sizeof m->header)
        return false;
    *ret_message = m->current;
    return true;
}

bool message_cut_off(struct message_reader *m, struct message *ret_message)
{
    if (m->header_len < sizeof m->header)
        return false;
    int64_t end = m->current.offset + (int64_t)sizeof m->header + m->current.len;
    *ret_message = finish(m, (struct bytes){ m->kept, m->kept_len }, end);
    return true;
}

void message_code(struct coder *c, struct message_reader *m)
{
    struct message *current = &m->current;
    m->header_len = (uint8_t)code_number(c, m->header_len, sizeof m->header);
    code_octets(c, m->header, sizeof m->header);
    code_bool(c, &m->lossy);
    code_bool(c, &m->lost);
    code_bool(c, &m->at_record_begin);
    code_u32(c, &m->left);
    code_u8(c, &current->type);
    code_u32(c, &current->len);
    code_bool(c, &current->begins_record);
    code_time(c, &current->at_ns);
    code_time(c, &current->last_at_ns);
    code_offset(c, &current->offset);
    m->kept_len = (uint32_t)code_number(c, m->kept_len, bytes_wanted(current->type));
    c->failed |= m->left > current->len;
    if (!coder_unpacks(c)) {
        code_octets(c, m->kept, m->kept_len);
        return;
    }
    if (!c->failed && m->kept_len > 0 && c->in.rest.len >= m->kept_len)
        m->kept = malloc(m->kept_len);
    c->failed |= m->kept_len > 0 && m->kept == NULL;
    m->kept_len = c->failed ? 0 : m->kept_len;
    m->kept_capacity = m->kept_len;
    code_octets(c, m->kept, m->kept_len);
}
