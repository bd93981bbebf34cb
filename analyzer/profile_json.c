/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_json.h"

#include "decimal.h"
#include "json_load.h"

#include <jansson.h>

enum { TALLIES = 5, LEVEL_MAX = 63, NUMBER_MAX = 80, NAME_MAX = 16 };

/* Room was reserved for all of it. */

static void add_words(struct buffer *out, const char *words)
{
    size_t len = strlen(words);
    memcpy(out->at + out->len, words, len);
    out->len += len;
}

static void add_number(struct buffer *out, const char *before, int64_t value)
{
    add_words(out, before);
    put_decimal(out, value);
}

static void add_tally(struct buffer *out, const char *name, const struct tally *t)
{
    if (t->used == 0)
        return;
    add_words(out, ",\"");
    add_words(out, name);
    add_words(out, "\":");
    for (unsigned i = 0; i < t->used; i++) {
        const struct tally_entry *e = &t->entry[i];
        add_number(out, i == 0 ? "[[" : ",[", e->number);
        add_number(out, ",", e->count);
        add_number(out, ",", e->first_ns);
        add_number(out, ",", e->last_ns);
        add_words(out, "]");
    }
    add_words(out, "]");
}

enum status profile_to_json(const struct profile *p, unsigned level, struct buffer *out)
{
    size_t most = (size_t)TALLIES * (NAME_MAX + TALLY_MAX * NUMBER_MAX) +
                  (FLIGHT_ONE + 3) * (size_t)NUMBER_MAX;
    if (!buffer_reserve(out, most))
        return STATUS_NO_MEMORY;
    add_words(out, "{\"flights\":");
    for (unsigned shape = 0; shape <= FLIGHT_ONE; shape++)
        add_number(out, shape == 0 ? "[" : ",", p->flights[shape]);
    add_words(out, "]");
    add_tally(out, "identities", &p->identities);
    add_tally(out, "rests", &p->rests);
    add_tally(out, "unasked", &p->unasked);
    add_tally(out, "extensions", &p->extensions);
    add_tally(out, "one_records", &p->one_records);
    if (level > 0)
        add_number(out, ",\"level\":", level);
    add_words(out, "}");
    return STATUS_OK;
}

static int64_t element(const json_t *array, size_t i)
{
    return json_integer_value(json_array_get(array, i));
}

static uint32_t count_of(int64_t value)
{
    return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* A time that a day more or less cannot overflow. */
static int64_t time_of(int64_t value)
{
    static const int64_t LIMIT_NS = INT64_MAX / 2;
    return value < -LIMIT_NS ? -LIMIT_NS : value > LIMIT_NS ? LIMIT_NS : value;
}

static struct tally read_tally(const json_t *array)
{
    struct tally t = { 0 };
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *a = json_array_get(array, i);
        struct tally_entry e = {
            .number = count_of(element(a, 0)),
            .count = count_of(element(a, 1)),
            .first_ns = time_of(element(a, 2)),
            .last_ns = time_of(element(a, 3)),
        };
        if (e.count > 0 && e.first_ns <= e.last_ns)
            tally_merge(&t, &e);
    }
    return t;
}

enum status profile_from_json(struct bytes json, struct profile *profile, unsigned *ret_level)
{
    json_t *root;
    enum status status = json_load_text(json, &root);
    if (status == STATUS_OK && !json_is_object(root))
        status = STATUS_REFUSED;
    if (status == STATUS_OK) {
        const json_t *flights = json_object_get(root, "flights");
        for (unsigned shape = 0; shape <= FLIGHT_ONE; shape++)
            profile->flights[shape] = count_of(element(flights, shape));
        profile->identities = read_tally(json_object_get(root, "identities"));
        profile->rests = read_tally(json_object_get(root, "rests"));
        profile->unasked = read_tally(json_object_get(root, "unasked"));
        profile->extensions = read_tally(json_object_get(root, "extensions"));
        profile->one_records = read_tally(json_object_get(root, "one_records"));
        int64_t level = json_integer_value(json_object_get(root, "level"));
        *ret_level = level < 0 ? 0 : level > LEVEL_MAX ? LEVEL_MAX : (unsigned)level;
    }
    json_decref(root);
    return status;
}
