/* SPDX-License-Identifier: Apache-2.0 */
#include "knowledge.h"

#include "profile_json.h"
#include "ticket.h"

/* ---- from rows ---- */

/* The name is a view of the row, which SQLite terminates. */
static char *name_of(const struct server_profile_row *row)
{
    return row->all_names.value != 0 || row->sni.len == 0 ? NULL : (char *)row->sni.at;
}

/* STATUS_REFUSED: somebody changed it by hand. */
static enum status read_row(const struct server_profile_row *row, struct profile *ret_profile,
                            unsigned *ret_level)
{
    static const int64_t LIMIT_NS = INT64_MAX / 2;
    *ret_profile = (struct profile){
        .is_wide = row->all_names.value != 0,
        .server_name = name_of(row),
        .server.port = (uint16_t)row->server_port.value,
        .flows = row->flows.value < 0 ? 0 : (uint64_t)row->flows.value,
        .first_ns = row->from_epoch_ns.value,
        .last_ns = row->to_epoch_ns.value,
    };
    bool is_sound = ret_profile->first_ns <= ret_profile->last_ns &&
                    ret_profile->first_ns > -LIMIT_NS && ret_profile->last_ns < LIMIT_NS &&
                    address_parse(row->server_ip.at, &ret_profile->server.address);
    struct bytes json = { (const uint8_t *)row->learned.at, row->learned.len };
    return is_sound ? profile_from_json(json, ret_profile, ret_level) : STATUS_REFUSED;
}

enum status knowledge_load(struct store *s, struct profiles *p)
{
    struct server_profile_row row;
    enum status status;
    while ((status = store_next_profile(s, &row)) == STATUS_OK) {
        struct profile profile;
        unsigned level;
        status = read_row(&row, &profile, &level);
        if (status == STATUS_REFUSED)
            continue; /* one server is known less */
        if (status == STATUS_OK)
            status = profiles_merge(p, &profile, level);
        if (status != STATUS_OK)
            return status;
    }
    return status == STATUS_END ? STATUS_OK : status;
}

enum status knowledge_learn(struct store *s, struct profiles *p)
{
    struct stored_flow row;
    enum status status;
    while ((status = store_next_flow(s, &row)) == STATUS_OK) {
        struct facts f;
        struct bytes json = { (const uint8_t *)row.facts.at, row.facts.len };
        if (row.is_open || json.len == 0)
            continue;
        status = facts_from_json(json, &f);
        if (status == STATUS_REFUSED)
            continue;
        if (status == STATUS_OK) {
            status = profiles_learn(p, &f);
            facts_done(&f);
        }
        if (status != STATUS_OK)
            return status;
    }
    return status == STATUS_END ? STATUS_OK : status;
}

/* ---- to rows ---- */

static struct row_text text_of(const char *text)
{
    return (struct row_text){ .at = text, .len = strlen(text) };
}

static struct row_integer integer_of(int64_t value, bool has)
{
    return (struct row_integer){ has, has ? value : 0 };
}

/* The number of a tally that was seen most often, and how often; NULL and 0 when it is empty. */
static void most_frequent(const struct tally *t, struct row_integer *ret_number,
                          struct row_integer *ret_flows)
{
    const struct tally_entry *most = NULL;
    for (unsigned k = 0; k < t->used; k++)
        if (most == NULL || t->entry[k].count > most->count)
            most = &t->entry[k];
    *ret_number = integer_of(most == NULL ? 0 : most->number, most != NULL);
    *ret_flows = integer_of(most == NULL ? 0 : most->count, true);
}

static struct server_profile_row row_of(const struct profile *p, const char *server,
                                        const struct buffer *learned)
{
    struct server_profile_row row = {
        .server_ip = text_of(server),
        .server_port = integer_of(p->server.port, true),
        .sni = text_of(p->server_name == NULL ? "" : p->server_name),
        .all_names = integer_of(p->is_wide, true),
        .from_epoch_ns = integer_of(p->first_ns, true),
        .to_epoch_ns = integer_of(p->last_ns, true),
        .flows = integer_of((int64_t)p->flows, true),
        .learned = { (const char *)learned->at, learned->len },
    };
    bool one = p->flights[FLIGHT_ONE] > p->flights[FLIGHT_SEPARATE];
    row.flight_records = integer_of(1, one);
    row.flight_records_flows = integer_of(p->flights[one ? FLIGHT_ONE : FLIGHT_SEPARATE], true);
    row.http2_settings_flows = integer_of(0, true);
    most_frequent(&p->identities, &row.ticket_len, &row.ticket_len_flows);
    most_frequent(&p->rests, &row.ticket_constant, &row.ticket_constant_flows);
    row.ticket_constant.value = ticket_constant((uint32_t)row.ticket_constant.value);
    most_frequent(&p->extensions, &row.encrypted_extensions_len, &row.encrypted_extensions_flows);
    row.encrypted_extensions_len.value &= EXTENSIONS_LEN_MASK;
    return row;
}

enum status knowledge_keep(struct store *s, const struct profiles *p)
{
    struct buffer learned = { 0 };
    enum status status = store_forget_profiles(s);
    for (size_t k = 0; k < profiles_count(p) && status == STATUS_OK; k++) {
        const struct profile *profile = profiles_at(p, k);
        char server[ADDRESS_TEXT_SIZE];
        if (profile->flows == 0)
            continue;
        learned.len = 0;
        status = profile_to_json(profile, profiles_level(p), &learned);
        if (status != STATUS_OK)
            break;
        struct server_profile_row row =
            row_of(profile, address_text(&profile->server.address, server), &learned);
        status = store_server_profile(s, &row);
    }
    buffer_done(&learned);
    return status;
}
