"""What a person said is what is checked, also in the next process."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.nouns import RelativePath
from holdfast.workbench.consent import Consent, Scope, Sending, require_consent
from holdfast.workbench.failures import ConsentRequired
from holdfast.workbench.records import CONSENTS, Consents
from holdfast.world import SystemDisk

SOURCE = Scope((RelativePath.of("src"), RelativePath.of(b"odd\xff\x1b[31m")))
GIVEN = Consent("/p", "openai", SOURCE, is_given=True, at_ms=1_700_000_000_123)
FOR_NOW = Consent("/p", "anthropic", Scope(), is_given=True, at_ms=1, session="ses_1")


@pytest.mark.promise("W12")
def test_consents_are_read_back_as_they_were_given(tmp_path: Path) -> None:
    first = Consents(SystemDisk(), tmp_path)
    for consent in (GIVEN, FOR_NOW):
        first.add(consent)
    first.close()

    assert Consents(SystemDisk(), tmp_path).all() == (GIVEN, FOR_NOW)
    assert b"\x1b" not in (tmp_path / CONSENTS).read_bytes()


@pytest.mark.promise("W12")
def test_a_consent_that_was_withdrawn_stays_withdrawn(tmp_path: Path) -> None:
    consents = Consents(SystemDisk(), tmp_path)
    sending = Sending("/p", "openai", "ses_1", Scope((RelativePath.of("src/a.py"),)))
    consents.add(GIVEN)
    require_consent(sending, consents.all())
    consents.add(Consent("/p", "openai", Scope(), is_given=False, at_ms=2))
    with pytest.raises(ConsentRequired):
        require_consent(sending, Consents(SystemDisk(), tmp_path).all())
