/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include <stdlib.h>

/* A block for the texts of nearly every flow; a text that is longer than what is left of it has
 * another one. */
enum { TEXT_BLOCK_SIZE = 480 };

/* A text with the room that it has, so that one which is set again and again takes no more. */
struct kept_text {
    uint32_t room;
    char text[];
};

struct text_block {
    struct text_block *next;
    size_t used, size;
    _Alignas(struct kept_text) char bytes[];
};

/* Frees all blocks, or all but the first of the usual size, which is emptied. */
static void free_texts(struct facts *f, bool keeps_one)
{
    struct text_block *kept = NULL;
    while (f->texts != NULL) {
        struct text_block *block = f->texts;
        f->texts = block->next;
        if (keeps_one && kept == NULL && block->size == TEXT_BLOCK_SIZE)
            kept = block;
        else
            free(block);
    }
    if (kept != NULL) {
        kept->next = NULL;
        kept->used = 0;
    }
    f->texts = kept;
}

void facts_done(struct facts *f)
{
    free_texts(f, false);
    free(f->records);
    *f = (struct facts){ 0 };
}

void facts_clear(struct facts *f)
{
    free_texts(f, true);
    *f = (struct facts){ .texts = f->texts,
                         .records = f->records,
                         .record_capacity = f->record_capacity };
}

static bool reserve_records(struct facts *f, uint16_t capacity)
{
    if (capacity <= f->record_capacity)
        return true;
    struct record *grown = realloc(f->records, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    f->records = grown;
    f->record_capacity = capacity;
    return true;
}

/* Room for a text of len bytes; NULL without memory. */
static char *text_room(struct facts *f, size_t len)
{
    size_t size =
        (sizeof(struct kept_text) + len + 1 + sizeof(uint32_t) - 1) & ~(sizeof(uint32_t) - 1);
    struct text_block *block = f->texts;
    if (block == NULL || block->size - block->used < size) {
        size_t block_size = size > TEXT_BLOCK_SIZE ? size : TEXT_BLOCK_SIZE;
        block = malloc(sizeof *block + block_size);
        if (block == NULL)
            return NULL;
        *block = (struct text_block){ .next = f->texts, .size = block_size };
        f->texts = block;
    }
    struct kept_text *kept = (void *)(block->bytes + block->used);
    kept->room = (uint32_t)(size - sizeof *kept - 1);
    block->used += size;
    return kept->text;
}

static size_t room_of(const char *text)
{
    const struct kept_text *kept = (const void *)(text - offsetof(struct kept_text, text));
    return kept->room;
}

bool facts_set_text(struct facts *f, char **field, const char *text, size_t len)
{
    bool fits = *field != NULL && room_of(*field) >= len;
    char *room = fits ? *field : text_room(f, len);
    if (room == NULL)
        return false;
    memmove(room, text, len);
    room[len] = '\0';
    *field = room;
    return true;
}

bool facts_copy(const struct facts *f, struct facts *copy)
{
    if (!reserve_records(copy, f->record_count))
        return false;
    struct facts own = *copy;
    bool ok = true;
    *copy = *f;
    copy->records = own.records;
    copy->record_capacity = own.record_capacity;
    copy->texts = own.texts;
    if (f->record_count > 0)
        memcpy(copy->records, f->records, f->record_count * sizeof *f->records);
#define COPY_TEXT(name)                                                                            \
    copy->name = NULL;                                                                             \
    ok = ok && (f->name == NULL || facts_set_text(copy, &copy->name, f->name, strlen(f->name)));
    FACTS_TEXT(COPY_TEXT)
#undef COPY_TEXT
    if (!ok)
        facts_clear(copy);
    return ok;
}

struct record *facts_add_record(struct facts *f)
{
    enum { FIRST = 16 }; /* most handshakes and a first exchange fit */
    if (f->record_count == f->record_capacity &&
        !reserve_records(f, f->record_capacity == 0 ? FIRST : (uint16_t)(2 * f->record_capacity)))
        return NULL;
    struct record *r = &f->records[f->record_count++];
    *r = (struct record){ 0 };
    return r;
}

static int compare_records(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    if (x->packet_no != y->packet_no)
        return x->packet_no < y->packet_no ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (int)x->side - (int)y->side;
}

void facts_finish(struct facts *f)
{
    if (f->record_count > 1)
        qsort(f->records, f->record_count, sizeof *f->records, compare_records);
    f->session_id_echoed = f->session_id_hash != NULL && f->server_session_id_hash != NULL &&
                           strcmp(f->session_id_hash, f->server_session_id_hash) == 0;
}

/* Whether a time, or a difference of two, is a whole number of long units. */
static bool is_whole(int64_t ns)
{
    return ns % FACTS_LONG_UNIT_NS == 0;
}

int64_t facts_unit_ns(const struct facts *f)
{
    bool whole = true; /* without branches: nearly always all are asked */
#define WHOLE(type, name) whole &= !FACTS_IS_TIME(type) || is_whole((int64_t)f->name);
#define WHOLE_2(type, name) WHOLE(type, name[CLIENT]) WHOLE(type, name[SERVER])
    FACTS_SCALAR(WHOLE, WHOLE_2)
#undef WHOLE
#undef WHOLE_2
    for (unsigned i = 0; i < f->resend_count; i++)
        whole &= is_whole(f->resends[i].at_ns) & is_whole(f->resends[i].wait_ns);
    for (unsigned i = 0; i < f->record_count; i++) {
        const struct record *r = &f->records[i];
        whole &= is_whole(r->at_ns) & is_whole(r->last_at_ns) & is_whole(r->acked_at_ns) &
                 is_whole(r->all_acked_at_ns);
    }
    return whole ? FACTS_LONG_UNIT_NS : 1;
}

bool facts_are_unread(const struct facts *f)
{
    bool has_payload = false;
    for (enum side side = CLIENT; side <= SERVER; side++) {
        if (f->first_payload_ns[side] == 0)
            continue;
        has_payload = true;
        if (!f->begin_unread[side])
            return false;
    }
    return has_payload && !f->tls;
}

#define KEEP(type, name)
#define SWAP_SIDES(type, name)                                                                     \
    {                                                                                              \
        type of_client = f->name[CLIENT];                                                          \
        f->name[CLIENT] = f->name[SERVER];                                                         \
        f->name[SERVER] = of_client;                                                               \
    }

static void swap_record_sides(struct facts *f)
{
    for (unsigned i = 0; i < f->record_count; i++)
        f->records[i].side = (uint8_t)other_side(f->records[i].side);
}

void facts_reverse_tls(struct facts *f)
{
    f->tls_reversed = 1;
    SWAP_SIDES(uint32_t, messages)
    SWAP_SIDES(int64_t, ccs_ns)
    SWAP_SIDES(int32_t, ccs_offset)
    SWAP_SIDES(int32_t, ccs_ack)
    SWAP_SIDES(uint8_t, alert_seen)
    SWAP_SIDES(uint8_t, alert_level)
    SWAP_SIDES(uint8_t, alert_description)
    SWAP_SIDES(int64_t, alert_ns)
    SWAP_SIDES(uint32_t, boundary_losses)
    SWAP_SIDES(uint32_t, records_seen)
    SWAP_SIDES(uint8_t, records_full)
    SWAP_SIDES(uint8_t, not_tls)
    SWAP_SIDES(uint8_t, begin_unread)
    swap_record_sides(f);
}

void facts_swap_sides(struct facts *f)
{
    struct endpoint client = f->client;
    f->client = f->server;
    f->server = client;
    FACTS_SCALAR(KEEP, SWAP_SIDES)
    swap_record_sides(f);
    for (unsigned i = 0; i < f->resend_count; i++)
        f->resends[i].side = (uint8_t)other_side(f->resends[i].side);
}
#undef KEEP
#undef SWAP_SIDES

static bool record_is_sound(const struct record *r)
{
    return r->at_ns >= 0 && r->last_at_ns >= 0 && r->acked_at_ns >= 0 && r->all_acked_at_ns >= 0 &&
           r->offset >= 0 && r->ack >= ACK_UNKNOWN;
}

static bool text_is_sound(const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        if (*text < 0x20 || *text > 0x7e)
            return false;
    return true;
}

bool facts_are_sound(const struct facts *f)
{
    unsigned yes_or_no = f->continues | f->syn_seen | f->clock_step | f->fast_open |
                         f->client_hello_complete | f->ech | f->hello_retry; /* in a row */
    bool sound = yes_or_no <= 1 && f->client_basis <= CLIENT_BY_ORDER &&
                 f->ended <= ENDED_EVICTED && f->preamble <= PREAMBLE_OTHER &&
                 f->keys <= KEYS_FAILED && f->hello_side <= SERVER;
#define IS_SOUND(type, name) sound = sound && (!FACTS_IS_TIME(type) || (int64_t)f->name >= 0);
#define ARE_SOUND(type, name) IS_SOUND(type, name[CLIENT]) IS_SOUND(type, name[SERVER])
    FACTS_SCALAR(IS_SOUND, ARE_SOUND)
#undef IS_SOUND
#undef ARE_SOUND
#define IS_SOUND(name) sound = sound && text_is_sound(f->name);
    FACTS_TEXT_JUDGED(IS_SOUND)
#undef IS_SOUND
    for (unsigned i = 0; i < f->resend_count; i++)
        sound = sound && f->resends[i].side <= SERVER && f->resends[i].at_ns >= 0 &&
                f->resends[i].wait_ns >= 0;
    for (unsigned i = 0; i < f->record_count; i++)
        sound = sound && record_is_sound(&f->records[i]);
    return sound;
}
