"""The key families that show by their form what they are.

A row says how a key begins: `head` matches within one run of letters, digits, `_` and `-`.
`needs` is what must follow that run and `rest` how the key goes on from there. Prefixes that end
in another character stand in a lookbehind and stay readable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PLAIN = r"[A-Za-z0-9_\-]*"
DOTTED = r"(?:[A-Za-z0-9_\-]+|\.(?=[A-Za-z0-9_\-]))*"
BASE64 = r"[A-Za-z0-9_\-+/=]*"
TILDED = r"[A-Za-z0-9_\-.~]*"

RUN_SHORTEST = 18  # no key below has a shorter run, and most words do


@dataclass(frozen=True, slots=True)
class Family:
    """How one family of keys looks."""

    label: str
    head: str
    needs: str = ""
    rest: str = PLAIN


FAMILIES = (
    Family("anthropic", r"sk-ant-[\w\-]{16,}"),
    Family("openai", r"sk-(?:[A-Za-z0-9]{2,12}-){0,3}[A-Za-z0-9_]{20,}"),
    Family("openai", r"sk-(?:proj|svcacct|admin|None)-[\w\-]{20,}"),
    Family("openai", r"sess-[A-Za-z0-9]{24,}"),
    Family("github", r"gh[pour]_[A-Za-z0-9]{20,}"),
    Family("github", r"ghs_[A-Za-z0-9_\-]{20,}", rest=DOTTED),
    Family("github", r"github_pat_[A-Za-z0-9_]{20,}"),
    Family("gitlab", r"gl(?:pat|oas|dt|rtr?|cbt|ptt|ft|imt|agent|soat)-[\w\-]{16,}", rest=DOTTED),
    Family("aws", r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}"),
    Family("gcp", r"AIza[\w\-]{35}"),
    Family("google-oauth", r"(?<=ya29\.)[\w\-]{18,}", rest=DOTTED),
    Family("google-oauth", r"GOCSPX-[\w\-]{20,}"),
    Family("google-oauth", r"(?<=1//)0[\w\-]{24,}"),
    Family("azure", r"(?<=8Q~)[\w\-]{18,}", rest=TILDED),
    Family("slack", r"xox[a-z]-[\w\-]{16,}"),
    Family("slack", r"xapp-\d-[\w\-]{16,}"),
    Family("stripe", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    Family("stripe", r"whsec_[A-Za-z0-9]{16,}", rest=BASE64),
    Family("jwt", r"eyJ[\w\-]{15,2000}(?![\w\-])", r"\.[A-Za-z0-9_\-]{8,}", DOTTED),
    Family("npm", r"npm_[A-Za-z0-9]{30,}"),
    Family("pypi", r"pypi-Ag[\w\-]{30,}"),
    Family("huggingface", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    Family("twilio", r"SK[0-9a-f]{32}"),
    Family("sendgrid", r"(?<=SG\.)[\w\-]{18,80}(?![\w\-])", r"\.[A-Za-z0-9_\-]{16,}"),
    Family("digitalocean", r"do[opr]_v1_[a-f0-9]{40,}"),
    Family("databricks", r"dapi[a-f0-9]{32}"),
    Family("discord", r"[MNO][TDjz][\w\-]{20,28}(?![\w\-])", r"\.[\w\-]{6}\.[\w\-]{25,}"),
    Family("telegram", r"(?<=\d{8}:)AA[\w\-]{30,}"),
    Family("age", r"AGE-SECRET-KEY-[0-9A-Z\-]{20,}"),
    Family("xai", r"xai-[A-Za-z0-9]{30,}"),
    Family("groq", r"gsk_[A-Za-z0-9]{30,}"),
    Family("perplexity", r"pplx-[A-Za-z0-9]{30,}"),
    Family("replicate", r"r8_[A-Za-z0-9]{30,}"),
    Family("nvidia", r"nvapi-[\w\-]{30,}"),
    Family("vault", r"(?<=hv[sbr]\.)[\w\-]{20,}"),
    Family("docker", r"dckr_(?:pat|oat)_[\w\-]{20,}"),
    Family("shopify", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    Family("linear", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    Family("notion", r"(?:secret|ntn)_[A-Za-z0-9]{40,}"),
    Family("tailscale", r"tskey-[a-z]+-[\w\-]{16,}"),
    Family("sentry", r"sntry[su]_[\w\-]{30,}", rest=BASE64),
    Family("supabase", r"(?:sbp_[a-f0-9]{40}|sb_secret_[\w\-]{20,})"),
    Family("atlassian", r"ATATT3[\w\-]{30,}", rest=BASE64),
    Family("grafana", r"gl(?:c|sa)_[A-Za-z0-9]{20,}", rest=BASE64),
    Family("newrelic", r"NRAK-[A-Z0-9]{20,}"),
    Family("postman", r"PMAK-[a-f0-9\-]{30,}"),
    Family("mailgun", r"key-[0-9a-f]{32}"),
)

_GROUP = {f"f{index}": family for index, family in enumerate(FAMILIES)}
_HEADS = "|".join(f"(?P<{group}>{family.head})" for group, family in _GROUP.items())
# What an encoder may have put right before a key: \n in JSON, %3D in a URL, a colour code.
_ENCODED = (
    r"(?:(?<=\\)(?:[abfnrtv]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})"
    r"|(?<=%)[0-9A-Fa-f]{2}|(?<=[\[;])\d{1,3}m)"
)
AT_START = re.compile(rf"(?<![A-Za-z0-9_\-]){_ENCODED}?(?:{_HEADS})", re.ASCII)
INSIDE = re.compile(rf"[_\-](?:{_HEADS})", re.ASCII)
LABEL = {group: family.label for group, family in _GROUP.items()}
REST = {group: re.compile(family.rest, re.ASCII) for group, family in _GROUP.items()}
LATER = {
    group: re.compile((family.needs or PLAIN) + family.rest, re.ASCII)
    for group, family in _GROUP.items()
}
