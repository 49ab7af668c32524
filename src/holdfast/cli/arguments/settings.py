"""What can be asked of Codex."""

from __future__ import annotations

from holdfast.cli.declarations import PROJECT, Command, Option

_CODEX = Option(("--codex",), "the program that is Codex, instead of HOLDFAST_CODEX", form="PATH")
CODEX = (
    Command(
        name="codex",
        summary="talk with Codex",
        description="""\
Talk with Codex, the coding agent of OpenAI. It has to be installed and signed
in by itself; Holdfast starts it for each command and ends it afterwards.""",
        examples=(
            ('holdfast codex ask "Why does the build fail?"', "let it take a turn, and watch it"),
            ("holdfast codex threads", "the conversations that can be continued"),
            ("holdfast codex ask --help", "all about one command"),
        ),
    ),
    Command(
        name="codex ask",
        summary="let Codex take a turn, and watch it",
        description="""\
Let Codex take one turn. What it says goes to standard output as it comes;
what it does (commands, file changes, retries) to standard error, a line each.

Codex asks before it does what its policy does not allow. You answer on the
terminal: y yes, a yes for this session, n no, c no and end the turn. Without a
terminal, or after ten minutes without an answer, it is a no.

Ctrl-C interrupts the turn, a second one leaves at once. The thread is kept by
Codex; the last line says how to continue it.

Text is shown so that it cannot steer the terminal, also in a pipe; --json has
it as it came, and always ends with a record of the type "result".""",
        examples=(
            ('holdfast codex ask "Fix the failing test"', "in this directory"),
            (
                'holdfast codex ask --resume 01a1... "And now the docs"',
                "continue that conversation",
            ),
            ("holdfast codex ask - < task.md", "the prompt is in a file"),
            (
                'holdfast codex ask --sandbox read-only "Explain this" > answer.md',
                "keep what it says, and watch what it does",
            ),
            (
                'holdfast codex ask --json "List the TODOs" | tail -1 | jq -r .text',
                "only the last message",
            ),
        ),
        options=(
            Option(("--json",), "print one JSON object per line instead of text"),
            Option(("--cwd",), "where Codex works (otherwise: here)", form="DIR"),
            Option(("--model",), "the model to ask (otherwise: as Codex is set up)", form="NAME"),
            Option(
                ("--sandbox",),
                "what commands may touch (otherwise: as Codex is set up)",
                values=("read-only", "workspace-write", "danger-full-access"),
            ),
            Option(
                ("--approval-policy",),
                "when Codex asks you (otherwise: as Codex is set up)",
                values=("untrusted", "on-request", "never"),
            ),
            Option(("--timeout",), "interrupt the turn after so long", form="SECONDS"),
            Option(("--resume",), "continue this thread; it keeps its settings", form="THREAD"),
            _CODEX,
        ),
        argument=("PROMPT", "what to ask; - or nothing: read it from standard input"),
    ),
    Command(
        name="codex threads",
        summary="the conversations that can be continued",
        description="""\
List the threads that Codex keeps, the latest first: how to name each, when it
was last used, and how it began.""",
        examples=(
            ("holdfast codex threads", "the latest ten"),
            ("holdfast codex threads --cwd . --limit 100", "those of this directory"),
            ("holdfast codex threads --json | jq -r .id", "their ids, for a program"),
        ),
        options=(
            Option(("--json",), "print one JSON object per thread instead of a page"),
            Option(("--limit",), "how many at most (otherwise: 10)", form="N"),
            Option(("--cwd",), "only those that worked in this directory", form="DIR"),
            _CODEX,
        ),
    ),
)


# What can be asked about settings.

CONFIG = (
    Command(
        name="config",
        summary="what is settled, and by whom",
        description="""\
Flags count most, then the environment (HOLDFAST_RUNNER, HOLDFAST_MODEL, ...), then
your own config.toml. A project may have a .holdfast.toml, which counts once you have
trusted it, and which may only set smaller budgets.""",
        examples=(("holdfast config show", "all of it"),),
    ),
    Command(
        name="config show",
        summary="what counts here",
        description="""\
Show every setting, and what counts of it for who talks with an agent here. Nothing
is run by this, and nothing of a project counts that you have not trusted.""",
        examples=(
            ("holdfast config show --origin", "and who said so"),
            ("holdfast config show --json", "for a program"),
        ),
        options=(
            Option(("--origin",), "say for each where it comes from"),
            Option(("--json",), "print one JSON object instead of text"),
            PROJECT,
        ),
    ),
    Command(
        name="login",
        summary="enter the key of a provider",
        description="""\
Enter the key of a provider of models. On a terminal it is not shown; otherwise it is
read from standard input. It is kept in keys.toml in the configuration directory, which
only you can read; a variable such as OPENAI_API_KEY is used instead of it.""",
        examples=(
            ("holdfast login openai", "type or paste the key"),
            ("holdfast login anthropic < key.txt", "from a file"),
        ),
        argument=("PROVIDER", "openai, anthropic, ..., or one of your providers.toml"),
    ),
    Command(
        name="trust",
        summary="let the settings of this project count",
        description="""\
Show the .holdfast.toml of this project, and let it count from now on if you agree.
If it changes, it does not count any more until you have agreed again.""",
        examples=(("holdfast trust", "look at it, then say yes"),),
        options=(Option(("-y", "--yes"), "do not ask"), PROJECT),
    ),
    Command(
        name="consent",
        summary="who may see this project",
        description="""\
Show to which providers of models an agent may send what it reads of this project. You
are asked before anything goes to one for the first time; here you can agree
beforehand, or take it back. What is taken back holds at once: nothing more is sent,
and whoever needs it asks again.""",
        examples=(
            ("holdfast consent", "what holds now"),
            ("holdfast consent give openai", "agree to one, after reading what to"),
            ("holdfast consent revoke codex", "nothing more to that one"),
            ("holdfast consent list --json", "for a program"),
        ),
        options=(
            Option(("-y", "--yes"), "do not ask"),
            Option(("--json",), "print one JSON object per line instead of text"),
            PROJECT,
        ),
        argument=("[DEED] [PROVIDER]", "list, give or revoke; otherwise: list"),
        is_many=True,
    ),
)
