"""All that can be asked, as data: help, parser and reference are made of it."""

from __future__ import annotations

from holdfast.cli.arguments.processes import EXEC, SANDBOX
from holdfast.cli.arguments.sessions import SESSION, TRANSFER
from holdfast.cli.arguments.settings import CODEX, CONFIG
from holdfast.cli.arguments.workbench import CHECKPOINT, DRAFT, PUBLISH
from holdfast.cli.declarations import Command, Option

GUIDE = """\
Holdfast runs coding agents so that nothing is lost: not your files, not the
agent's work, not the conversation, not the reason why something failed.

first steps:
  holdfast doctor            see what this machine can do, and what is missing
  holdfast doctor --json     the same, for a program
  holdfast demo              see in a minute what this is for
  holdfast codex ask "..."   let Codex take a turn, and watch it
  holdfast codex threads     the conversations that can be continued
  holdfast exec -- make      run a command that outlives this terminal

an agent, in a conversation that goes on whatever dies:
  holdfast                   talk with it in this terminal (holdfast chat)
  holdfast ask "..."         have it take a turn, in a draft of this project
  holdfast sessions list     all conversations
  holdfast sessions show     what was said and done
  holdfast sessions watch    and what is, now
  holdfast attach ID         be there again, and type
  holdfast sessions end      let it rest
  holdfast fork ID           go on with one twice, each in its own draft
  holdfast sessions export   a file of it, without secrets
  holdfast sessions import   go on with one of Codex or Claude Code
  holdfast acp               be an agent for an editor
  holdfast host ID           what holds a conversation; started by the others

your project, which no agent writes to:
  holdfast draft run -- CMD  run a command in a draft; the project stays as it is
  holdfast draft diff        what the draft would change
  holdfast draft undo        as it was before the last command
  holdfast draft merge       resolve conflicts with newer changes of the project
  holdfast draft show PATH   print the draft's, the project's or the base version of a file
  holdfast publish           let the project have it
  holdfast draft discard     or forget it
  holdfast draft open        begin another draft
  holdfast draft list        which there are
  holdfast draft path        where to look at one from outside

what was there before:
  holdfast status            where the project stands
  holdfast checkpoint create keep the project as it is
  holdfast checkpoint list   what there is to go back to
  holdfast checkpoint show   what is in it, and what is not
  holdfast checkpoint diff   what changed since
  holdfast restore ID        go back
  holdfast recover           finish or undo what was interrupted
  holdfast storage           how much room it takes

processes:
  holdfast ps                what runs, and what has ended lately
  holdfast logs -f NAME      what one has written, and what it writes
  holdfast attach NAME       be at it, or at a session, again
  holdfast stop NAME         end it
  holdfast exec-server       let other machines, or Codex, run processes here

sandboxes:
  holdfast sandbox -- make   run a command that can touch only what you name
  holdfast sandbox probe     try to break out of it

settings:
  holdfast login PROVIDER    enter the key of a provider of models
  holdfast config show       show settings and where each comes from
  holdfast trust             let the settings of this project count
  holdfast consent           to whom an agent may send what it reads of it

your shell:
  holdfast completion bash   let it complete these commands
  holdfast man               the page of the manual

environment:
  HOLDFAST_HOME    keep everything below this directory (an absolute path)
  HOLDFAST_CODEX   the program that is Codex (otherwise: codex, from the PATH)
  HOLDFAST_DEBUG   1: say more when something fails
  HOLDFAST_RUNNER  and _MODEL, _COLOR, _PLAIN, _BUDGET_STEPS, ...: as in config.toml
  NO_COLOR         any value: no colours

exit statuses:
  0 done   1 failed   2 wrong usage   3 needs approval   4 not signed in
  5 budget spent   69 unavailable   74 not written   78 wrong setting
  126 no sandbox   130 interrupted   141 reader gone   143 terminated"""
TOP = (Option(("-V", "--version"), "show the version and exit"),)
COMMON = (
    Option(("-h", "--help"), "show this page and exit"),
    Option(("-v", "--verbose"), "say more when something fails"),
    Option(
        ("--color",),
        "when to use colours (auto: on a terminal)",
        values=("auto", "always", "never"),
        default="auto",
    ),
)
COMMANDS = (
    Command(
        name="doctor",
        summary="see what this machine can do, and what is missing",
        description="""\
Try everything that Holdfast relies on, by doing it: sync a file, start a
sandbox, mount an overlay, open a socket. Each finding comes with the command
that mends it. Nothing on the machine is changed.

Exits with 1 when a check failed, which means that a promise cannot be kept
here; a warning is not a failure.""",
        examples=(
            ("holdfast doctor", "look at this machine"),
            ("holdfast doctor --json | jq '.checks[] | select(.status != \"ok\")'", "what to mend"),
            ("HOLDFAST_HOME=/mnt/disk holdfast doctor", "would that disk do?"),
        ),
        options=(Option(("--json",), "print one JSON object instead of a page"),),
    ),
    Command(
        name="completion",
        summary="let a shell complete these commands",
        description="""\
Print a script that teaches a shell to complete commands and options.""",
        examples=(
            ("source <(holdfast completion bash)", "in ~/.bashrc"),
            ("holdfast completion zsh > ~/.zfunc/_holdfast", "a directory of $fpath"),
            (
                "holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
                "for every session from now on",
            ),
        ),
        argument=("SHELL", "bash, zsh or fish"),
    ),
    Command(
        name="man",
        summary="the page of the manual",
        description="""\
Show the page of the manual on a terminal. On a pipe, or with --roff, print it in the
form that man reads.""",
        examples=(
            ("holdfast man", "read it"),
            ("holdfast man > ~/.local/share/man/man1/holdfast.1", "so that man holdfast finds it"),
        ),
        options=(Option(("--roff",), "print it in the form that man reads"),),
    ),
    *CONFIG,
    *SESSION,
    *TRANSFER,
    *DRAFT,
    *PUBLISH,
    *CHECKPOINT,
    *CODEX,
    *EXEC,
    *SANDBOX,
)
