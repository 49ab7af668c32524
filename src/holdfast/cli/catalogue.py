"""All commands and options as data; help pages, the parser and the reference are built from it."""

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
  holdfast doctor            check what this machine supports and what is missing
  holdfast doctor --json     the same, as JSON
  holdfast demo              watch a one-minute demonstration
  holdfast codex ask "..."   run one turn of Codex and watch it
  holdfast codex threads     list Codex threads that can be resumed
  holdfast exec -- make      run a command that outlives this terminal

sessions with an agent, which survive crashes and lost terminals:
  holdfast                   talk with an agent in this terminal (holdfast chat)
  holdfast ask "..."         run one turn in a draft of this project
  holdfast sessions list     list sessions
  holdfast sessions show     print the conversation of a session
  holdfast sessions watch    follow a session as it goes on
  holdfast attach ID         attach to a session or process
  holdfast sessions end      end a session
  holdfast fork ID           continue a session a second time, in its own draft
  holdfast sessions export   print a session as JSON lines, without secrets
  holdfast sessions import   import a conversation from Codex or Claude Code
  holdfast acp               serve an editor by the Agent Client Protocol
  holdfast host ID           run the host of a session; other commands start it

your project, which agents do not write to:
  holdfast draft run -- CMD  run a command in a draft; the project does not change
  holdfast draft diff        show what publishing a draft would change
  holdfast draft undo        undo the last command in a draft
  holdfast draft merge       resolve conflicts with newer changes of the project
  holdfast draft show PATH   print the draft's, the project's or the base version of a file
  holdfast publish           apply the changes of a draft to the project
  holdfast draft discard     delete a draft
  holdfast draft open        create another draft
  holdfast draft list        list drafts
  holdfast draft path        print a directory that shows a draft

earlier states of the project:
  holdfast status            show drafts, conflicts and checkpoints of the project
  holdfast checkpoint create create a checkpoint of the project
  holdfast checkpoint list   list checkpoints
  holdfast checkpoint show   show what a checkpoint contains and what it leaves out
  holdfast checkpoint diff   show changes since a checkpoint
  holdfast restore ID        restore a checkpoint
  holdfast recover           finish or undo an interrupted operation
  holdfast storage           show and reduce disk usage

processes:
  holdfast ps                list running and recently ended processes
  holdfast logs -f NAME      print the output of a process and follow it
  holdfast attach NAME       attach to a process or session
  holdfast stop NAME         end a process
  holdfast exec-server       let other machines, or Codex, run processes here

sandboxes:
  holdfast sandbox -- make   run a command that can touch only what you name
  holdfast sandbox probe     try to break out of the sandbox

settings:
  holdfast login PROVIDER    enter the key of a model provider
  holdfast config show       show settings and where each comes from
  holdfast trust             trust the settings file of this project
  holdfast consent           show or change which providers may see this project

your shell:
  holdfast completion bash   print a completion script
  holdfast man               show the manual page

environment:
  HOLDFAST_HOME    store everything below this directory (an absolute path)
  HOLDFAST_CODEX   the Codex program (default: codex, from the PATH)
  HOLDFAST_DEBUG   1: print details of failures
  HOLDFAST_RUNNER  and _MODEL, _COLOR, _PLAIN, _BUDGET_STEPS, ...: as in config.toml
  NO_COLOR         any value: do not use colours

exit statuses:
  0 done   1 failed   2 wrong usage   3 needs approval   4 not signed in
  5 budget spent   69 unavailable   74 not written   78 wrong setting
  126 no sandbox   130 interrupted   141 reader gone   143 terminated"""
TOP = (Option(("-V", "--version"), "show the version and exit"),)
COMMON = (
    Option(("-h", "--help"), "show this page and exit"),
    Option(("-v", "--verbose"), "print details of failures"),
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
        summary="check what this machine supports and what is missing",
        description="""\
Check everything that Holdfast relies on by trying it: sync a file, start a
sandbox, mount an overlay, open a socket. Each problem is listed with the command
that fixes it. Nothing on the machine is changed.

The exit status is 1 if a check failed, which means that Holdfast cannot keep one
of its promises here; a warning is not a failure.""",
        examples=(
            ("holdfast doctor", "check this machine"),
            (
                "holdfast doctor --json | jq '.checks[] | select(.status != \"ok\")'",
                "list problems only",
            ),
            ("HOLDFAST_HOME=/mnt/disk holdfast doctor", "check another disk"),
        ),
        options=(Option(("--json",), "print one JSON object instead of a page"),),
    ),
    Command(
        name="completion",
        summary="print a completion script for a shell",
        description="""\
Print a script that completes commands and options in a shell.""",
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
        summary="show the manual page",
        description="""\
Show the manual page on a terminal. In a pipe, or with --roff, print its source for
man(1).""",
        examples=(
            ("holdfast man", "read the page"),
            ("holdfast man > ~/.local/share/man/man1/holdfast.1", "install it for man holdfast"),
        ),
        options=(Option(("--roff",), "print the source for man(1)"),),
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
