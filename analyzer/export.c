/* SPDX-License-Identifier: Apache-2.0 */
#include "export.h"

#include "result.h"
#include "row_binary.h"

static const char FLOW[] = "flow";

/* What a server gets when no table is named. Captures come last: those that are there are whole. */
static const char *const ALL[] = { FLOW, "drop_count", "half_open", "capture" };
enum { ALL_COUNT = sizeof ALL / sizeof ALL[0] };

/* One table on its way. */
struct run {
    struct database *database;
    const struct export_options *options;
    const struct export_table *table;
    struct query *query;
    FILE *out; /* NULL: to the server */
    struct export_count *count;
    struct text *error;
};

bool export_format_of(const char *name, enum export_format *ret_format)
{
    static const char *const NAMES[] = { "csv", "ndjson", "clickhouse" };
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (strcmp(name, NAMES[i]) == 0) {
            *ret_format = (enum export_format)i;
            return true;
        }
    return false;
}

/* The next row; STATUS_END also when the user wants no more, which the caller sees by the flag. */
static enum status next_row(const struct run *run)
{
    return *run->options->interrupted ? STATUS_END : query_next(run->query);
}

static enum status write_failed(const struct run *run)
{
    text_clear(run->error);
    text_add(run->error, "the output cannot be written");
    return STATUS_IO;
}

/* ---- csv, ndjson ---- */

static struct table *open_table(const struct run *run)
{
    const struct table_style style = { .format = run->options->format == EXPORT_CSV ? TABLE_CSV
                                                                                    : TABLE_NDJSON,
                                       .utf8 = true };
    const char **names = calloc(run->table->column_count, sizeof *names);
    for (size_t i = 0; names != NULL && i < run->table->column_count; i++)
        names[i] = run->table->columns[i].name;
    struct table *table =
        names == NULL ? NULL : table_open(run->out, style, names, run->table->column_count);
    free(names);
    return table;
}

static enum status write_text(const struct run *run)
{
    struct table *table = open_table(run);
    struct cell *row = calloc(run->table->column_count, sizeof *row);
    enum status status = table == NULL || row == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    while (status == STATUS_OK && (status = next_row(run)) == STATUS_OK) {
        for (size_t i = 0; i < run->table->column_count; i++)
            row[i] = query_cell(run->query, i);
        status = table_add(table, row);
        run->count->rows += status == STATUS_OK;
    }
    free(row);
    if (table != NULL)
        run->count->bytes = table_bytes(table);
    enum status closed = table_close(table);
    return status == STATUS_END ? closed : status;
}

/* ---- clickhouse ---- */

static enum status add_row(const struct run *run, struct buffer *block)
{
    for (size_t i = 0; i < run->table->column_count; i++) {
        struct cell cell = query_cell(run->query, i);
        enum status status = row_binary_add(block, &run->table->columns[i], &cell);
        if (status == STATUS_REFUSED) {
            text_clear(run->error);
            text_addf(run->error, "column %s of table %s holds what it never should",
                      run->table->columns[i].name, run->table->name);
        }
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* Fills an empty block. STATUS_END: there are no more rows behind it. */
static enum status fill_block(const struct run *run, struct buffer *block, uint64_t *ret_rows)
{
    int64_t most = run->options->block_rows < 1 ? EXPORT_BLOCK_ROWS : run->options->block_rows;
    enum status status = STATUS_OK;
    for (*ret_rows = 0; *ret_rows < (uint64_t)most && block->len < EXPORT_BLOCK_BYTES;
         (*ret_rows)++) {
        status = next_row(run);
        if (status == STATUS_OK)
            status = add_row(run, block);
        if (status != STATUS_OK)
            break;
    }
    return status;
}

static enum status send_block(const struct run *run, struct bytes rows)
{
    if (run->out == NULL)
        return clickhouse_insert(run->options->server, run->table, rows, run->error);
    return fwrite(rows.at, 1, rows.len, run->out) == rows.len ? STATUS_OK : write_failed(run);
}

/* The line that says where the rows belong: the file alone is enough to load it. */
static enum status write_insert(const struct run *run)
{
    struct text line = { 0 };
    export_table_add_insert(run->table, &line);
    text_add(&line, "\n");
    enum status status = result_write_text(&line, run->out);
    run->count->bytes += line.len;
    text_done(&line);
    return status == STATUS_IO ? write_failed(run) : status;
}

static enum status write_blocks(const struct run *run)
{
    struct buffer block = { 0 };
    enum status filled = STATUS_OK;
    enum status status = run->out == NULL ? STATUS_OK : write_insert(run);
    while (status == STATUS_OK && filled == STATUS_OK) {
        uint64_t rows;
        block.len = 0;
        filled = fill_block(run, &block, &rows);
        /* A failure, or Ctrl-C, in the middle of a block: what it holds is not sent. */
        if ((filled != STATUS_OK && filled != STATUS_END) || *run->options->interrupted ||
            rows == 0)
            break;
        status = send_block(run, (struct bytes){ block.at, block.len });
        if (status == STATUS_OK) {
            run->count->rows += rows;
            run->count->bytes += block.len;
            run->count->blocks += run->out == NULL;
        }
    }
    buffer_done(&block);
    return status == STATUS_OK && filled != STATUS_END ? filled : status;
}

/* ---- tables ---- */

/* Opens the rows of the table; those of flow are the ones that the options select. */
static enum status open_rows(struct run *run, struct selection *selection)
{
    if (strcmp(run->table->name, FLOW) != 0)
        return query_open(run->database, run->table->select, &run->query);
    enum status status =
        selection_init(selection, run->database, &run->options->selection, "", run->error);
    return status == STATUS_OK
               ? selection_query(selection, run->table->select, &run->query, run->error)
               : status;
}

static enum status export_one(struct run *run)
{
    struct selection selection = { 0 };
    enum status status = STATUS_OK;
    if (run->out == NULL)
        status = clickhouse_check(run->options->server, run->table, run->error);
    if (status == STATUS_OK)
        status = open_rows(run, &selection);
    if (status == STATUS_OK)
        status = run->options->format == EXPORT_CLICKHOUSE ? write_blocks(run) : write_text(run);
    query_close(run->query);
    run->query = NULL;
    selection_done(&selection);
    return status;
}

static bool is_limited(const struct selection_options *s)
{
    return s->where != NULL || s->since != NULL || s->until != NULL;
}

static enum status export_named(struct run *run, const char *name, struct export_result *result)
{
    run->table = export_table_find(name);
    if (run->table == NULL) {
        text_addf(run->error, "no such table: %s; there are", name);
        for (size_t i = 0; export_table_at(i) != NULL; i++)
            text_addf(run->error, "%s %s", i > 0 ? "," : "", export_table_at(i)->name);
        return STATUS_USAGE;
    }
    run->count = &result->tables[result->table_count++];
    run->count->table = run->table->name;
    return export_one(run);
}

/* Each page is read once, so a cache as large as a report's would only take memory. */
static enum status shrink_cache(struct database *database)
{
    static const char SQL[] = "PRAGMA main.cache_size = -2048";
    struct query *q = NULL;
    enum status status = query_open(database, SQL, &q);
    if (status == STATUS_OK)
        status = query_next(q);
    query_close(q);
    return status == STATUS_END ? STATUS_OK : status;
}

enum status command_export(struct database *database, const struct export_options *options,
                           FILE *out, struct export_result *ret_result, struct text *error)
{
    struct run run = { .database = database,
                       .options = options,
                       .out = options->server == NULL ? out : NULL,
                       .error = error };
    *ret_result = (struct export_result){ 0 };
    if (options->table != NULL && strcmp(options->table, FLOW) != 0 &&
        is_limited(&options->selection)) {
        text_add(error, "--where, --since and --until are for table flow");
        return STATUS_USAGE;
    }
    const char *const one[] = { options->table == NULL ? FLOW : options->table };
    bool all = options->table == NULL && options->server != NULL;
    enum status status = shrink_cache(database);
    for (size_t i = 0; status == STATUS_OK && i < (all ? ALL_COUNT : 1); i++)
        status = export_named(&run, (all ? ALL : one)[i], ret_result);
    if (*options->interrupted)
        return STATUS_END;
    return result_end(status, database, out, error);
}
