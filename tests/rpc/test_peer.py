"""The peer: row by row, then in any order against a model of the conversation."""

from __future__ import annotations

import math
import random
import tracemalloc

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from holdfast.rpc.failures import TooManyRequests, Unencodable
from holdfast.rpc.model import Answer, Dialect, ErrorReply, MalformedMessage, Unmatched
from holdfast.rpc.peer import Peer, PeerLimits, Pending, Received


def seen(received: Received) -> dict[str, object]:
    """What was received, as plain values, without the empty sorts."""
    sorts: dict[str, object] = {
        "notifications": [(n.method, bytes(n.params)) for n in received.notifications],
        "requests": [(r.id, r.method, bytes(r.params)) for r in received.requests],
        "answers": [
            (a.id, bytes(a.result)) if isinstance(a, Answer) else (a.id, a.code, a.message)
            for a in received.answers
        ],
        "oddities": received.oddities,
    }
    return {name: found for name, found in sorts.items() if found}


@pytest.mark.promise("F19")
def test_answers_are_matched_by_id_in_any_order() -> None:
    peer = Peer()
    first, _ = peer.request("a", None)
    second, _ = peer.request("b", None)

    received = peer.receive(
        [b'{"id":2,"result":"B"}', b'{"id":1,"error":{"code":5,"message":"m"}}']
    )

    assert (first, second) == (1, 2)
    assert seen(received) == {"answers": [(2, b'"B"'), (1, 5, "m")]}
    assert dict(peer.in_flight) == {}


@pytest.mark.promise("F10")
def test_an_answer_to_nothing_is_an_oddity_and_a_late_one_is_known() -> None:
    peer = Peer()
    id_, _ = peer.request("a", None)
    peer.give_up(id_)

    received = peer.receive(
        [b'{"id":1,"result":1}', b'{"id":1,"result":1}', b'{"id":"x","result":1}']
    )

    assert seen(received) == {
        "oddities": [
            Unmatched(1, late=True),
            Unmatched(1, late=False),
            Unmatched("x", late=False),
        ]
    }


@pytest.mark.promise("F9")
def test_ten_malformed_in_a_row_make_it_unhealthy_and_one_good_message_heals() -> None:
    peer = Peer(limits=PeerLimits(malformed_max=10))

    peer.receive([b"noise"] * 9 + [b'{"method":"fine"}'] + [b"noise"] * 9)
    assert peer.healthy
    peer.receive([b"noise"])
    assert not peer.healthy
    peer.receive([b'{"id":1,"method":"fine"}'])
    assert peer.healthy
    assert peer.malformed_total == 19


@pytest.mark.promise("F22")
def test_one_request_too_many_is_refused_and_changes_nothing() -> None:
    peer = Peer(limits=PeerLimits(in_flight_max=2))
    peer.request("a", None)
    peer.request("b", None)

    with pytest.raises(TooManyRequests) as raised:
        peer.request("c", None)
    peer.receive([b'{"id":1,"result":1}'])

    assert raised.value == TooManyRequests(in_flight_max=2)
    assert peer.request("c", None)[0] == 3


def test_what_is_overdue_is_known_until_it_is_given_up() -> None:
    peer = Peer()
    assert (peer.next_deadline, peer.overdue(math.inf)) == (math.inf, {})
    peer.request("slow", None, deadline=9.0)
    peer.request("fast", None, deadline=5.0)

    assert (peer.next_deadline, peer.overdue(4.9)) == (5.0, {})
    assert peer.overdue(5.0) == {2: Pending("fast", 5.0)}
    peer.give_up(2)
    assert (peer.next_deadline, peer.overdue(5.0)) == (9.0, {})


def test_a_request_that_cannot_be_written_is_not_in_flight() -> None:
    peer = Peer(limits=PeerLimits(message_bytes_max=100))

    for params in ("\ud800", "x" * 200):
        with pytest.raises(Unencodable):
            peer.request("a", params)

    assert dict(peer.in_flight) == {}
    assert peer.request("a", None)[0] == 1


def test_an_id_that_is_in_use_is_malformed_and_free_again_once_answered() -> None:
    peer = Peer()
    line = b'{"id":"k","method":"a"}'

    twice = peer.receive([line, line])
    peer.answer("k", 1)
    again = peer.receive([line])

    assert seen(twice) == {
        "requests": [("k", "a", b"")],
        "oddities": [MalformedMessage("an id that is already in use", 0)],
    }
    assert seen(again) == {"requests": [("k", "a", b"")]}


def test_giving_up_says_so_where_the_dialect_can() -> None:
    silent, polite = Peer(), Peer(dialect=Dialect(cancel_method="$/cancel"))
    silent.request("a", None)
    polite.request("a", None)

    assert silent.give_up(1) is None
    assert polite.give_up(1) == b'{"method":"$/cancel","params":{"id":1}}'
    assert polite.give_up(1) is None


def test_how_many_are_remembered_as_given_up_is_bounded() -> None:
    peer = Peer(limits=PeerLimits(given_up_max=2))
    for _ in range(3):
        peer.give_up(peer.request("a", None)[0])

    received = peer.receive([b'{"id":1,"result":1}', b'{"id":3,"result":1}'])

    assert seen(received) == {"oddities": [Unmatched(1, late=False), Unmatched(3, late=True)]}


class Conversation(RuleBasedStateMachine):
    """Two peers over a link that delays, reorders, duplicates, mutates and injects."""

    def __init__(self) -> None:
        super().__init__()
        self.ours = Peer(limits=PeerLimits(in_flight_max=5))
        self.theirs = Peer()
        self.to_them: list[bytes] = []
        self.to_us: list[bytes] = []
        self.waiting: dict[int | str, str] = {}
        self.ended: list[int | str] = []
        self.told: list[int] = []
        self.heard: list[int] = []

    @rule(method=st.sampled_from(["a", "b", "c"]))
    def ask(self, method: str) -> None:
        try:
            id_, message = self.ours.request(method, {"echo": method})
        except TooManyRequests:
            assert len(self.waiting) == 5
            return
        assert id_ not in self.waiting
        self.waiting[id_] = method
        self.to_them.append(message)

    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        if self.waiting:
            id_ = data.draw(st.sampled_from(sorted(self.waiting, key=str)))
            self.ours.give_up(id_)
            del self.waiting[id_]

    @rule(data=st.data())
    def they_serve_any(self, data: st.DataObject) -> None:
        if self.to_them:
            message = self.to_them.pop(data.draw(st.integers(0, len(self.to_them) - 1)))
            for request in self.theirs.receive([message]).requests:
                self.to_us.append(self.theirs.answer(request.id, {"to": request.method}))

    @rule()
    def they_tell(self) -> None:
        self.told.append(len(self.told))
        self.to_us.append(self.theirs.notification("n", self.told[-1]))

    @rule(noise=st.binary(max_size=30), at=st.integers(0, 100))
    def noise(self, noise: bytes, at: int) -> None:
        self.to_us.insert(at % (len(self.to_us) + 1), noise)

    @rule(at=st.integers(0, 100))
    def an_answer_comes_twice(self, at: int) -> None:
        answers = [line for line in self.to_us if b'"result"' in line]
        if answers:
            self.to_us.append(answers[at % len(answers)])

    @rule(count=st.integers(1, 5))
    def we_read(self, count: int) -> None:
        batch, self.to_us = self.to_us[:count], self.to_us[count:]
        received = self.ours.receive(batch)
        self.heard += [int(bytes(n.params)) for n in received.notifications if n.method == "n"]
        for answer in received.answers:
            assert isinstance(answer, Answer | ErrorReply)
            method = self.waiting.pop(answer.id)  # KeyError: an answer to nothing was handed on
            if isinstance(answer, Answer):
                assert bytes(answer.result) == b'{"to":"%s"}' % method.encode()
            self.ended.append(answer.id)

    @invariant()
    def both_sides_agree_on_what_waits(self) -> None:
        assert {id_: it.method for id_, it in self.ours.in_flight.items()} == self.waiting

    @invariant()
    def no_request_ends_twice(self) -> None:
        assert len(self.ended) == len(set(self.ended))

    @invariant()
    def news_is_in_order_and_whole(self) -> None:
        assert self.heard == self.told[: len(self.heard)]


TestConversation = Conversation.TestCase

SEEDS = [
    b'{"method":"item/delta","params":{"threadId":"t","delta":"hello"},"emittedAtMs":1}',
    b'{"id":1,"method":"m","params":{"a":[1,2.5,null,true,"\\u00e9"]}}',
    b'{"id":1,"result":{"deep":[[[[{}]]]]}}',
    b'{"error":{"code":-32600,"message":"no","data":{"x":1}},"id":2}',
    '{"jsonrpc":"2.0","id":"ü","result":"\U0001f600"}'.encode(),
]


def mutated(chance: random.Random) -> bytes:
    """One message, damaged in a few places."""
    line = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randint(0, 4)):
        at = chance.randrange(len(line) + 1)
        match chance.randrange(5):
            case 0:
                line[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del line[at : at + chance.randint(1, 8)]
            case 2:
                line[at:at] = chance.choice(SEEDS)[: chance.randint(1, 40)]
            case 3:
                line[at:at] = chance.choice([b"\x00", b"\xff", b"NaN", b"1e999", b'"', b"}", b"["])
            case _:
                line[at : at + 4] = line[:4]
    return bytes(line)


def fuzz(count: int, seed: int) -> None:
    """Feed so many damaged messages; the peer must neither raise nor grow."""
    chance, peer = random.Random(seed), Peer()
    for _ in range(count // 100):
        id_, _ = peer.request("m", None)
        received = peer.receive([mutated(chance) for _ in range(100)])
        for request in received.requests:
            peer.refuse(request.id, {"code": 0, "message": ""})
        peer.give_up(id_)
    assert len(peer.in_flight) == 0


@pytest.mark.promise("F9", "F12")
def test_damaged_messages_never_raise() -> None:
    fuzz(50_000, seed=1)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.promise("F9", "F12")
def test_a_million_damaged_messages_neither_raise_nor_leak() -> None:
    fuzz(10_000, seed=2)
    tracemalloc.start()
    fuzz(20_000, seed=3)
    before, _ = tracemalloc.get_traced_memory()
    fuzz(20_000, seed=4)
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    fuzz(1_000_000, seed=5)

    assert after - before < 200_000
    assert peak < 20_000_000
