/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a file for policies of early data. Whatever it holds: it is refused with a reason,
 * or the rule found for a name is one of it, and none that fits is longer.
 */
#include "rules.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_rules(const struct rules *r)
{
    for (size_t i = 0; i < r->count; i++) {
        const char *pattern = r->at[i].pattern;
        size_t len = strlen(pattern);
        check(len > 0 && len <= RULE_PATTERN_MAX && strpbrk(pattern, " []\r\n") == NULL);
        const struct rule *found = rules_find(r, text_bytes(pattern)); /* it fits itself */
        check(found != NULL && strlen(found->pattern) >= len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = { data, size < 4096 ? size : 4096 }; /* rules are asked for one another */
    struct rules r = { 0 };
    struct text error = { 0 }, json = { 0 };
    enum status status = rules_read_text(&r, "input", input, &error);
    check(status == STATUS_OK || (status == STATUS_REFUSED && error.len > 0));
    if (status == STATUS_OK) {
        check_rules(&r);
        (void)rules_find(&r, input);
        rules_add_json(&r, &json);
        check(json.len >= 2 && json.at[json.len - 1] == ']');
    }
    text_done(&json);
    text_done(&error);
    rules_done(&r);
    return 0;
}
