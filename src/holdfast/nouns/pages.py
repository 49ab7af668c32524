"""Self-contained HTML pages: no scripts, images, links or network.

Callers escape untrusted text before they pass it in. A Content-Security-Policy meta tag blocks
loads should an escape be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final, TypeGuard

_STYLE: Final = (
    ":root{color-scheme:light dark;--line:#d9d9de;--soft:#f4f4f6;--quiet:#5c5c66;"
    "--good:#06622d;--bad:#a1131f}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2.5rem auto;padding:0 1rem;"
    "background:#fff;color:#1a1a1f}"
    "h1{font-size:1.5rem;line-height:1.25;overflow-wrap:anywhere;margin:0 0 .5rem}"
    "h2{font-size:1.1rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}"
    "pre,code{font:.9em/1.45 ui-monospace,monospace;overflow-wrap:anywhere}"
    "pre{white-space:pre-wrap;background:var(--soft);border-radius:.4rem;padding:.7rem .9rem;"
    "margin:.5rem 0}"
    "table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;vertical-align:top;padding:.3rem 1rem .3rem 0;overflow-wrap:anywhere}"
    "tr+tr>*{border-top:1px solid var(--line)}"
    'th{font-weight:600}th[scope="row"]{width:11rem;font-weight:400;color:var(--quiet)}'
    "details{margin:.5rem 0}summary{cursor:pointer;color:var(--quiet)}"
    ".good{color:var(--good)}.bad{color:var(--bad)}"
    "@media(prefers-color-scheme:dark){:root{--line:#3a3a42;--soft:#202026;--quiet:#a5a5b0;"
    "--good:#7ddc9c;--bad:#ff9a9a}body{background:#131316;color:#ececf1}}"
    "@media(max-width:36rem){th[scope=row]{width:7rem}}"
)


def html_page(title: str, parts: Iterable[str]) -> str:
    """A page of parts that are escaped already, under a title that is not."""
    name = escape(title)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>{name}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{name}</h1>\n"
        + "".join(f"{part}\n" for part in parts)
        + "</main>\n</body>\n</html>\n"
    )


def html_table(rows: Iterable[Sequence[str]], *, head: Sequence[str] = ()) -> str:
    """A table of cells that are escaped already; without a head the first column is one."""
    lines = ["<tr>" + "".join(f'<th scope="col">{cell}</th>' for cell in head) + "</tr>\n"]
    if head:
        lines += [f"<tr><td>{'</td><td>'.join(row)}</td></tr>\n" for row in rows]
        return f"<table>\n{''.join(lines)}</table>"
    for first, *others in rows:
        cells = "".join(f"<td>{each}</td>" for each in others)
        lines.append(f'<tr><th scope="row">{first}</th>{cells}</tr>\n')
    return f"<table>\n{''.join(lines[1:])}</table>"


def html_failure(failure: Mapping[str, object]) -> str:
    """What went wrong, in its wire form: what happened, what to do next, and details in a fold."""
    details = [(name, _text(failure, name)) for name in ("code", "phase", "timestamp")]
    details += [(name, _text(failure, name)) for name in ("provider", "model", "runnerType")]
    words = [each.replace("_", " ") for each in _words(failure.get("actions"))]
    lines = [
        f'<p class="bad"><strong>{_text(failure, "title")}</strong></p>',
        f"<p>{_text(failure, 'userMessage')}</p>",
        f"<p>What you can do: {escape(', or '.join(words))}.</p>" if words else "",
        "<details>\n<summary>Details</summary>",
        html_table((name, f"<code>{value}</code>") for name, value in details if value),
        "</details>",
    ]
    return "\n".join(line for line in lines if line)


def _words(value: object) -> list[str]:
    return [str(each) for each in value] if _is_list(value) else []


def _is_list(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    return isinstance(value, (list, tuple))


def _text(failure: Mapping[str, object], name: str) -> str:
    value = failure.get(name)
    return "" if value is None else escape(str(value))
