/* SPDX-License-Identifier: Apache-2.0 */
#include "csv.h"

struct bytes csv_line(struct bytes *rest)
{
    size_t len = 0;
    while (len < rest->len && rest->at[len] != '\n' && rest->at[len] != '\r')
        len++;
    struct bytes line = bytes_first(*rest, len);
    bool is_cr_lf = len + 1 < rest->len && rest->at[len] == '\r' && rest->at[len + 1] == '\n';
    *rest = bytes_after(*rest, is_cr_lf ? len + 2 : len < rest->len ? len + 1 : len);
    return line;
}

/* The locale has no say in what a file means, hence not those of ctype.h. */
static bool is_blank(int c)
{
    return c == ' ' || c == '\t';
}

static bool is_printable(int c)
{
    return c >= ' ' && c <= '~';
}

bool csv_field(struct bytes *line, char field[CSV_FIELD_SIZE])
{
    size_t len = 0, kept = 0; /* kept: up to the last character that is no trailing blank */
    bool quoted = false, good = true;
    size_t at = 0;
    for (; at < line->len; at++) {
        uint8_t c = line->at[at];
        if (c == '"' && quoted && at + 1 < line->len && line->at[at + 1] == '"')
            at++; /* "" inside of quotes is one */
        else if (c == '"') {
            quoted = !quoted;
            continue;
        }
        if (!quoted && (c == ',' || c == '#'))
            break;
        if (is_blank(c) && len == 0)
            continue;
        if (len == CSV_FIELD_SIZE - 1 || (!is_printable(c) && !is_blank(c))) {
            good = false;
            continue;
        }
        field[len++] = (char)c;
        if (!is_blank(c))
            kept = len;
    }
    field[kept] = '\0';
    bool more = at < line->len && line->at[at] == ',';
    *line = more ? bytes_after(*line, at + 1) : (struct bytes){ 0 };
    return good && !quoted;
}

struct bytes csv_text(struct bytes text)
{
    static const uint8_t MARK[] = { 0xef, 0xbb, 0xbf };
    bool marked = bytes_equal(bytes_first(text, sizeof MARK), (struct bytes){ MARK, sizeof MARK });
    return marked ? bytes_after(text, sizeof MARK) : text;
}
