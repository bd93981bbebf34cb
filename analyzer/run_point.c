/* SPDX-License-Identifier: Apache-2.0 */
#include "run_point.h"

#include <stdlib.h>

static void drop_what_was_learned(struct run_point *p)
{
    half_opens_close(p->half_opens);
    neighbours_close(p->neighbours);
    roles_close(p->roles);
    profiles_close(p->profiles);
    p->half_opens = NULL;
    p->neighbours = NULL;
    p->roles = NULL;
    p->profiles = NULL;
}

void run_point_done(struct run_point *p)
{
    drop_what_was_learned(p);
    stage_close(p->stage);
    stage_close(p->open);
    p->stage = p->open = NULL;
    continuation_done(&p->continuation);
    notes_done(&p->notes);
    for (size_t k = 0; k < p->file_count; k++) {
        text_done(&p->files[k].interfaces);
        free(p->files[k].damage);
        p->files[k].damage = NULL;
    }
}

void run_point_clear(struct run_point *p)
{
    drop_what_was_learned(p);
    if (p->stage != NULL)
        stage_clear(p->stage);
    if (p->open != NULL)
        stage_clear(p->open);
}
