-- SPDX-License-Identifier: Apache-2.0
-- Which machines accept or refuse the tickets of which key? The columns of `firstflight report
-- ticket-keys`, but that the example is a flow_uid. Refused here and accepted elsewhere: the key is
-- not shared. A name that two different tickets bear names a key, and so do 4 bytes that begin
-- three names; tickets that name none are left out (`report ticket-keys` counts them).
SELECT
    nullIf(row.1, '') AS site, nullIf(row.2, '') AS host, key AS ticket_key_name,
    sum(row.3) AS issued, sum(row.4) AS offered, sum(row.5) AS accepted,
    sum(row.4) - sum(row.5) AS refused,
    any(accepted_everywhere) - sum(row.5) AS accepted_elsewhere,
    formatDateTime(toDateTime(intDiv(min(row.6), 1000000000), 'UTC'), '%FT%TZ') AS first_time,
    formatDateTime(toDateTime(intDiv(max(row.7), 1000000000), 'UTC'), '%FT%TZ') AS last_time,
    nullIf(max(row.8), '') AS example_refused
FROM
(
    -- One row for each key, with what each machine did: two names of one key become one here.
    SELECT
        is_key, if(is_key, name, substring(name, 1, 8)) AS key,
        sum(accepted_of_name) AS accepted_everywhere,
        groupArray(rows) AS rows_of_names
    FROM
    (
        SELECT
            name,
            minIf(least_ticket, least_ticket <> '') <> max(greatest_ticket) AS is_key,
            sum(accepts) AS accepted_of_name,
            groupArray((site_name, host_name, issues, offers, accepts, first_ns, last_ns, example))
                AS rows
        FROM
        (
            SELECT
                t.1 AS name, ifNull(site, '') AS site_name, ifNull(host, '') AS host_name,
                minIf(t.2, t.2 <> '') AS least_ticket, max(t.2) AS greatest_ticket,
                toInt64(countIf(t.3 = 0)) AS issues,
                toInt64(countIf(t.3 = 1)) AS offers,
                toInt64(countIf(t.3 = 1 AND by_ticket)) AS accepts,
                minIf(start_epoch_ns, t.3 < 2) AS first_ns,
                maxIf(start_epoch_ns, t.3 < 2) AS last_ns,
                maxIf(toString(flow_uid), t.3 = 1 AND NOT by_ticket) AS example
            FROM
            (
                -- A ticket offered is 1, or 2 where the captures do not show the answer; issued 0.
                SELECT
                    site, host, start_epoch_ns, flow_uid,
                    ifNull(resumed_by = 'ticket' OR resumed_by = 'psk', 0) AS by_ticket,
                    [(ifNull(ticket_key_name, ''),
                        ifNull(psk_identity_hash, ifNull(client_ip, '')),
                        if(handshake = 'unknown', 2, 1)),
                     (ifNull(issued_ticket_key_name, ''),
                        ifNull(server_random_hash, toString(flow_uid)), 0)] AS tickets
                FROM firstflight.flow
                WHERE start_time >= toDateTime('1970-01-01 00:00:00', 'UTC')
                    AND start_time < toDateTime('2100-01-01 00:00:00', 'UTC')
                    AND leg IN ('inbound', 'unknown') AND handshake <> 'none'
                    AND (ticket_key_name IS NOT NULL OR issued_ticket_key_name IS NOT NULL)
            )
            ARRAY JOIN tickets AS t
            WHERE t.1 <> ''
            GROUP BY name, site_name, host_name
        )
        GROUP BY name
    )
    GROUP BY is_key, key
    HAVING is_key OR count() > 2
)
ARRAY JOIN arrayReduce('groupArrayArray', rows_of_names) AS row
WHERE row.3 + row.4 > 0
GROUP BY key, site, host
ORDER BY refused > 0 AND accepted_elsewhere > 0 DESC, refused DESC, offered DESC, site, host, key
