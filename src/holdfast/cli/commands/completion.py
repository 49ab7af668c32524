"""Print what a shell or `man` is to load."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Final

from holdfast import __version__
from holdfast.app.settings import Settings, environment
from holdfast.cli.catalogue import COMMANDS, COMMON, GUIDE, TOP
from holdfast.cli.declarations import Command, Option, Request
from holdfast.cli.failures import UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.output import DUMB, is_terminal

# Teach shells to complete our command line, and `man` to show it: all from the catalogue.

SHELLS: Final = ("bash", "zsh", "fish")


def script(shell: str, commands: Sequence[Command], options: Sequence[Option]) -> str:
    """What a shell is to load, such that it completes commands and their options."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands, options)


def _flags(options: Sequence[Option]) -> list[str]:
    return [flag for option in options for flag in option.flags if flag.startswith("--")]


def _words_after(
    commands: Sequence[Command], options: Sequence[Option]
) -> Iterator[tuple[str, list[str]]]:
    """What can follow the words so far; the words themselves, joined by a space, come first."""
    firsts = dict.fromkeys(command.name.partition(" ")[0] for command in commands)
    yield "", [*firsts, *_flags(options)]
    for first in firsts:
        seconds = [c.name.partition(" ")[2] for c in commands if c.name.startswith(f"{first} ")]
        own = next((c.options for c in commands if c.name == first), ())
        yield first, [*seconds, *_flags((*own, *options))]
    for command in commands:
        if " " in command.name:
            yield command.name, _flags((*command.options, *options))


_BASH: Final = """\
# holdfast: completion for bash. Load it: source <(holdfast completion bash)
_holdfast() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" first="" second="" each at
    for (( at = 1; at < COMP_CWORD; at++ )); do
        each="${{COMP_WORDS[at]}}"
        case "$each" in
            -*) ;;
            *) if [ -z "$first" ]; then first="$each"
               elif [ -z "$second" ]; then second="$each"; fi ;;
        esac
    done
    local found=""
    case "$first $second" in
{cases}
    esac
    COMPREPLY=( $(compgen -W "$found" -- "$word") )
    [ ${{#COMPREPLY[@]}} -eq 0 ] && compopt -o default
}}
complete -F _holdfast holdfast
"""


def _bash(commands: Sequence[Command], options: Sequence[Option]) -> str:
    return _BASH.format(cases=_cases(commands, options, 'found="{}"'))


def _cases(commands: Sequence[Command], options: Sequence[Option], form: str) -> str:
    """What can follow which words, the longest first, in the form of a shell."""
    cases: list[str] = []
    after = dict(_words_after(commands, options))
    for words, follow in sorted(after.items(), key=lambda each: -len(each[0].split())):
        first, _, second = words.partition(" ")
        pattern = f'"{first} {second}"' if second or not first else f'"{first} "*'
        cases.append(f"        {pattern}) {form.format(' '.join(follow))} ;;")
    return "\n".join(cases)


_ZSH: Final = """\
#compdef holdfast
# holdfast: completion for zsh. Put it as _holdfast into a directory of $fpath.
_holdfast() {{
    local -a found
    local first="" second="" each
    for each in "${{(@)words[2,CURRENT-1]}}"; do
        case "$each" in
            -*) ;;
            *) if [[ -z "$first" ]]; then first="$each"
               elif [[ -z "$second" ]]; then second="$each"; fi ;;
        esac
    done
    case "$first $second" in
{cases}
    esac
    compadd -a found || _files
}}
if [ "$funcstack[1]" = "_holdfast" ]; then _holdfast "$@"; else compdef _holdfast holdfast; fi
"""


def _zsh(commands: Sequence[Command], options: Sequence[Option]) -> str:
    return _ZSH.format(cases=_cases(commands, options, "found=({})"))


def _fish(commands: Sequence[Command], options: Sequence[Option]) -> str:
    lines = [
        "# holdfast: completion for fish. Put it into ~/.config/fish/completions/holdfast.fish",
    ]
    for command in commands:
        first, _, second = command.name.partition(" ")
        seen = f"__fish_seen_subcommand_from {first}"
        word, when = (second, seen) if second else (first, "__fish_use_subcommand")
        said = command.summary.replace("'", "\\'")
        lines.append(f"complete -c holdfast -n '{when}' -f -a {word} -d '{said}'")
        for option in command.options:
            lines += _fish_option(
                option, f"{seen}; and __fish_seen_subcommand_from {second}" if second else seen
            )
    for option in options:
        lines += _fish_option(option, "")
    return "\n".join(lines) + "\n"


def _fish_option(option: Option, when: str) -> Iterator[str]:
    said = option.meaning.replace("'", "\\'")
    taking = " -r" if option.form or option.values else ""
    condition = f" -n '{when}'" if when else ""
    for flag in option.flags:
        if flag.startswith("--"):
            yield f"complete -c holdfast{condition} -l {flag[2:]}{taking} -d '{said}'"


def manual(commands: Sequence[Command], options: Sequence[Option], guide: str, version: str) -> str:
    """A page for `man`: what it is for, all commands with their options, and examples."""
    lines = [f'.TH HOLDFAST 1 "" "holdfast {version}"', ".SH NAME"]
    lines.append("holdfast \\- run coding agents so that nothing is lost")
    lines += [".SH SYNOPSIS", ".B holdfast", "[options] <command>", ".SH DESCRIPTION", ".nf"]
    lines += [_troff(line) for line in guide.splitlines()]
    lines += [".fi", ".SH OPTIONS", *(line for option in options for line in _man_option(option))]
    lines.append(".SH COMMANDS")
    for command in commands:
        lines += [f'.SS "holdfast {command.name}"', ".nf"]
        lines += [_troff(line) for line in command.description.splitlines()]
        lines.append(".fi")
        lines += [line for option in command.options for line in _man_option(option)]
        for example, meaning in command.examples:
            lines += [".TP", f".B {_troff(example)}", _troff(meaning)]
    return "\n".join(lines) + "\n"


def _man_option(option: Option) -> list[str]:
    form = f" {option.form}" if option.form else ""
    flags = ", ".join(option.flags)
    return [".TP", f".B {_troff(flags + form)}", _troff(option.meaning)]


def _troff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def completion(request: Request, _: Settings) -> Outcome:
    """Print a script that lets a shell complete our command line."""
    if request.argument not in SHELLS:
        raise UsageWrong(
            problem=f"say which shell: {', '.join(SHELLS)}", read_on="holdfast completion --help"
        )
    return Outcome(answer=script(request.argument, COMMANDS, (*TOP, *COMMON)))


def man(request: Request, _: Settings) -> Outcome:
    """Show the page of the manual on a terminal by `man`, and else print its source."""
    page = manual(COMMANDS, (*TOP, *COMMON), GUIDE, __version__)
    program = shutil.which("man")
    if request.has("--roff") or program is None or not is_terminal(sys.stdout):
        return Outcome(answer=page)
    with tempfile.NamedTemporaryFile("w", suffix=".1", encoding="utf-8") as file:
        file.write(page)
        file.flush()
        line = [program, "-l", file.name]
        if environment().get("TERM") not in DUMB:
            return Outcome(status=subprocess.run(line, check=False).returncode)
        # A pager would write escape sequences; on a pipe `man` writes plain lines.
        ended = subprocess.run(line, stdout=subprocess.PIPE, check=False)
        return Outcome(status=ended.returncode, answer=ended.stdout.decode(errors="replace"))
