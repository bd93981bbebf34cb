/* SPDX-License-Identifier: Apache-2.0 */
#include "worklist.h"

#include "hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READABLE_MAX = 40, DIGITS = 12 };

struct list {
    const char *point_name;
    struct text name, paths;
    uint64_t size; /* bytes of its captures */
};

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_';
}

/* Begins at the directory that the files lie in, and leaves out marks at both ends. */
static const char *readable_part(const char *point_name)
{
    size_t len = strlen(point_name);
    unsigned slashes = 0;
    const char *begin = point_name + len;
    while (begin > point_name && slashes + (begin[-1] == '/') < 2 &&
           (size_t)(point_name + len - begin) < READABLE_MAX)
        slashes += *--begin == '/';
    while (*begin != '\0' && (!is_plain(*begin) || *begin == '.'))
        begin++;
    return begin;
}

void worklist_name(const char *point_name, struct text *name)
{
    char digits[2 * sizeof(struct hash128) + 1];
    struct hash128 hash = hash_stable(text_bytes(point_name));
    bool between = false;
    for (const char *at = readable_part(point_name); *at != '\0'; at++) {
        if (is_plain(*at))
            text_addf(name, "%s%c", between ? "-" : "", *at);
        between = !is_plain(*at);
    }
    hex_text((struct bytes){ hash.octet, sizeof hash.octet }, digits);
    text_addf(name, "%s%.*s.files", name->len > 0 ? "-" : "", DIGITS, digits);
}

/* Files that another process cannot find by one line of text are on no list. */
static const char *why_not_listed(const char *path)
{
    if (strcmp(path, "-") == 0)
        return "standard input cannot be on a list";
    return strchr(path, '\n') != NULL ? "a line break in its name cannot be on a list" : NULL;
}

static void add_note(struct text *notes, const char *path, const char *why)
{
    text_add_safe(notes, text_bytes(path), false);
    text_addf(notes, ": %s\n", why);
}

/* Points that differ in labels alone share a list: their files say the same labels again. */
static enum status add_point(struct list *list, const struct capture_point *point,
                             struct worklist_result *result, struct text *notes)
{
    if (list->name.len == 0)
        worklist_name(point->name, &list->name);
    list->point_name = point->name;
    for (size_t i = 0; i < point->file_count; i++) {
        const struct input_file *file = &point->files[i];
        const char *why_not = why_not_listed(file->path);
        if (why_not != NULL) {
            add_note(notes, file->path, why_not);
            result->files_unreadable++;
            continue;
        }
        text_addf(&list->paths, "%s\n", file->path);
        list->size += file->size;
        result->files++;
    }
    return list->name.failed || list->paths.failed ? STATUS_NO_MEMORY : STATUS_OK;
}

static bool holds(const char *path, const struct text *content)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    bool same = true;
    for (size_t i = 0; same && i < content->len; i++)
        same = getc(file) == (unsigned char)content->at[i];
    same = same && getc(file) == EOF;
    fclose(file);
    return same;
}

/* Whoever reads the list while it is written sees the old one or the new one. */
static enum status replace(const char *path, const char *temporary, const struct text *content)
{
    FILE *file = fopen(temporary, "we");
    if (file == NULL)
        return STATUS_IO;
    bool written = fwrite(content->at, 1, content->len, file) == content->len;
    written = fclose(file) == 0 && written;
    if (written && rename(temporary, path) == 0)
        return STATUS_OK;
    int why = errno;
    unlink(temporary);
    errno = why;
    return STATUS_IO;
}

static enum status write_list(const struct list *list, const char *directory, FILE *out,
                              struct text *error)
{
    struct text path = { 0 }, temporary = { 0 };
    text_addf(&path, "%s/%s", directory, text_string(&list->name));
    text_addf(&temporary, "%s.part", text_string(&path));
    enum status status = path.failed || temporary.failed ? STATUS_NO_MEMORY : STATUS_OK;
    if (status == STATUS_OK && !holds(text_string(&path), &list->paths))
        status = replace(text_string(&path), text_string(&temporary), &list->paths);
    if (status == STATUS_IO)
        text_addf(error, "%s: cannot be written: %s", text_string(&path), strerror(errno));
    if (status == STATUS_OK)
        fprintf(out, "%s\n", text_string(&path));
    text_done(&path);
    text_done(&temporary);
    return status;
}

/* What takes longest is begun first: the last to end is then a small one. */
static int by_size(const void *a, const void *b)
{
    const struct list *x = a, *y = b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return strcmp(text_string(&x->name), text_string(&y->name));
}

static enum status make_lists(const struct inputs *inputs, struct list *lists, size_t *count,
                              struct worklist_result *result, struct text *notes)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < inputs->point_count && status == STATUS_OK; i++) {
        const struct capture_point *point = &inputs->points[i];
        bool is_next = *count == 0 || strcmp(lists[*count - 1].point_name, point->name) != 0;
        *count += is_next;
        status = add_point(&lists[*count - 1], point, result, notes);
    }
    return status;
}

static enum status write_all(const struct inputs *inputs, const char *directory, FILE *out,
                             struct worklist_result *result, struct text *notes, struct text *error)
{
    struct list *lists = calloc(inputs->point_count + 1, sizeof *lists);
    size_t count = 0;
    if (lists == NULL)
        return STATUS_NO_MEMORY;
    enum status status = make_lists(inputs, lists, &count, result, notes);
    qsort(lists, count, sizeof *lists, by_size);
    for (size_t i = 0; i < count; i++) {
        if (status == STATUS_OK && lists[i].paths.len > 0) {
            status = write_list(&lists[i], directory, out, error);
            result->points += status == STATUS_OK;
        }
        text_done(&lists[i].name);
        text_done(&lists[i].paths);
    }
    free(lists);
    return status;
}

enum status worklist_write(const struct input_options *options, const char *directory, FILE *out,
                           struct worklist_result *ret_result, struct text *notes,
                           struct text *error)
{
    struct inputs inputs;
    *ret_result = (struct worklist_result){ 0 };
    enum status status = inputs_find(options, &inputs);
    if (status != STATUS_OK && inputs.note_count > 0) {
        const struct input_note *last = &inputs.notes[inputs.note_count - 1];
        text_addf(error, "%s: %s", last->path, last->text);
    }
    for (size_t i = 0; status == STATUS_OK && i < inputs.note_count; i++) {
        add_note(notes, inputs.notes[i].path, inputs.notes[i].text);
        ret_result->files_unreadable += inputs.notes[i].is_error;
    }
    if (status == STATUS_OK && mkdir(directory, 0777) != 0 && errno != EEXIST) {
        text_addf(error, "%s: cannot be made: %s", directory, strerror(errno));
        status = STATUS_IO;
    }
    if (status == STATUS_OK)
        status = write_all(&inputs, directory, out, ret_result, notes, error);
    if (status != STATUS_OK && error->len == 0)
        text_add(error, "out of memory");
    inputs_done(&inputs);
    return status;
}
