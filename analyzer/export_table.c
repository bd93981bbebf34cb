/* SPDX-License-Identifier: Apache-2.0 */
#include "export_table.h"

#include "export_columns.h"

enum { TABLE_COUNT = sizeof TABLES / sizeof TABLES[0] };

const struct export_table *export_table_find(const char *name)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        if (strcmp(TABLES[i].name, name) == 0)
            return &TABLES[i];
    return NULL;
}

const struct export_table *export_table_at(size_t number)
{
    return number < TABLE_COUNT ? &TABLES[number] : NULL;
}

void export_table_add_insert(const struct export_table *table, struct text *sql)
{
    text_addf(sql, "INSERT INTO %s_load (", table->name);
    for (size_t i = 0; i < table->column_count; i++)
        text_addf(sql, "%s%s", i > 0 ? ", " : "", table->columns[i].name);
    text_add(sql, ") FORMAT RowBinary");
}

bool export_type_fits(const char *ours, const char *there)
{
    static const char LOW[] = "LowCardinality(", ENUM[] = "Enum8(";
    size_t len = strlen(there);
    if (strncmp(there, LOW, sizeof LOW - 1) == 0 && there[len - 1] == ')') {
        there += sizeof LOW - 1;
        len -= sizeof LOW;
    }
    size_t ours_len = strlen(ours);
    if (len == ours_len && strncmp(ours, there, len) == 0)
        return true;
    const char *words = strstr(ours, ENUM);
    size_t all = strcspn(ours, ")"); /* up to the last word */
    size_t behind = ours_len - all;  /* one or two parentheses */
    return words != NULL && len > ours_len && strncmp(ours, there, all) == 0 && there[all] == ',' &&
           strncmp(there + len - behind, ours + all, behind) == 0;
}
