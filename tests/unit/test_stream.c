/* SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

#include "facts.h"

#include <criterion/criterion.h>

enum { STREAM_LEN = 48, NEVER_SEEN = 256 };

/* What came out of a stream: each byte with what was known of it. */
struct output {
    int value[STREAM_LEN]; /* NEVER_SEEN in a hole, -1 behind a snaplen cut */
    int64_t at_ns[STREAM_LEN];
    uint64_t packet_no[STREAM_LEN];
    int32_t ack[STREAM_LEN];
    bool starts[STREAM_LEN];
    uint32_t len;
    uint64_t hole_bytes;
};

static uint8_t octet_at(uint32_t offset)
{
    return (uint8_t)(7 * offset + 3);
}

static void put_run(struct output *out, const struct run *run)
{
    cr_assert_eq(run->offset, out->len, "runs follow each other without gap or overlap");
    cr_assert(run->len > 0);
    cr_assert(out->len + run->len <= STREAM_LEN);
    cr_assert(run->data.len <= run->len);
    cr_assert(!run->is_hole || run->data.len == 0);
    for (uint32_t i = 0; i < run->len; i++) {
        uint32_t at = out->len + i;
        out->value[at] = run->is_hole ? NEVER_SEEN : i < run->data.len ? run->data.at[i] : -1;
        out->at_ns[at] = run->is_hole ? 0 : run->at_ns;
        out->packet_no[at] = run->is_hole ? 0 : run->packet_no;
        out->ack[at] = run->ack;
        out->starts[at] = i == 0 && run->starts_segment;
    }
    out->len += run->len;
    out->hole_bytes += run->is_hole ? run->len : 0;
}

static struct arrival add(struct stream *s, const struct piece *p, struct output *out)
{
    struct arrival arrival;
    struct run run;
    bool has_run;
    cr_assert_eq(stream_add(s, p, &arrival, &run, &has_run), STATUS_OK);
    cr_assert_eq(arrival.old_len + arrival.new_len, p->len);
    if (has_run)
        put_run(out, &run);
    while (stream_next(s, &run))
        put_run(out, &run);
    return arrival;
}

/* A segment of the reference stream, cut to `captured` bytes; its number is its offset. */
static struct piece piece_of(uint32_t base, uint32_t offset, uint32_t len, uint32_t captured,
                             uint8_t bytes[STREAM_LEN])
{
    for (uint32_t i = 0; i < len; i++)
        bytes[i] = octet_at(offset + i);
    return (struct piece){
        .seq = base + offset,
        .len = len,
        .data = { bytes, captured },
        .at_ns = 1000 + offset,
        .packet_no = 10 + offset,
        .ack = (int32_t)offset / 2,
    };
}

static void add_segment(struct stream *s, uint32_t base, uint32_t offset, uint32_t len,
                        struct output *out)
{
    uint8_t bytes[STREAM_LEN];
    struct piece p = piece_of(base, offset, len, len, bytes);
    add(s, &p, out);
}

static void give_up_all(struct stream *s, struct output *out)
{
    struct run run;
    while (stream_skip_hole(s, &run)) {
        put_run(out, &run);
        while (stream_next(s, &run))
            put_run(out, &run);
    }
}

static void assert_whole(const struct output *out, uint32_t len, const char *what)
{
    cr_assert_eq(out->len, len, "%s: %u of %u bytes", what, out->len, len);
    for (uint32_t i = 0; i < len; i++)
        cr_assert_eq(out->value[i], octet_at(i), "%s: byte %u is %d", what, i, out->value[i]);
}

Test(stream, one_cut_anywhere_gives_the_same_bytes)
{
    for (uint32_t cut = 0; cut <= STREAM_LEN; cut++) {
        struct stream s = { 0 };
        struct output out = { 0 };
        if (cut > 0)
            add_segment(&s, 77, 0, cut, &out);
        if (cut < STREAM_LEN)
            add_segment(&s, 77, cut, STREAM_LEN - cut, &out);
        assert_whole(&out, STREAM_LEN, "cut");
        cr_assert(out.starts[0] && (cut == STREAM_LEN || out.starts[cut]));
        stream_done(&s);
    }
}

/* The n-th order of `count` things, 0 <= n < count! */
static void permutation(unsigned n, unsigned count, unsigned order[])
{
    bool used[8] = { false };
    for (unsigned i = 0; i < count; i++) {
        unsigned rest = 1;
        for (unsigned k = 2; k < count - i; k++)
            rest *= k;
        unsigned skip = n / rest, at = 0;
        n %= rest;
        while (used[at] || skip-- > 0)
            at++;
        used[at] = true;
        order[i] = at;
    }
}

enum { ORDERED = 6, ORDERS = 720 };
static const uint32_t BORDER[ORDERED + 1] = { 0, 1, 9, 10, 25, 31, STREAM_LEN };

Test(stream, every_order_of_segments_gives_the_same_runs)
{
    static const uint32_t BASES[] = { 0, 1000, UINT32_MAX - 20, 0x7ffffff0 };
    for (unsigned b = 0; b < sizeof BASES / sizeof BASES[0]; b++)
        for (unsigned n = 0; n < ORDERS; n++) {
            unsigned order[ORDERED];
            struct stream s = { 0 };
            struct output out = { 0 };
            permutation(n, ORDERED, order);
            stream_set_base(&s, BASES[b]);
            for (unsigned i = 0; i < ORDERED; i++) {
                uint32_t from = BORDER[order[i]];
                add_segment(&s, BASES[b], from, BORDER[order[i] + 1] - from, &out);
            }
            assert_whole(&out, STREAM_LEN, "order");
            for (unsigned k = 0; k < ORDERED; k++)
                for (uint32_t i = BORDER[k]; i < BORDER[k + 1]; i++) {
                    cr_assert_eq(out.at_ns[i], 1000 + BORDER[k]);
                    cr_assert_eq(out.packet_no[i], 10 + BORDER[k]);
                    cr_assert_eq(out.ack[i], (int32_t)BORDER[k] / 2);
                    cr_assert_eq(out.starts[i], i == BORDER[k]);
                }
            cr_assert_eq(s.pending_count, 0);
            cr_assert_eq(s.pending_bytes, 0);
            stream_done(&s);
        }
}

Test(stream, a_lost_segment_is_a_hole_of_its_length_in_every_order)
{
    for (unsigned lost = 0; lost < ORDERED; lost++)
        for (unsigned n = 0; n < ORDERS; n++) {
            unsigned order[ORDERED];
            struct stream s = { 0 };
            struct output out = { 0 };
            permutation(n, ORDERED, order);
            stream_set_base(&s, UINT32_MAX - 15);
            for (unsigned i = 0; i < ORDERED; i++)
                if (order[i] != lost)
                    add_segment(&s, UINT32_MAX - 15, BORDER[order[i]],
                                BORDER[order[i] + 1] - BORDER[order[i]], &out);
            int64_t behind;
            cr_assert_eq(stream_waits(&s, &behind), lost < ORDERED - 1);
            if (lost < ORDERED - 1)
                cr_assert_eq(behind, BORDER[lost + 1]);
            give_up_all(&s, &out);
            for (uint32_t i = 0; i < out.len; i++) {
                bool is_lost = i >= BORDER[lost] && i < BORDER[lost + 1];
                cr_assert_eq(out.value[i], is_lost ? NEVER_SEEN : octet_at(i));
            }
            cr_assert_eq(out.len, lost == ORDERED - 1 ? BORDER[lost] : STREAM_LEN);
            stream_done(&s);
        }
}

Test(stream, what_comes_after_a_hole_was_given_up_is_old)
{
    struct stream s = { 0 };
    struct output out = { 0 };
    uint8_t bytes[STREAM_LEN];
    stream_set_base(&s, 5);
    add_segment(&s, 5, 10, 10, &out);
    give_up_all(&s, &out);
    struct piece late = piece_of(5, 0, 10, 10, bytes);
    struct arrival arrival = add(&s, &late, &out);
    cr_assert_eq(arrival.old_len, 10);
    cr_assert_eq(arrival.old_offset, 0);
    cr_assert_eq(arrival.new_len, 0);
    cr_assert_eq(out.len, 20);
    stream_done(&s);
}

/* A linear congruential generator: the same numbers on every machine. */
static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % n;
}

struct model {
    int value[STREAM_LEN]; /* first copy of each byte; NEVER_SEEN */
    int64_t at_ns[STREAM_LEN];
    uint32_t given; /* behind the last byte that is out */
};

static void model_add(struct model *m, const struct piece *p, uint32_t offset)
{
    for (uint32_t i = 0; i < p->len; i++)
        if (offset + i >= m->given && m->value[offset + i] == NEVER_SEEN) {
            m->value[offset + i] = i < p->data.len ? p->data.at[i] : -1;
            m->at_ns[offset + i] = p->at_ns;
        }
    while (m->given < STREAM_LEN && m->value[m->given] != NEVER_SEEN)
        m->given++;
}

static uint32_t model_old(const struct model *m, uint32_t offset, uint32_t len)
{
    uint32_t old = 0;
    for (uint32_t i = offset; i < offset + len; i++)
        old += i < m->given || m->value[i] != NEVER_SEEN;
    return old;
}

static uint32_t model_first_old(const struct model *m, uint32_t offset)
{
    uint32_t i = offset;
    while (i >= m->given && m->value[i] == NEVER_SEEN)
        i++;
    return i;
}

static void model_skip_hole(struct model *m)
{
    uint32_t behind = m->given;
    while (behind < STREAM_LEN && m->value[behind] == NEVER_SEEN)
        behind++;
    if (behind == STREAM_LEN)
        return;
    m->given = behind;
    while (m->given < STREAM_LEN && m->value[m->given] != NEVER_SEEN)
        m->given++;
}

Test(stream, overlaps_cuts_and_holes_in_any_order_agree_with_a_naive_model)
{
    uint64_t seed = 1;
    for (unsigned round = 0; round < 20000; round++) {
        struct stream s = { 0 };
        struct output out = { 0 };
        struct model m = { .given = 0 };
        uint32_t base = random_below(&seed, 2) == 0 ? UINT32_MAX - 24 : random_below(&seed, 99999);
        for (uint32_t i = 0; i < STREAM_LEN; i++)
            m.value[i] = NEVER_SEEN;
        stream_set_base(&s, base);
        for (unsigned i = 0; i < 12; i++) {
            uint8_t bytes[STREAM_LEN];
            struct run hole;
            uint32_t offset = random_below(&seed, STREAM_LEN);
            uint32_t len = 1 + random_below(&seed, STREAM_LEN - offset);
            uint32_t captured = random_below(&seed, 3) == 0 ? random_below(&seed, len + 1) : len;
            struct piece p = piece_of(base, offset, len, captured, bytes);
            for (uint32_t k = 0; k < len; k++)
                bytes[k] = (uint8_t)(16 * i + k); /* every copy differs: the first must win */
            p.at_ns = 1 + i;
            uint32_t old = model_old(&m, offset, len);
            struct arrival arrival = add(&s, &p, &out);
            cr_assert_eq(arrival.old_len, old, "round %u", round);
            if (old > 0)
                cr_assert_eq(arrival.old_offset, model_first_old(&m, offset), "round %u", round);
            model_add(&m, &p, offset);
            if (random_below(&seed, 8) == 0 && stream_skip_hole(&s, &hole)) {
                put_run(&out, &hole);
                while (stream_next(&s, &hole))
                    put_run(&out, &hole);
                model_skip_hole(&m);
            }
            cr_assert_eq(out.len, m.given, "round %u: %u bytes, not %u", round, out.len, m.given);
        }
        for (uint32_t i = 0; i < out.len; i++) {
            cr_assert_eq(out.value[i], m.value[i], "round %u, byte %u", round, i);
            if (m.value[i] != NEVER_SEEN)
                cr_assert_eq(out.at_ns[i], m.at_ns[i], "round %u, byte %u", round, i);
        }
        stream_done(&s);
    }
}

Test(stream, sequence_numbers_wrap_as_often_as_they_like)
{
    enum { STEP = 1 << 30 };
    struct stream s = { 0 };
    uint8_t octet = 1;
    stream_set_base(&s, 12345);
    for (uint32_t i = 0; i < 40; i++) {
        struct piece p = { .seq = 12345 + i * (uint32_t)STEP, .len = STEP, .data = { &octet, 1 } };
        struct arrival arrival;
        struct run run;
        bool has_run;
        cr_assert_eq(stream_add(&s, &p, &arrival, &run, &has_run), STATUS_OK);
        cr_assert(has_run);
        cr_assert_eq(run.offset, (int64_t)i * STEP);
        cr_assert_eq(arrival.new_len, STEP);
    }
    cr_assert_eq(stream_offset(&s, s.next_seq - 7), INT64_C(40) * STEP - 7);
    stream_done(&s);
}

Test(stream, the_first_segment_is_the_base_unless_one_was_set)
{
    struct stream s = { 0 };
    struct output out = { 0 };
    add_segment(&s, 4000, 0, 8, &out);
    stream_set_base(&s, 1); /* comes too late */
    cr_assert_eq(stream_offset(&s, 4000), 0);
    cr_assert_eq(stream_offset(&s, 4008), 8);
    assert_whole(&out, 8, "first");
    stream_done(&s);
}

Test(stream, filling_a_hole_tells_when_the_bytes_behind_it_came)
{
    struct stream s = { 0 };
    struct output out = { 0 };
    uint8_t bytes[STREAM_LEN];
    stream_set_base(&s, 0);
    struct piece behind = piece_of(0, 20, 10, 10, bytes);
    struct arrival arrival = add(&s, &behind, &out);
    cr_assert_not(arrival.filled_hole);
    struct piece fill = piece_of(0, 0, 20, 20, bytes);
    arrival = add(&s, &fill, &out);
    cr_assert(arrival.filled_hole);
    cr_assert_eq(arrival.behind_at_ns, 1020);
    cr_assert_eq(arrival.old_len, 0);
    assert_whole(&out, 30, "filled");
    stream_done(&s);
}

Test(stream, a_blind_stream_counts_and_keeps_no_bytes)
{
    struct stream s = { 0 };
    struct output out = { 0 };
    stream_set_base(&s, 0);
    stream_go_blind(&s);
    add_segment(&s, 0, 30, 10, &out);
    cr_assert_eq(s.pending_count, 1);
    cr_assert_lt(s.pending_bytes, 100, "the bytes themselves are not kept");
    add_segment(&s, 0, 0, 30, &out);
    cr_assert_eq(out.len, 40);
    for (uint32_t i = 30; i < 40; i++)
        cr_assert_eq(out.value[i], -1);
    stream_done(&s);
}

Test(stream, caps_are_noticed_and_giving_up_holes_frees_memory)
{
    static uint8_t bytes[8192];
    struct stream s = { 0 };
    struct run run;
    stream_set_base(&s, 0);
    for (uint32_t i = 0; i < 10000; i++) { /* each behind a hole of one byte */
        struct piece p = { .seq = 1 + i * 8193, .len = 8192, .data = { bytes, 8192 } };
        struct arrival arrival;
        bool has_run;
        cr_assert_eq(stream_add(&s, &p, &arrival, &run, &has_run), STATUS_OK);
        while (stream_over_cap(&s)) {
            cr_assert(stream_skip_hole(&s, &run));
            cr_assert(run.is_hole && run.len == 1);
            while (stream_next(&s, &run))
                continue;
        }
        cr_assert_leq(s.pending_count, PENDING_SEGMENTS_MAX);
        cr_assert_leq(s.pending_bytes, PENDING_BYTES_MAX);
    }
    stream_done(&s);
}

Test(stream, nothing_waits_in_an_empty_or_finished_stream)
{
    struct stream s = { 0 };
    struct run run;
    int64_t behind;
    cr_assert_not(stream_next(&s, &run));
    cr_assert_not(stream_waits(&s, &behind));
    cr_assert_not(stream_skip_hole(&s, &run));
    cr_assert_not(stream_over_cap(&s));
    stream_done(&s);
    stream_done(&s);
}
