"""A draft is read back as it was written, and anything else is refused."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import Id, RelativePath
from holdfast.workbench.draft.drafts import decode_draft, encode_draft
from holdfast.workbench.model import Draft, DraftMode, Revision, UncoveredPath, UncoveredReason

PLAIN = Draft(id=Id("draft_01m7fx2pg4vdnamqjp7qrd04ra"), project="/p", mode=DraftMode.COPY, at_ms=7)
FULL = Draft(
    id=Id("draft_01m7fx2pg4vdnamqjp7qrd04ra"),
    project="/home/\udcff/pro\nject",
    mode=DraftMode.OVERLAY,
    at_ms=1_794_756_401_668,
    base=Id("cp_1"),
    also=("/elsewhere/.git",),
    reason="overlay: no",
    left_out=(UncoveredPath(RelativePath.of(b"a\xff/b"), UncoveredReason.SPECIAL),),
    revisions=(
        Revision(number=1, checkpoint=Id("cp_2"), at_ms=8, cause="ls"),
        Revision(number=2, checkpoint=Id("cp_3"), at_ms=9, cause="é", base=Id("cp_1"), back_to=1),
    ),
)


@pytest.mark.parametrize("draft", [PLAIN, FULL])
def test_it_is_read_back_as_it_was(draft: Draft) -> None:
    assert decode_draft(encode_draft(draft)) == draft


def test_a_person_can_read_it() -> None:
    said = json.loads(encode_draft(FULL))

    assert (said["mode"], said["left_out"]) == ("overlay", [["a\\xff/b", "special"]])
    assert encode_draft(FULL).isascii()


def test_one_of_another_version_is_refused_with_its_number() -> None:
    said = json.loads(encode_draft(PLAIN))
    with pytest.raises(ValueError, match="version is 9"):
        decode_draft(json.dumps({**said, "version": 9}).encode())


def test_every_flipped_bit_and_every_cut_is_noticed() -> None:
    raw = encode_draft(FULL)
    for at in range(len(raw) - 1):  # the last is the end of the line
        for spoiled in (raw[:at], raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]):
            try:
                assert decode_draft(spoiled) == FULL  # white space says nothing
            except ValueError:
                continue


@given(st.binary() | st.text().map(str.encode) | st.just(b"[" * 100_000))
def test_anything_else_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):
        decode_draft(raw)


@pytest.mark.parametrize("reason", ["id", "mode", "revisions", "check"])
def test_one_that_lacks_something_is_refused(reason: str) -> None:
    said = json.loads(encode_draft(PLAIN))
    del said[reason]
    with pytest.raises(ValueError):
        decode_draft(json.dumps(said).encode())


def test_nothing_that_is_known_is_forgotten() -> None:
    said = json.loads(encode_draft(FULL))

    assert {field.name for field in fields(Draft)} == said.keys() - {"version", "check"}
    assert {field.name for field in fields(Revision)} == said["revisions"][0].keys()
