/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: arguments -> files (walking directories) -> each file once -> probed for its
 * first frame -> named and labelled -> sorted by point and time -> cut into points.
 */
#include "inputs.h"

#include "bytes.h"
#include "capture.h"
#include "manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Frames without a valid time that are passed over in search of one. */
enum { PROBED_FRAMES_MAX = 100 };

/* A file that was named or found, on its way into a point. */
struct found {
    struct input_file file;
    char *point;
    struct labels labels;
    dev_t device; /* this and inode tell files apart */
    ino_t inode;
    size_t order; /* of appearance */
    bool is_named;
    bool is_regular;
};

struct finder {
    const struct input_options *options;
    struct inputs *result;
    struct manifest *manifest; /* NULL without */
    struct found *files;
    size_t file_count, file_capacity;
    size_t note_capacity;
    size_t other_count; /* files in directories that are no captures, by name or content */
    size_t other_note;  /* index of the note that tells of them */
    bool stdin_taken;
};

/* A directory being walked, and those it lies in. */
struct ancestor {
    const struct ancestor *above;
    dev_t device;
    ino_t inode;
    unsigned depth;
};

/* ---- growing arrays ---- */

/* Makes room for one element more; the array stays as it was without memory. */
static enum status make_room(void **array, size_t count, size_t *capacity, size_t element_size)
{
    if (count < *capacity)
        return STATUS_OK;
    size_t wanted = *capacity > 0 ? *capacity * 2 : 16;
    void *grown = reallocarray(*array, wanted, element_size);
    if (grown == NULL)
        return STATUS_NO_MEMORY;
    *array = grown;
    *capacity = wanted;
    return STATUS_OK;
}

static enum status add_note(struct finder *f, const char *path, const char *text, bool is_error)
{
    struct inputs *r = f->result;
    void *array = r->notes;
    if (make_room(&array, r->note_count, &f->note_capacity, sizeof *r->notes) != STATUS_OK)
        return STATUS_NO_MEMORY;
    r->notes = array;
    struct input_note note = { strdup(path), strdup(text), is_error };
    if (note.path == NULL || note.text == NULL) {
        free(note.path);
        free(note.text);
        return STATUS_NO_MEMORY;
    }
    r->notes[r->note_count++] = note;
    return STATUS_OK;
}

static void found_done(struct found *file)
{
    free(file->file.path);
    free(file->point);
    labels_done(&file->labels);
}

static enum status add_file(struct finder *f, const char *path, const struct stat *st,
                            bool is_named)
{
    void *array = f->files;
    if (make_room(&array, f->file_count, &f->file_capacity, sizeof *f->files) != STATUS_OK)
        return STATUS_NO_MEMORY;
    f->files = array;
    struct found file = {
        .file = { .path = strdup(path), .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0 },
        .device = st->st_dev,
        .inode = st->st_ino,
        .order = f->file_count,
        .is_named = is_named,
        .is_regular = S_ISREG(st->st_mode),
    };
    if (file.file.path == NULL)
        return STATUS_NO_MEMORY;
    f->files[f->file_count++] = file;
    return STATUS_OK;
}

/* ---- from arguments to files ---- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int not_dots(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static bool is_inside_itself(const struct ancestor *directory)
{
    for (const struct ancestor *a = directory->above; a != NULL; a = a->above) {
        if (a->device == directory->device && a->inode == directory->inode)
            return true;
    }
    return false;
}

static enum status add_directory(struct finder *f, const char *path, const struct stat *st,
                                 const struct ancestor *above);

/* One entry of a directory; links are followed. */
static enum status add_entry(struct finder *f, const char *directory, const char *name,
                             const struct ancestor *inside)
{
    char *path;
    const char *slash = directory[0] != '\0' && directory[strlen(directory) - 1] == '/' ? "" : "/";
    if (asprintf(&path, "%s%s%s", directory, slash, name) < 0)
        return STATUS_NO_MEMORY;
    struct stat st;
    enum status status;
    if (name[0] == '.')
        status = add_note(f, path, "hidden, not read", false);
    else if (stat(path, &st) != 0)
        status = add_note(f, path, strerror(errno), true);
    else if (S_ISDIR(st.st_mode))
        status = add_directory(f, path, &st, inside);
    else if (S_ISREG(st.st_mode))
        status = add_file(f, path, &st, false);
    else
        status = add_note(f, path, "no regular file, not read", false);
    free(path);
    return status;
}

static enum status add_directory(struct finder *f, const char *path, const struct stat *st,
                                 const struct ancestor *above)
{
    struct ancestor here = { above, st->st_dev, st->st_ino, above != NULL ? above->depth + 1 : 1 };
    if (is_inside_itself(&here))
        return add_note(f, path, "link to a directory it lies in, not entered", false);
    if (here.depth > INPUT_DIRECTORIES_MAX)
        return add_note(f, path, "too many nested directories, not entered", true);

    struct dirent **entries;
    int count = scandir(path, &entries, not_dots, by_name);
    if (count < 0)
        return errno == ENOMEM ? STATUS_NO_MEMORY : add_note(f, path, strerror(errno), true);
    enum status status = STATUS_OK;
    for (int i = 0; i < count; i++) {
        if (status == STATUS_OK)
            status = add_entry(f, path, entries[i]->d_name, &here);
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* Standard input can be read once, whether as a capture or as a list of files. */
static enum status take_stdin(struct finder *f, const char *path)
{
    if (f->stdin_taken) {
        enum status status = add_note(f, path, "standard input can be read only once", true);
        return status == STATUS_OK ? STATUS_USAGE : status;
    }
    f->stdin_taken = true;
    return STATUS_OK;
}

/* Something that was named: a file, a directory, a pipe, standard input. */
static enum status add_named(struct finder *f, const char *path)
{
    if (strcmp(path, "-") == 0) {
        enum status status = take_stdin(f, path);
        struct stat nothing = { 0 };
        return status == STATUS_OK ? add_file(f, path, &nothing, true) : status;
    }
    struct stat st;
    if (stat(path, &st) != 0)
        return add_note(f, path, strerror(errno), true);
    if (S_ISDIR(st.st_mode))
        return add_directory(f, path, &st, NULL);
    if (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode))
        return add_file(f, path, &st, true);
    return add_note(f, path, "is neither a file nor a directory nor a pipe", true);
}

static enum status add_lines(struct finder *f, FILE *list)
{
    char *line = NULL;
    size_t capacity = 0;
    enum status status = STATUS_OK;
    ssize_t len;
    while (status == STATUS_OK && (len = getline(&line, &capacity, list)) > 0) {
        if (line[len - 1] == '\n')
            line[len - 1] = '\0';
        if (line[0] != '\0')
            status = add_named(f, line);
    }
    free(line);
    return status;
}

static enum status add_files_from(struct finder *f, const char *path)
{
    bool is_stdin = strcmp(path, "-") == 0;
    if (is_stdin) {
        enum status status = take_stdin(f, path);
        if (status != STATUS_OK)
            return status;
    }
    FILE *list = is_stdin ? stdin : fopen(path, "re");
    if (list == NULL) {
        enum status status = add_note(f, path, strerror(errno), true);
        return status == STATUS_OK ? STATUS_IO : status;
    }
    enum status status = add_lines(f, list);
    if (status == STATUS_OK && ferror(list)) {
        status = add_note(f, path, strerror(errno), true);
        status = status == STATUS_OK ? STATUS_IO : status;
    }
    if (!is_stdin)
        (void)fclose(list);
    return status;
}

static enum status add_all(struct finder *f)
{
    const struct input_options *o = f->options;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < o->path_count && status == STATUS_OK; i++)
        status = add_named(f, o->paths[i]);
    if (status == STATUS_OK && o->files_from != NULL)
        status = add_files_from(f, o->files_from);
    return status;
}

/* ---- each file once ---- */

static int by_identity(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int by_order(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Keeps a file under the first of its names. */
static enum status drop_duplicates(struct finder *f)
{
    if (f->file_count < 2)
        return STATUS_OK;
    qsort(f->files, f->file_count, sizeof *f->files, by_identity);
    size_t kept = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < f->file_count; i++) {
        struct found *last = kept > 0 ? &f->files[kept - 1] : NULL;
        struct found file = f->files[i];
        if (last != NULL && last->device == file.device && last->inode == file.inode) {
            if (status == STATUS_OK)
                status = add_note(f, file.file.path, "named twice, read once", false);
            last->is_named = last->is_named || file.is_named;
            found_done(&file);
        } else {
            f->files[kept++] = file;
        }
    }
    f->file_count = kept;
    qsort(f->files, f->file_count, sizeof *f->files, by_order);
    return status;
}

/* ---- what is in a file ---- */

/* Damage is not looked for here: whoever reads the file will meet it. */
static enum status first_time(struct capture *c, int64_t *ret_at_ns)
{
    struct frame frame;
    *ret_at_ns = 0;
    for (int i = 0; i < PROBED_FRAMES_MAX; i++) {
        enum status status = capture_next(c, &frame);
        if (status != STATUS_OK)
            return status == STATUS_NO_MEMORY ? status : STATUS_OK;
        if (frame.at_ns != FRAME_TIME_INVALID) {
            *ret_at_ns = frame.at_ns;
            break;
        }
    }
    return STATUS_OK;
}

/* Whether a file is named as captures are, and worth a note of its own when it is none. */
static bool is_named_like_capture(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    return strcasestr(name, ".pcap") != NULL || strcasestr(name, ".cap") != NULL ||
           strcasestr(name, ".dmp") != NULL;
}

/* What else lies in directories is told in one note, with the path of the first. */
static enum status count_other(struct finder *f, const char *path, const char *why)
{
    if (f->other_count++ > 0)
        return STATUS_OK;
    f->other_note = f->result->note_count;
    return add_note(f, path, why, false);
}

static enum status tell_others(struct finder *f)
{
    if (f->other_count < 2)
        return STATUS_OK;
    struct input_note *note = &f->result->notes[f->other_note];
    size_t more = f->other_count - 1;
    char *text;
    if (asprintf(&text, "%s, and %zu more file%s in directories %s no capture%s", note->text, more,
                 more == 1 ? "" : "s", more == 1 ? "is" : "are", more == 1 ? "" : "s") < 0)
        return STATUS_NO_MEMORY;
    free(note->text);
    note->text = text;
    return STATUS_OK;
}

/* Whether the file is a capture, and when it starts; a note when it is none. */
static enum status probe(struct finder *f, struct found *file, bool *ret_is_capture)
{
    *ret_is_capture = true;
    if (!file->is_regular)
        return STATUS_OK;
    struct capture *c = NULL;
    enum status status = capture_open(file->file.path, NULL, &c);
    if (status == STATUS_NO_MEMORY)
        return status;
    if (status == STATUS_OK) {
        status = first_time(c, &file->file.first_at_ns);
    } else {
        *ret_is_capture = false;
        bool is_error = file->is_named || status == STATUS_IO;
        status = is_error || is_named_like_capture(file->file.path)
                     ? add_note(f, file->file.path, capture_reason(c), is_error)
                     : count_other(f, file->file.path, capture_reason(c));
    }
    capture_close(c);
    return status;
}

/* The path with its directory as it really is; "-" stays. New. */
static char *real_path_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (strcmp(path, "-") == 0)
        return strdup(path);
    char *directory = slash != NULL ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (directory == NULL)
        return NULL;
    char *real = realpath(directory, NULL);
    const char *name = slash != NULL ? slash + 1 : path;
    char *result = NULL;
    if (real == NULL)
        result = errno == ENOMEM ? NULL : strdup(path);
    else if (asprintf(&result, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) < 0)
        result = NULL;
    free(real);
    free(directory);
    return result;
}

/* A label of the command line is over that of the path. */
static enum status override(char **label, const char *given)
{
    if (given == NULL)
        return STATUS_OK;
    char *copy = strdup(given);
    if (copy == NULL)
        return STATUS_NO_MEMORY;
    free(*label);
    *label = copy;
    return STATUS_OK;
}

/* By the manifest, or else the pattern; STATUS_REFUSED when neither knows the path. */
static enum status labels_by_path(const struct finder *f, const char *path,
                                  struct labels *ret_labels)
{
    enum status status = STATUS_REFUSED;
    if (f->manifest != NULL)
        status = manifest_labels(f->manifest, path, ret_labels);
    if (status == STATUS_REFUSED && f->options->label_pattern != NULL)
        status = labels_from_path(f->options->label_pattern, path, ret_labels);
    return status;
}

static enum status set_labels(struct finder *f, struct found *file, const char *real_path)
{
    const struct input_options *o = f->options;
    if (f->manifest != NULL || o->label_pattern != NULL) {
        enum status status = labels_by_path(f, real_path, &file->labels);
        if (status == STATUS_REFUSED)
            status =
                add_note(f, file->file.path, "read without labels: its path does not fit", false);
        if (status != STATUS_OK)
            return status;
    }
    if (override(&file->labels.site, o->site) != STATUS_OK ||
        override(&file->labels.host, o->host) != STATUS_OK ||
        override(&file->labels.region, o->region) != STATUS_OK)
        return STATUS_NO_MEMORY;
    return STATUS_OK;
}

static enum status set_point(struct finder *f, struct found *file)
{
    char *real_path = real_path_of(file->file.path);
    if (real_path == NULL)
        return STATUS_NO_MEMORY;
    file->point = point_name(real_path);
    enum status status = file->point != NULL ? set_labels(f, file, real_path) : STATUS_NO_MEMORY;
    free(real_path);
    return status;
}

/* Keeps the captures, each with its first time, point and labels. */
static enum status probe_all(struct finder *f)
{
    size_t kept = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < f->file_count; i++) {
        struct found file = f->files[i];
        bool is_capture = false;
        if (status == STATUS_OK)
            status = probe(f, &file, &is_capture);
        if (status == STATUS_OK && is_capture)
            status = set_point(f, &file);
        if (status == STATUS_OK && is_capture)
            f->files[kept++] = file;
        else
            found_done(&file);
    }
    f->file_count = kept;
    return status == STATUS_OK ? tell_others(f) : status;
}

/* ---- points ---- */

static int compare_text(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return (a != NULL) - (b != NULL);
    return strcmp(a, b);
}

static int compare_points(const struct found *a, const struct found *b)
{
    int order = strcmp(a->point, b->point);
    if (order == 0)
        order = compare_text(a->labels.site, b->labels.site);
    if (order == 0)
        order = compare_text(a->labels.host, b->labels.host);
    if (order == 0)
        order = compare_text(a->labels.region, b->labels.region);
    if (order == 0)
        order = compare_text(a->labels.other, b->labels.other);
    return order;
}

static int by_point_and_time(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int order = compare_points(x, y);
    if (order == 0)
        order = x->file.first_at_ns < y->file.first_at_ns
                    ? -1
                    : x->file.first_at_ns > y->file.first_at_ns;
    return order != 0 ? order : strcmp(x->file.path, y->file.path);
}

/* Moves files that lie side by side and are of one point into it. */
static enum status make_point(struct found *files, size_t count, struct capture_point *ret_point)
{
    struct input_file *moved = calloc(count, sizeof *moved);
    if (moved == NULL)
        return STATUS_NO_MEMORY;
    *ret_point = (struct capture_point){ files[0].labels, files[0].point, moved, count };
    files[0].labels = (struct labels){ 0 };
    files[0].point = NULL;
    for (size_t i = 0; i < count; i++) {
        moved[i] = files[i].file;
        files[i].file.path = NULL;
    }
    return STATUS_OK;
}

static enum status make_points(struct finder *f)
{
    if (f->file_count == 0)
        return STATUS_OK;
    qsort(f->files, f->file_count, sizeof *f->files, by_point_and_time);
    struct inputs *r = f->result;
    r->points = calloc(f->file_count, sizeof *r->points);
    if (r->points == NULL)
        return STATUS_NO_MEMORY;
    for (size_t first = 0, end; first < f->file_count; first = end) {
        end = first + 1;
        while (end < f->file_count && compare_points(&f->files[first], &f->files[end]) == 0)
            end++;
        enum status status = make_point(&f->files[first], end - first, &r->points[r->point_count]);
        if (status != STATUS_OK)
            return status;
        r->point_count++;
    }
    return STATUS_OK;
}

/* ---- for callers ---- */

/* A note about an option's value; returns `status`. */
static enum status fail_option(struct finder *f, const char *option, const char *value,
                               const char *why, enum status status)
{
    char *what;
    if (asprintf(&what, "%s %s", option, value) < 0)
        return STATUS_NO_MEMORY;
    enum status noted = add_note(f, what, why, true);
    free(what);
    return noted == STATUS_OK ? status : noted;
}

static enum status check_pattern(struct finder *f)
{
    const char *pattern = f->options->label_pattern;
    const char *error = pattern != NULL ? label_pattern_error(pattern) : NULL;
    if (error == NULL)
        return STATUS_OK;
    return fail_option(f, "--labels", pattern, error, STATUS_USAGE);
}

static enum status open_manifest(struct finder *f)
{
    const char *path = f->options->manifest;
    if (path == NULL)
        return STATUS_OK;
    enum status status = manifest_open(path, &f->manifest);
    if (status == STATUS_OK || status == STATUS_NO_MEMORY)
        return status;
    return fail_option(f, "--manifest", path, manifest_error(f->manifest), status);
}

enum status inputs_find(const struct input_options *options, struct inputs *ret_inputs)
{
    *ret_inputs = (struct inputs){ 0 };
    struct finder f = { .options = options, .result = ret_inputs };
    enum status status = check_pattern(&f);
    if (status == STATUS_OK)
        status = open_manifest(&f);
    if (status == STATUS_OK)
        status = add_all(&f);
    if (status == STATUS_OK)
        status = drop_duplicates(&f);
    if (status == STATUS_OK)
        status = probe_all(&f);
    if (status == STATUS_OK)
        status = make_points(&f);
    for (size_t i = 0; i < f.file_count; i++)
        found_done(&f.files[i]);
    free(f.files);
    manifest_close(f.manifest);
    return status;
}

void inputs_done(struct inputs *inputs)
{
    for (size_t i = 0; i < inputs->point_count; i++) {
        struct capture_point *p = &inputs->points[i];
        for (size_t j = 0; j < p->file_count; j++)
            free(p->files[j].path);
        free(p->files);
        free(p->name);
        labels_done(&p->labels);
    }
    for (size_t i = 0; i < inputs->note_count; i++) {
        free(inputs->notes[i].path);
        free(inputs->notes[i].text);
    }
    free(inputs->points);
    free(inputs->notes);
    *inputs = (struct inputs){ 0 };
}

bool file_is_growing(const char *path, uint64_t size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    bool grows = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size != size;
#ifdef F_SETLEASE
    if (!grows && fcntl(fd, F_SETLEASE, F_RDLCK) == 0)
        fcntl(fd, F_SETLEASE, F_UNLCK);
    else
        grows |= errno == EAGAIN; /* a lease to read is refused while there are writers */
#endif
    close(fd);
    return grows;
}
