/* SPDX-License-Identifier: Apache-2.0 */
/* Databases of flows written as ladders of one line, see flow_script.h, and judged again. */
#include "rejudge.h"

#include "flow_script.h"
#include "row.h"

#include "store_rows.h"

enum { MEMORY = 4 << 20 };

#define SECOND_NS INT64_C(1000000000)
#define HOUR_NS (3600 * SECOND_NS)

#define FULL "C hello S hello ccs 589f C ccs 53f C 75? S 206t S 161! 19"
#define RESUMED "C hello S hello ccs 83f C ccs 53f C 75? S 206t S 161! 19"
/* The client leaves when it sees that its early data was refused, and asks again. */
#define GAVE_UP "C hello ccs 75 S retry C fin"

static const char CLIENT_IP[] = "198.51.100.7", OTHER_CLIENT_IP[] = "198.51.100.8";

struct base {
    char directory[64], path[128], answer[256];
    struct store *store;
    int64_t capture_id;
};

static void open_base(struct base *b)
{
    static const struct drop_counts NO_DROPS;
    cr_assert_not_null(make_directory(b->directory));
    path_in(b->directory, "test.db", b->path);
    cr_assert_eq(store_open(b->path, &b->store), STATUS_OK);
    cr_assert_eq(store_begin(b->store), STATUS_OK);
    struct capture_row capture = sample_capture("00");
    cr_assert_eq(store_capture(b->store, &capture, &NO_DROPS, &b->capture_id), STATUS_OK);
}

static void close_store(struct base *b)
{
    cr_assert_eq(store_commit(b->store), STATUS_OK, "%s", store_error(b->store));
    store_close(b->store);
}

static void remove_base(struct base *b)
{
    remove_directory(b->directory);
}

#define ASK(b, sql) ask_file((b)->path, sql, (b)->answer)

static void shift(struct facts *f, int64_t by_ns)
{
#define IS_TIME_OF(type) __builtin_types_compatible_p(type, int64_t)
#define SHIFT(type, name)                                                                          \
    if (IS_TIME_OF(type) && f->name != 0)                                                          \
        f->name = (type)(f->name + (type)by_ns);
#define SHIFT_2(type, name) SHIFT(type, name[CLIENT]) SHIFT(type, name[SERVER])
    FACTS_SCALAR(SHIFT, SHIFT_2)
    for (unsigned i = 0; i < f->record_count; i++) {
        struct record *r = &f->records[i];
        r->at_ns += by_ns;
        r->last_at_ns += by_ns;
        r->acked_at_ns += r->acked_at_ns != 0 ? by_ns : 0;
        r->all_acked_at_ns += r->all_acked_at_ns != 0 ? by_ns : 0;
    }
}

/* A flow that starts so long after the others; identity_len 0: it offers no ticket. */
static void read_flow(struct script *s, const char *line, uint16_t identity_len, int64_t after_ns)
{
    static char name[] = "www.example.com";
    script_read(s, line);
    s->facts.cipher_suite = 0x1301;
    s->facts.server_name = name;
    s->facts.ip_version = 4;
    s->facts.client.port = (uint16_t)(1024 + after_ns / SECOND_NS % 60000);
    cr_assert(address_parse(CLIENT_IP, &s->facts.client.address));
    cr_assert(address_parse("192.0.2.10", &s->facts.server.address));
    if (identity_len > 0)
        script_resume(s, identity_len);
    shift(&s->facts, after_ns);
}

/* Writes a flow as it is judged when nothing is known of its server. */
static void add_flow(struct base *b, const struct facts *f, bool with_facts)
{
    static const struct labels NO_LABELS;
    static const struct privacy NOTHING_HIDDEN;
    struct row_context context = { .point = "edge/a",
                                   .labels = &NO_LABELS,
                                   .privacy = &NOTHING_HIDDEN,
                                   .capture_id = b->capture_id };
    struct row_space space;
    struct flow_row row;
    struct buffer json = { 0 };
    struct verdict verdict = judge(f, NULL);
    struct path path = path_of(f, DURATION_NONE);
    struct timing timing = timing_of(f, &verdict, &path);
    bool added = false;
    row_fill(f, &verdict, &path, &timing, &context, &space, &row);
    if (with_facts)
        cr_assert_eq(facts_to_json(f, &json), STATUS_OK);
    cr_assert_eq(store_flow(b->store, &row, (struct bytes){ json.at, json.len }, &added), STATUS_OK,
                 "%s", store_error(b->store));
    cr_assert(added);
    buffer_done(&json);
}

static void add(struct base *b, const char *line, uint16_t identity_len, int64_t after_ns)
{
    struct script s;
    read_flow(&s, line, identity_len, after_ns);
    add_flow(b, &s.facts, true);
}

/* Judges all again; the flows that changed. */
static uint64_t rejudge(struct base *b, struct changes *ret_changes)
{
    struct text error = { 0 };
    struct changes changes = { 0 };
    cr_assert_eq(rejudge_all(b->path, MEMORY, &changes, &error), STATUS_OK, "%s",
                 text_string(&error));
    text_done(&error);
    uint64_t flows = changes.flows;
    if (ret_changes != NULL)
        *ret_changes = changes;
    else
        changes_done(&changes);
    return flows;
}

static uint64_t changed(const struct changes *c, const char *column, const char *before,
                        const char *after)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->list[i].column, column) == 0 && strcmp(c->list[i].before, before) == 0 &&
            strcmp(c->list[i].after, after) == 0)
            return c->list[i].flows;
    return 0;
}

Test(rejudge, what_came_later_decides_what_could_not_be_decided)
{
    struct base b;
    struct changes c;
    open_base(&b);
    add(&b, FULL, 0, 0);
    add(&b, RESUMED, 162, SECOND_NS);
    add(&b, RESUMED, 162, 2 * SECOND_NS);
    close_store(&b);
    cr_assert_str_eq(ASK(&b, "SELECT response_basis FROM flow WHERE flow_id = 1"), "weak");
    cr_expect_eq(rejudge(&b, &c), 1);
    cr_expect_eq(c.judged, 3);
    cr_expect_eq(changed(&c, "response_basis", "weak", "strong"), 1);
    cr_expect_str_eq(ASK(&b, "SELECT response_basis FROM flow WHERE flow_id = 1"), "strong");
    cr_expect_str_eq(ASK(&b, "SELECT flows || ' ' || ticket_len FROM server_profile"
                             " WHERE all_names = 0"),
                     "3 162");
    changes_done(&c);
    cr_expect_eq(rejudge(&b, NULL), 0, "a second time changes nothing");
    remove_base(&b);
}

Test(rejudge, identity_and_region_stay_as_they_are)
{
    struct base b;
    open_base(&b);
    add(&b, FULL, 0, 0);
    close_store(&b);
    ASK(&b, "UPDATE flow SET client_region = 'eu', client_region_basis = 'clients',"
            " app_protocol = 'TLS', handshake = 'unknown', response_at_ns = 5 RETURNING 1");
    cr_expect_eq(rejudge(&b, NULL), 1);
    cr_expect_str_eq(ASK(&b, "SELECT client_region || ' ' || app_protocol || ' ' || handshake"
                             " FROM flow"),
                     "eu TLS full");
    remove_base(&b);
}

/*
 * A deploy in between: tickets become longer. Two flows get an answer and no ticket, and it is as
 * long as the tickets of the other time; what held then decides.
 */
Test(rejudge, a_deploy_divides_what_holds)
{
    struct base b;
    open_base(&b);
    for (int64_t i = 0; i < 3; i++) {
        add(&b, RESUMED, 162, i * SECOND_NS);
        add(&b, "C hello S hello ccs 83f C ccs 53f C 75? S 306t S 161! 19", 262,
            6 * HOUR_NS + i * SECOND_NS);
    }
    add(&b, "C hello S hello ccs 83f C ccs 53f C 75? S 306! S 999", 162, 10 * SECOND_NS);
    add(&b, "C hello S hello ccs 83f C ccs 53f C 75? S 206! S 999", 262,
        6 * HOUR_NS + 10 * SECOND_NS);
    close_store(&b);
    (void)rejudge(&b, NULL);
    cr_expect_str_eq(ASK(&b, "SELECT group_concat(len) FROM flow JOIN record USING (flow_id)"
                             " WHERE record_no = response_record_no AND flow_id > 6"),
                     "306,206");
    remove_base(&b);
}

Test(rejudge, facts_that_are_none_leave_their_flow_alone)
{
    struct base b;
    struct changes c;
    open_base(&b);
    add(&b, FULL, 0, 0);
    close_store(&b);
    ASK(&b, "UPDATE flow_facts SET facts = '{' RETURNING 1");
    cr_expect_eq(rejudge(&b, &c), 0);
    cr_expect_eq(c.unreadable, 1);
    cr_expect_eq(c.judged, 0);
    changes_done(&c);
    remove_base(&b);
}

Test(rejudge, profiles_whose_flows_kept_no_facts_stay)
{
    struct base b;
    open_base(&b);
    struct profiles *p = profiles_open();
    cr_assert_not_null(p);
    for (int64_t i = 0; i < 2; i++) {
        struct script s;
        read_flow(&s, RESUMED, 162, i * SECOND_NS);
        add_flow(&b, &s.facts, false);
        cr_assert_eq(profiles_learn(p, &s.facts), STATUS_OK);
    }
    profiles_settle(p);
    cr_assert_eq(knowledge_keep(b.store, p), STATUS_OK);
    profiles_close(p);
    add(&b, FULL, 0, 5 * SECOND_NS);
    close_store(&b);
    cr_expect_eq(rejudge(&b, NULL), 1);
    cr_expect_str_eq(ASK(&b, "SELECT response_basis FROM flow WHERE flow_id = 3"), "strong");
    cr_expect_str_eq(ASK(&b, "SELECT sum(flows) FROM server_profile"), "4");
    remove_base(&b);
}

/* A flow without facts learns the way to its client from another one. */
Test(rejudge, a_neighbour_tells_the_way_without_facts)
{
    struct base b;
    struct script s;
    open_base(&b);
    read_flow(&s, FULL, 0, 0);
    s.facts.ack_is_pure = 0;
    add_flow(&b, &s.facts, false);
    add(&b, FULL, 0, SECOND_NS);
    close_store(&b);
    cr_assert_str_eq(ASK(&b, "SELECT perceived_ns FROM flow WHERE flow_id = 1"), "NULL");
    cr_expect_eq(rejudge(&b, NULL), 1);
    cr_expect_str_eq(ASK(&b, "SELECT rtt_basis || (perceived_ns = response_ns + client_rtt_ns)"
                             " FROM flow WHERE flow_id = 1"),
                     "neighbour1");
    cr_expect_eq(rejudge(&b, NULL), 0);
    remove_base(&b);
}

/* ---- after an ingest ---- */

static void learn_run(struct base *b, struct profiles *p, const char *line, uint16_t identity_len)
{
    struct script s;
    read_flow(&s, line, identity_len, 9 * SECOND_NS);
    cr_assert_eq(knowledge_load(b->store, p), STATUS_OK);
    cr_assert_eq(profiles_learn(p, &s.facts), STATUS_OK);
    cr_assert_eq(profiles_learn(p, &s.facts), STATUS_OK);
    profiles_settle(p);
}

Test(rejudge, only_earlier_undecided_flows_of_servers_that_were_seen_again)
{
    struct base b;
    struct script other;
    struct changes c = { 0 };
    struct text error = { 0 };
    struct profiles *p = profiles_open();
    cr_assert_not_null(p);
    open_base(&b);
    add(&b, FULL, 0, 0);
    add(&b, RESUMED, 162, SECOND_NS); /* is decided */
    read_flow(&other, FULL, 0, 2 * SECOND_NS);
    other.facts.server.port = 8443;
    add_flow(&b, &other.facts, true);
    add(&b, FULL, 0, 3 * SECOND_NS); /* belongs to the run */
    learn_run(&b, p, RESUMED, 162);
    struct rejudge_run run = {
        .store = b.store, .profiles = p, .up_to_flow_id = 3, .memory_max = MEMORY
    };
    cr_assert_eq(rejudge_undecided(&run, &c, &error), STATUS_OK, "%s", text_string(&error));
    cr_expect_eq(c.judged, 1);
    cr_expect_eq(c.flows, 1);
    close_store(&b);
    cr_expect_str_eq(ASK(&b, "SELECT group_concat(response_basis) FROM flow"),
                     "strong,strong,weak,weak");
    changes_done(&c);
    profiles_close(p);
    remove_base(&b);
}

/* ---- retries ---- */

static void add_early(struct base *b, const char *line, const char *client, int64_t after_ns)
{
    struct script s;
    read_flow(&s, line, 162, after_ns);
    cr_assert(address_parse(client, &s.facts.client.address));
    if (strcmp(line, GAVE_UP) == 0)
        script_offer_early_data(&s);
    add_flow(b, &s.facts, true);
}

Test(rejudge, an_abandoned_connection_and_its_retry_are_one_wait)
{
    struct base b;
    open_base(&b);
    add_early(&b, GAVE_UP, CLIENT_IP, 0);
    add_early(&b, RESUMED, OTHER_CLIENT_IP, SECOND_NS / 10); /* somebody else */
    add_early(&b, RESUMED, CLIENT_IP, SECOND_NS / 5);
    add_early(&b, RESUMED, CLIENT_IP, 2 * SECOND_NS); /* not the first */
    close_store(&b);
    cr_assert_str_eq(ASK(&b, "SELECT outcome FROM flow WHERE flow_id = 1"), "abandoned");
    (void)rejudge(&b, NULL);
    cr_expect_str_eq(ASK(&b, "SELECT retry.flow_id || ' ' || (one.retried_perceived_ns ="
                             " 200000000 + retry.perceived_ns) FROM flow AS one"
                             " JOIN flow AS retry ON retry.flow_uid = one.retried_by"),
                     "3 1");
    cr_expect_str_eq(ASK(&b, "SELECT count(retried_by) FROM flow"), "1");
    remove_base(&b);
}

Test(rejudge, what_comes_much_later_is_no_retry)
{
    struct base b;
    open_base(&b);
    add_early(&b, GAVE_UP, CLIENT_IP, 0);
    add_early(&b, RESUMED, CLIENT_IP, 6 * SECOND_NS);
    close_store(&b);
    (void)rejudge(&b, NULL);
    cr_expect_str_eq(ASK(&b, "SELECT count(retried_by) FROM flow"), "0");
    remove_base(&b);
}
