# SPDX-License-Identifier: Apache-2.0
"""Captures of TLS 1.3 connections, made packet by packet, as a capture point beside the server sees
them: what is in clear is real, what would be encrypted has the lengths of OpenSSL.

A flow is described by struct Flow; write_capture() makes a pcap file of many. Nothing is random but
the bytes that would be encrypted, so the caller knows everything that must be found.
"""
import dataclasses
import os
import random
import struct

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
TICKET_LEN = 192
MS = 10**6


@dataclasses.dataclass
class Flow:
    start_ns: int
    client: str                 # IPv4 address
    port: int
    server: str
    sni: str
    rtt_ms: float
    think_ms: float             # of the server, from the request to the response
    ticket_key: bytes = b""     # 16 bytes: offers a ticket sealed with it; empty: offers none
    accepts: bool = False       # the server knows the key
    early: bool = False         # offers early data with the ticket
    takes_early: bool = True    # the server's setting; it accepts if it also knows the key
    lost_ms: float = 0          # the server's flight is lost behind the capture point, sent again
    alert: bool = False         # the server answers the ClientHello with an alert


def vector(width, body):
    return len(body).to_bytes(width, "big") + body


def extension(number, body):
    return struct.pack(">HH", number, len(body)) + body


def record(kind, body):
    return struct.pack(">BHH", kind, 0x303, len(body)) + body


def sealed(draw, length):
    """A record whose content nobody can read."""
    return record(23, draw.randbytes(length))


def client_hello(flow, draw):
    extensions = extension(0, vector(2, b"\0" + vector(2, flow.sni.encode())))
    extensions += extension(10, vector(2, b"\0\x1d"))
    extensions += extension(13, vector(2, b"\x08\x04\x04\x03"))
    extensions += extension(43, vector(1, b"\x03\x04"))
    extensions += extension(45, vector(1, b"\x01"))
    extensions += extension(51, vector(2, b"\0\x1d" + vector(2, draw.randbytes(32))))
    if flow.early:
        extensions += extension(42, b"")
    if flow.ticket_key:
        ticket = flow.ticket_key + draw.randbytes(TICKET_LEN - 16)
        identities = vector(2, vector(2, ticket) + draw.randbytes(4))
        extensions += extension(41, identities + vector(2, vector(1, draw.randbytes(32))))
    body = b"\x03\x03" + draw.randbytes(32) + vector(1, draw.randbytes(32))
    body += vector(2, b"\x13\x01") + b"\x01\0" + vector(2, extensions)
    return record(22, b"\x01" + vector(3, body))


def server_hello(resumed, draw):
    extensions = extension(43, b"\x03\x04")
    extensions += extension(51, b"\0\x1d" + vector(2, draw.randbytes(32)))
    if resumed:
        extensions += extension(41, b"\0\0")
    body = b"\x03\x03" + draw.randbytes(32) + vector(1, draw.randbytes(32)) + b"\x13\x01\0"
    return record(22, b"\x02" + vector(3, body + vector(2, extensions)))


CHANGE_CIPHER_SPEC = record(20, b"\x01")


class Wire:
    """Packets of one connection in the order in which they pass the capture point."""

    def __init__(self, flow, draw):
        self.flow, self.now = flow, flow.start_ns
        self.next = [draw.getrandbits(32), draw.getrandbits(32)]  # of client and server
        self.packets = []

    def send(self, side, flags, payload=b"", seq=None, ack=None):
        flow = self.flow
        seq = self.next[side] if seq is None else seq
        ack = self.next[1 - side] if ack is None else ack
        ends = [(flow.client, flow.port), (flow.server, 443)]
        self.packets.append((self.now, segment(ends[side], ends[1 - side], seq,
                                               ack if flags & ACK else 0, flags, payload)))
        if seq == self.next[side]:
            self.next[side] = (seq + len(payload) + bool(flags & (SYN | FIN))) % 2**32

    def wait(self, ms):
        self.now += round(ms * MS)


def segment(source, target, seq, ack, flags, payload):
    tcp = struct.pack(">HHIIBBHHH", source[1], target[1], seq, ack, 5 << 4, flags, 64240, 0, 0)
    length = 20 + len(tcp) + len(payload)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, 0, 0x4000, 60, 6, 0,
                     bytes(map(int, source[0].split("."))), bytes(map(int, target[0].split("."))))
    return ip + tcp + payload


def packets_of(flow):
    draw = random.Random(f"{flow.client} {flow.port} {flow.start_ns}")
    wire = Wire(flow, draw)
    resumed = bool(flow.ticket_key) and flow.accepts
    early = flow.early and resumed and flow.takes_early
    wire.send(0, SYN)
    wire.wait(0.05)
    wire.send(1, SYN | ACK)
    wire.wait(flow.rtt_ms)
    wire.send(0, ACK)
    wire.wait(0.1)
    wire.send(0, ACK | PSH, client_hello(flow, draw))
    if flow.early:
        wire.send(0, ACK | PSH, CHANGE_CIPHER_SPEC + sealed(draw, 117))
    wire.wait(0.5)
    if flow.alert:
        wire.send(1, ACK | PSH, record(21, b"\x02\x28"))
        wire.send(1, FIN | ACK)
        wire.wait(flow.rtt_ms)
        wire.send(0, RST)
        return wire.packets
    flight_at = wire.next[1]
    flight = server_hello(resumed, draw) + CHANGE_CIPHER_SPEC + sealed(draw, 27 + 4 * early)
    if not resumed:
        flight += sealed(draw, 720) + sealed(draw, 281)
    flight += sealed(draw, 53)
    wire.send(1, ACK | PSH, flight)
    if flow.lost_ms:
        wire.wait(flow.lost_ms)
        wire.send(1, ACK | PSH, flight, seq=flight_at)
    finished = ((sealed(draw, 21) if early else b"") if flow.early else CHANGE_CIPHER_SPEC)
    finished += sealed(draw, 53)
    if early:
        answer_early(wire, flow, draw, finished)
        return wire.packets
    wire.wait(flow.rtt_ms)
    wire.send(0, ACK | PSH, finished)
    wire.wait(0.1)
    wire.send(0, ACK | PSH, sealed(draw, 117))
    wire.wait(0.1)
    for _ in range(1 if resumed else 2):
        wire.send(1, ACK | PSH, sealed(draw, 34 + 16 + TICKET_LEN))
    wire.wait(flow.think_ms)
    respond(wire, flow, draw)
    return wire.packets


def answer_early(wire, flow, draw, finished):
    """The response overtakes the client's Finished, unless the server takes longer than that."""
    is_first = flow.think_ms < flow.rtt_ms
    before_response = wire.next[1]
    if is_first:
        wire.wait(flow.think_ms)
        wire.send(1, ACK | PSH, sealed(draw, 900))
        wire.wait(flow.rtt_ms - flow.think_ms)
    else:
        wire.wait(flow.rtt_ms)
    wire.send(0, ACK | PSH, finished, ack=before_response)
    wire.wait(0.1)
    wire.send(1, ACK | PSH, sealed(draw, 34 + 16 + TICKET_LEN))
    if is_first:
        wire.wait(flow.think_ms)
        wire.send(0, ACK)
        close(wire, flow)
    else:
        wire.wait(flow.think_ms - flow.rtt_ms)
        respond(wire, flow, draw)


def respond(wire, flow, draw):
    wire.send(1, ACK | PSH, sealed(draw, 900))
    wire.wait(flow.rtt_ms)
    wire.send(0, ACK)
    close(wire, flow)


def close(wire, flow):
    wire.wait(5)
    wire.send(0, FIN | ACK)
    wire.wait(0.1)
    wire.send(1, FIN | ACK)
    wire.wait(flow.rtt_ms)
    wire.send(0, ACK)


def write_capture(path, flows):
    """Writes a pcap file with nanoseconds and the link type of raw IP."""
    packets = sorted((packet for flow in flows for packet in packets_of(flow)),
                     key=lambda packet: packet[0])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(struct.pack(">IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 262144, 101))
        for at_ns, packet in packets:
            file.write(struct.pack(">IIII", at_ns // 10**9, at_ns % 10**9, len(packet),
                                   len(packet)) + packet)
