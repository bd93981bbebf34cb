/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

#include "hash.h"

#include <pthread.h>
#include <stdlib.h>

struct texts {
    pthread_mutex_t lock; /* databases add texts while several threads look addresses up */
    uint64_t seed;
    char **slots; /* open addressing, at most half full; NULL = free */
    size_t slot_count, used;
};

struct texts *texts_open(void)
{
    struct texts *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    *t = (struct texts){ .seed = hash_random_seed(), .slot_count = 256 };
    t->slots = calloc(t->slot_count, sizeof *t->slots);
    if (t->slots == NULL || pthread_mutex_init(&t->lock, NULL) != 0) {
        free(t->slots);
        free(t);
        return NULL;
    }
    return t;
}

void texts_close(struct texts *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->slot_count; i++)
        free(t->slots[i]);
    free(t->slots);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static char **texts_slot(const struct texts *t, char **slots, size_t slot_count, const char *text)
{
    struct bytes b = { (const uint8_t *)text, strlen(text) };
    size_t i = (size_t)hash_table(b, t->seed) & (slot_count - 1);
    while (slots[i] != NULL && strcmp(slots[i], text) != 0)
        i = (i + 1) & (slot_count - 1);
    return &slots[i];
}

static bool texts_grow(struct texts *t)
{
    size_t count = 2 * t->slot_count;
    char **slots = calloc(count, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < t->slot_count; i++)
        if (t->slots[i] != NULL)
            *texts_slot(t, slots, count, t->slots[i]) = t->slots[i];
    free(t->slots);
    t->slots = slots;
    t->slot_count = count;
    return true;
}

static const char *texts_keep_locked(struct texts *t, const char *text)
{
    if (2 * (t->used + 1) > t->slot_count && !texts_grow(t))
        return NULL;
    char **slot = texts_slot(t, t->slots, t->slot_count, text);
    if (*slot == NULL && (*slot = strdup(text)) != NULL)
        t->used++;
    return *slot;
}

const char *texts_keep(struct texts *t, const char *text)
{
    pthread_mutex_lock(&t->lock);
    const char *kept = texts_keep_locked(t, text);
    pthread_mutex_unlock(&t->lock);
    return kept;
}
