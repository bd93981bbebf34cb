/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a file for --sites, and so one of csv.h. Whatever it holds: its lines and fields are
 * taken off until nothing is left, and it is refused with a line of it, or every region is short
 * printable text.
 */
#include "csv.h"
#include "sites.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_text(const char *text)
{
    check(strlen(text) < CSV_FIELD_SIZE);
    for (; *text != '\0'; text++)
        check(*text == '\t' || (*text >= ' ' && *text <= '~'));
}

/* Returns the number of lines. */
static size_t take_all(struct bytes text, const struct sites *sites)
{
    size_t lines = 0;
    text = csv_text(text);
    for (; text.len > 0; lines++) {
        size_t before = text.len;
        struct bytes line = csv_line(&text);
        check(text.len < before && line.len <= before - text.len);
        while (line.len > 0) {
            char field[CSV_FIELD_SIZE];
            const char *region = NULL;
            size_t left = line.len;
            (void)csv_field(&line, field);
            check(line.len < left);
            check_text(field);
            if (sites_find(sites, field, &region) && region != NULL)
                check_text(region);
        }
    }
    return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = { data, size };
    struct sites *sites = NULL;
    size_t line = 0;
    enum status status = sites_read(input, &sites, &line);
    check(status == STATUS_OK || status == STATUS_REFUSED);
    size_t lines = take_all(input, sites);
    check(line <= lines && (status == STATUS_OK || line > 0));
    sites_close(sites);
    return 0;
}
