/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FACTS_H
#define FACTS_H
/*
 * What was seen of one flow: everything a verdict may use, and nothing that is a verdict. Facts are
 * made while packets are read, live in a stage until the run's last packet, are judged there
 * (judge.h) and stored with the row, so that the verdict can be made again without the capture.
 *
 * A zeroed struct facts is "nothing seen". Times are Unix nanoseconds, 0 = not seen. Offsets count
 * payload bytes of one side's TCP stream from 0 (SYN and FIN not counted); they saturate at
 * OFFSET_MAX, far behind anything a verdict needs.
 */
#include "buffer.h"
#include "endpoint.h"
#include "status.h"

enum { OFFSET_MAX = 0x7fffffff, ACK_UNKNOWN = -1 };

/* Records kept of each side: handshake, tickets, first requests and responses fit many times. */
enum { RECORDS_PER_SIDE_MAX = 32, RECORDS_MAX = 2 * RECORDS_PER_SIDE_MAX };

/* Retransmissions kept with their time, for "before the response" and the wait they caused. */
enum { RESENDS_MAX = 16 };

enum record_type {                  /* RFC 8446 5.1 (RFC 9846 5.1); the first two are ours */
                   RECORD_HOLE = 0, /* bytes that were never captured: segments missing */
                   RECORD_CUT = 1,  /* bytes behind a snaplen whose record headers are unknown */
                   RECORD_CHANGE_CIPHER_SPEC = 20,
                   RECORD_ALERT = 21,
                   RECORD_HANDSHAKE = 22,
                   RECORD_APPLICATION_DATA = 23,
                   RECORD_HEARTBEAT = 24,
};

enum record_flag {
    RECORD_UNSURE = 1 << 0, /* header found again behind a hole or cut: boundary plausible only */
    RECORD_HOLED = 1 << 1,  /* bytes of its body were never captured (not the snaplen's doing) */
    RECORD_RESENT = 1 << 2, /* its first byte was sent again before the other side had it */
    RECORD_OPEN = 1 << 3,   /* the stream ended inside it: last_at_ns is the last byte seen */
    RECORD_MERGED = 1 << 4, /* stands for `skipped` further records of its kind behind it */
    RECORD_STARTS_SEGMENT = 1 << 5, /* its header is the first payload byte of a segment */
};

/* One TLS record on the wire. Times and ACK are those of first transmissions. */
struct record {
    int64_t at_ns;           /* segment that first carried its first byte */
    int64_t last_at_ns;      /* segment that first carried its last byte */
    int64_t acked_at_ns;     /* first segment of the other side that acknowledges its first byte */
    int64_t all_acked_at_ns; /* ... its last byte; 0 = not seen */
    uint64_t packet_no;      /* packet that first carried its first byte */
    uint64_t last_packet_no;
    int32_t offset;       /* stream offset of its header; of the hole's first byte */
    int32_t ack;          /* stream offset of the other side that the segment which first carried
                             its first byte acknowledges: everything before it had arrived;
                             ACK_UNKNOWN where that segment had no ACK or its base is unknown */
    uint32_t len;         /* length field (header's 5 bytes excluded); bytes of a hole or cut */
    uint32_t skipped_len; /* RECORD_MERGED: sum of the lengths of the records behind this one that
                             were left out ... */
    uint16_t skipped;     /* ... and how many they are */
    uint8_t side;         /* enum side */
    uint8_t type;         /* enum record_type */
    uint8_t flags;        /* enum record_flag */
    uint8_t
        first_message; /* handshake type of a clear handshake record's first message, else 255 */
    uint16_t content;  /* what it holds inside, where it was decrypted: the bits of content.h;
                          0 = it was not */
};

enum keys {               /* how the secrets of a connection did */
            KEYS_NONE,    /* there were none */
            KEYS_USED,    /* all records that were tried could be opened */
            KEYS_PARTIAL, /* some of them */
            KEYS_FAILED,  /* none: wrong secrets, or records with bytes missing */
};

struct resend {
    int64_t at_ns;   /* when bytes of this side came again, or came late to fill a hole */
    int64_t wait_ns; /* since that side last sent new bytes or, where these were lost before the
                        capture point, since the segment behind them was seen; >= 0 */
    uint8_t side;
};

enum client_basis { /* why we call that side the client */
                    CLIENT_BY_NOTHING,
                    CLIENT_BY_SYN,
                    CLIENT_BY_SYN_ACK,
                    CLIENT_BY_CLIENT_HELLO,
                    CLIENT_BY_SERVER_HELLO,
                    CLIENT_BY_PORT,
                    CLIENT_BY_ORDER, /* sender of the first packet seen */
};

enum flow_end { ENDED_OPEN, ENDED_FIN, ENDED_RESET, ENDED_IDLE, ENDED_CAPTURE_END, ENDED_EVICTED };

enum preamble { /* plaintext before the ClientHello that leads to it */
                PREAMBLE_NONE,
                PREAMBLE_SMTP,
                PREAMBLE_IMAP,
                PREAMBLE_POP3,
                PREAMBLE_FTP,
                PREAMBLE_XMPP,
                PREAMBLE_LDAP,
                PREAMBLE_POSTGRESQL,
                PREAMBLE_MYSQL,
                PREAMBLE_PROXY_V1,
                PREAMBLE_PROXY_V2,
                PREAMBLE_HTTP_CONNECT,
                PREAMBLE_SOCKS4,
                PREAMBLE_SOCKS5,
                PREAMBLE_OTHER, /* TLS found behind plaintext of no known kind */
};

/*
 * The scalar facts: X(type, name) for one, X2(type, name) for one per side [CLIENT], [SERVER].
 * This list is the struct, its packed form (facts.c) and its JSON in table flow_facts
 * (facts_json.c), where facts are known by their number: new ones go to the end, none is taken
 * out. An int64_t is a time, any other type is none.
 */
#define FACTS_SCALAR(X, X2)                                                                        \
    /* where and when */                                                                           \
    X(uint32_t, file)            /* index of the file in its run that holds the first packet */    \
    X(uint64_t, first_packet_no) /* in that file */                                                \
    X(int64_t, start_ns)         /* first SYN; without one the first packet */                     \
    X(int64_t, end_ns)           /* last packet */                                                 \
    X(uint8_t, client_basis)     /* enum client_basis */                                           \
    X(uint8_t, ended)            /* enum flow_end */                                               \
    X(uint8_t, continues)        /* an earlier row holds the start of this connection */           \
    X(uint16_t, tunnel)          /* enum tunnel bits of packet.h */                                \
    X2(uint8_t, ttl)             /* of the first packet of that side */                            \
    X2(uint16_t, mss)            /* option in the SYN, SYN/ACK; 0 = none seen */                   \
    X2(uint8_t, isn_known)                                                                         \
    X2(uint32_t, isn) /* initial sequence number; else the first one seen - 1 */                   \
    /* TCP handshake */                                                                            \
    X(uint8_t, syn_seen)                                                                           \
    X(uint32_t, syn_count)                                                                         \
    X(uint32_t, syn_ack_count)                                                                     \
    X(int64_t, syn_answered_ns) /* the SYN that the first SYN/ACK answers: the last before it */   \
    X(int64_t, syn_ack_ns)      /* first SYN/ACK */                                                \
    X(int64_t, syn_ack_answered_ns) /* the last SYN/ACK before the ACK */                          \
    X(int64_t, ack_ns)              /* first client segment that acknowledges the SYN/ACK */       \
    X(uint8_t, ack_is_pure)         /* it carries no payload, FIN or RST */                        \
    X(uint8_t, syn_rtt_ambiguous)   /* SYN sent again and no timestamp tells which was answered */ \
    X(uint8_t, ack_rtt_ambiguous)   /* same for the SYN/ACK and its ACK */                         \
    X(int64_t, client_after_syn_ack_ns) /* first client segment after the SYN/ACK */               \
    X(uint8_t, clock_step)   /* time went backwards: SYN/ACK before its SYN, or a step */          \
    X(uint8_t, fast_open)    /* the SYN carried data and the SYN/ACK acknowledged it */            \
    X(uint64_t, data_rtt_ns) /* least gap from server data to a payload-free ACK of it */          \
    /* amounts */                                                                                  \
    X2(uint64_t, packets)                                                                          \
    X2(uint64_t, bytes)       /* payload bytes on the wire, each counted once */                   \
    X2(uint32_t, retransmits) /* segments with payload that had been seen before */                \
    X2(uint64_t, gap_bytes)   /* payload bytes known to have been sent but never captured */       \
    X(uint32_t, duplicates)   /* packets captured twice (mirror, any device), not resent */        \
    X(uint32_t, truncated)    /* packets whose payload the snaplen cut */                          \
    X2(int64_t, fin_ns)       /* first FIN of that side */                                         \
    X2(int64_t, reset_ns)     /* first RST of that side */                                         \
    X2(int64_t, first_payload_ns)                                                                  \
    X2(int64_t, last_payload_ns)                                                                   \
    X2(uint32_t, unanswered) /* transmissions of that side since the other's last packet */        \
    /* plaintext: the first exchange of payload, whatever it is */                                 \
    X(int32_t, plain_request_end)       /* client offset behind its first payload segment */       \
    X(int64_t, plain_response_ns)       /* first server payload whose ACK covers that */           \
    X(int64_t, plain_response_acked_ns) /* if resent before: first segment acknowledging it */     \
    X(uint8_t, plain_response_resent)                                                              \
    X(uint8_t, preamble)             /* enum preamble */                                           \
    X(uint8_t, preamble_round_trips) /* what it costs before the ClientHello can be sent */        \
    /* ClientHello: the first one */                                                               \
    X(uint8_t, tls) /* TLS (or SSL) records or hellos were seen */                                 \
    X(uint8_t, client_hello_seen)                                                                  \
    X(uint8_t, client_hello_complete)                                                              \
    X(int64_t, client_hello_ns)      /* its first byte (of its record header) */                   \
    X(int64_t, client_hello_last_ns) /* its last byte */                                           \
    X(int32_t, client_hello_end)     /* client offset behind it */                                 \
    X(uint32_t, client_hello_len)    /* handshake message with its 4-byte header */                \
    X(uint16_t, client_version)      /* highest offered */                                         \
    X(uint8_t, hello_side)           /* which TCP side sent the ClientHello */                     \
    X(uint8_t, session_id_len)                                                                     \
    X(uint8_t, ticket_offered) /* session_ticket extension present */                              \
    X(uint16_t, ticket_len)    /* its length: 0 = asks for one */                                  \
    X(uint8_t, psk_offered)                                                                        \
    X(uint16_t, psk_identity_count)                                                                \
    X(uint16_t, psk_identity_len) /* of the first */                                               \
    X(uint32_t, obfuscated_ticket_age)                                                             \
    X(uint8_t, early_data_offered) /* in the first ClientHello */                                  \
    X(uint8_t, ech)                /* encrypted_client_hello, GREASE or not */                     \
    X(uint16_t, record_size_limit)                                                                 \
    X(uint8_t, second_hello_seen) /* the ClientHello after a HelloRetryRequest */                  \
    X(int64_t, second_hello_ns)                                                                    \
    X(int32_t, second_hello_end)                                                                   \
    X(uint16_t, second_psk_identity_len)                                                           \
    /* HelloRetryRequest and ServerHello */                                                        \
    X(uint8_t, hello_retry)                                                                        \
    X(int64_t, hello_retry_ns)                                                                     \
    X(int32_t, hello_retry_end) /* server offset behind it */                                      \
    X(uint8_t, server_hello_seen)                                                                  \
    X(uint8_t, server_hello_complete)                                                              \
    X(int64_t, server_hello_ns)                                                                    \
    X(int64_t, server_hello_last_ns)                                                               \
    X(int32_t, server_hello_end)                                                                   \
    X(uint16_t, version) /* selected */                                                            \
    X(uint16_t, cipher_suite)                                                                      \
    X(uint16_t, named_group) /* key share of the ServerHello or, <= 1.2, ServerKeyExchange */      \
    X(uint8_t, psk_selected)                                                                       \
    X(uint16_t, selected_identity)                                                                 \
    X(uint8_t, server_key_share)  /* ServerHello carries key_share: not psk_ke */                  \
    X(uint8_t, server_ticket)     /* session_ticket extension in ServerHello */                    \
    X(uint8_t, session_id_echoed) /* both ids not empty and equal; set when the flow ends */       \
    X(uint8_t, server_session_id_len)                                                              \
    X(uint8_t, downgrade)                                                                          \
    /* clear handshake messages, ChangeCipherSpec, alerts */                                       \
    X2(uint32_t, messages)  /* bit (1 << type) for each clear message, type < 32 */                \
    X2(int64_t, ccs_ns)     /* first ChangeCipherSpec */                                           \
    X2(int32_t, ccs_offset) /* its stream offset */                                                \
    X2(int32_t, ccs_ack)    /* as struct record ack */                                             \
    X2(uint8_t, alert_seen) /* first clear alert of that side */                                   \
    X2(uint8_t, alert_level)                                                                       \
    X2(uint8_t, alert_description)                                                                 \
    X2(int64_t, alert_ns)                                                                          \
    X(uint16_t, issued_ticket_len) /* NewSessionTicket of TLS <= 1.2; 0 = none */                  \
    X(int64_t, issued_ticket_ns)                                                                   \
    /* how far the records can be trusted */                                                       \
    X2(uint32_t, boundary_losses) /* times a record header fell into a hole or behind a cut */     \
    X2(uint32_t, records_seen)    /* all records, also those not kept */                           \
    X2(uint8_t, records_full)     /* no more are kept */                                           \
    X2(uint8_t, not_tls)          /* that side's bytes are no TLS records */                       \
    X2(uint8_t, begin_unread)     /* its first payload, or that of a segment behind plaintext, was \
                                     cut so short that TLS may begin there unseen */               \
    X(uint8_t, keys)              /* enum keys */                                                  \
    X(uint8_t, tls_reversed)      /* the TCP server sent the ClientHello: sides of records,        \
                                     messages, CCS and alerts are those of TLS, not of TCP */

/* How many scalars there are, those of two sides counted twice; whether one of a type is a time. */
#define FACTS_COUNT_1(type, name) +1
#define FACTS_COUNT_2(type, name) +2
enum { FACTS_SCALAR_COUNT = 0 FACTS_SCALAR(FACTS_COUNT_1, FACTS_COUNT_2) };
#undef FACTS_COUNT_1
#undef FACTS_COUNT_2
#define FACTS_IS_TIME(type) _Generic((type)0, int64_t : true, default : false)

/*
 * Text facts: UTF-8 or plain ASCII, checked when stored; NULL = not seen. The first ones are what a
 * verdict may use; the others only become columns of the row.
 */
#define FACTS_TEXT_JUDGED(X)                                                                       \
    X(server_name)  /* SNI as sent, printable ASCII */                                             \
    X(alpn_offered) /* "h2,http/1.1" */                                                            \
    X(alpn)         /* selected: visible in TLS <= 1.2, decrypted in TLS 1.3 */
#define FACTS_TEXT_SHOWN(X)                                                                        \
    X(ja4)                                                                                         \
    X(session_id_hash) /* of the ClientHello; empty ids have none */                               \
    X(server_session_id_hash)                                                                      \
    X(psk_identity_hash)      /* hex of the stable hash of the first identity */                   \
    X(ticket_key_name)        /* hex of the first 16 bytes of the identity or ticket offered */    \
    X(issued_ticket_key_name) /* hex of the first 16 bytes of the ticket issued, TLS <= 1.2 */     \
    X(client_hello_hash)      /* hex: random, session id, first identity, first binder */          \
    X(server_random_hash)                                                                          \
    X(early_data_rule)   /* pattern that fits the name, where the name is hidden */                \
    X(proxied_client_ip) /* address that a PROXY protocol header names */                          \
    X(proxied_server_ip)                                                                           \
    X(app_protocol) /* nDPI's label */                                                             \
    X(app_category)
#define FACTS_TEXT(X) FACTS_TEXT_JUDGED(X) FACTS_TEXT_SHOWN(X)

/* Where the texts of a flow lie, one behind the other. */
struct text_block;

struct facts {
    struct endpoint client, server;
    uint8_t ip_version;
#define FACTS_FIELD(type, name) type name;
#define FACTS_FIELD_2(type, name) type name[2];
    FACTS_SCALAR(FACTS_FIELD, FACTS_FIELD_2)
#undef FACTS_FIELD
#undef FACTS_FIELD_2
#define FACTS_FIELD(name) char *name;
    FACTS_TEXT(FACTS_FIELD)
#undef FACTS_FIELD
    struct text_block *texts; /* that the facts own, in blocks, the newest first */
    struct record *records;   /* both sides, in order of at_ns, packet_no, offset once finished */
    uint16_t record_count, record_capacity;
    uint8_t resend_count;
    struct resend resends[RESENDS_MAX];
};

/* Frees what facts own and zeroes them. */
void facts_done(struct facts *f);

/* Empties facts but keeps memory of records and texts for the next flow. */
void facts_clear(struct facts *f);

/* Makes empty facts a copy that owns its texts and records; false, and still empty, without memory.
 */
bool facts_copy(const struct facts *f, struct facts *copy);

/*
 * Replaces a text fact, one of f's own, by a copy of len bytes; false without memory. A text that
 * is not longer takes the place of the one before.
 */
bool facts_set_text(struct facts *f, char **field, const char *text, size_t len);

/*
 * Adds room for a record and returns it zeroed, or NULL without memory. Which records are kept
 * when a side has more than RECORDS_PER_SIDE_MAX is decided by the caller (record.c).
 */
struct record *facts_add_record(struct facts *f);

/* Brings the records into their final order; called once when the flow has ended. */
void facts_finish(struct facts *f);

/* The longest unit, of these two, in whole numbers of which all times and waits can be told:
 * captures with microseconds need no more digits. */
enum { FACTS_LONG_UNIT_NS = 1000 };
int64_t facts_unit_ns(const struct facts *f); /* that, or 1 */

/* Whether there was payload, but of no side enough to tell whether it is TLS. */
bool facts_are_unread(const struct facts *f);

/* Makes the TLS client the TLS server in the facts that the record layer gave. */
void facts_reverse_tls(struct facts *f);

/* Makes the client the server and the other way round, in every fact of a side. */
void facts_swap_sides(struct facts *f);

/*
 * Packed form for the stage: appends to a growing buffer. facts_unpack() restores an equal struct,
 * whose texts point into the packed bytes and whose records lie in the array: it owns nothing, must
 * not go to facts_done(), and is good as long as both. False when the bytes are not what
 * facts_pack() wrote.
 */
MUST_USE enum status facts_pack(const struct facts *f, struct buffer *out);
bool facts_unpack(struct bytes packed, struct record records[RECORDS_MAX], struct facts *ret_facts);

/*
 * Whether unpacked facts are such as a connection may have: words and sides that there are, times
 * since 1970, offsets within a stream, readable texts. What was packed in this run needs no check.
 */
bool facts_are_sound(const struct facts *f);

/*
 * JSON for table flow_facts, short because there is one for each flow:
 *
 *   {"start":EPOCH_NS,"unit":NS,"packet":NO,"client":["IP",PORT],"server":["IP",PORT],
 *    "facts":["BITS",VALUE,...],"server_name":TEXT,...,"resends":[[SIDE,AT,WAIT],...],
 *    "records":[[...],...]}
 *
 * Times count from start in units of 1 or 1000 ns. BITS has a hex digit for each four scalars, the
 * first ones its lowest bit: those set are not zero, and their values follow. A record is an array
 * in the order of FACTS_RECORD_FIELDS without the zeros at its end: "packet" counts from "packet"
 * of the flow, the fields _after from its own "at", "all_acked_after" from when its first byte was
 * acknowledged where that was seen; "message" is first_message + 1, 0 for none.
 *
 * facts_from_json() restores all but `file` and the texts that only the row has. STATUS_REFUSED
 * when the bytes are no such JSON; STATUS_NO_MEMORY.
 */
#define FACTS_RECORD_FIELDS                                                                        \
    "side", "type", "len", "at", "packet", "offset", "ack", "flags", "acked_after",                \
        "all_acked_after", "last_after", "more_packets", "message", "skipped", "skipped_len",      \
        "content"
MUST_USE enum status facts_to_json(const struct facts *f, struct buffer *out);
MUST_USE enum status facts_from_json(struct bytes json, struct facts *ret_facts);

#endif
