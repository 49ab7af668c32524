"""Declarations of the commands for Codex, settings, keys, trust and consent."""

from __future__ import annotations

from holdfast.cli.declarations import PROJECT, Command, Option

_CODEX = Option(("--codex",), "the Codex program, instead of HOLDFAST_CODEX", form="PATH")
CODEX = (
    Command(
        name="codex",
        summary="talk with Codex",
        description="""\
Talk with Codex, the coding agent of OpenAI. It must be installed and signed in
already; Holdfast starts it for each command and ends it afterwards.""",
        examples=(
            ('holdfast codex ask "Why does the build fail?"', "run one turn and watch it"),
            ("holdfast codex threads", "list threads that can be resumed"),
            ("holdfast codex ask --help", "show the help of one command"),
        ),
    ),
    Command(
        name="codex ask",
        summary="run one turn of Codex and watch it",
        description="""\
Run one turn of Codex. Its messages go to standard output as they arrive; its actions
(commands, file changes, retries) to standard error, one line each.

Codex asks for permission where its policy requires it. Answer on the terminal:
y yes, a yes for this session, n no, c no and end the turn. Without a terminal, or
after ten minutes without an answer, the request is refused.

Ctrl-C interrupts the turn, a second one leaves at once. Codex stores the thread; the
last line shows how to resume it.

Control characters are escaped, also in a pipe; --json has the text unchanged, and
always ends with a record of type "result".""",
        examples=(
            ('holdfast codex ask "Fix the failing test"', "work in this directory"),
            (
                'holdfast codex ask --resume 01a1... "And now the docs"',
                "resume that thread",
            ),
            ("holdfast codex ask - < task.md", "read the prompt from a file"),
            (
                'holdfast codex ask --sandbox read-only "Explain this" > answer.md',
                "save its answer, and watch its actions",
            ),
            (
                'holdfast codex ask --json "List the TODOs" | tail -1 | jq -r .text',
                "print the last message only",
            ),
        ),
        options=(
            Option(("--json",), "print one JSON object per line instead of text"),
            Option(
                ("--cwd",), "the working directory of Codex (default: the current one)", form="DIR"
            ),
            Option(("--model",), "the model (default: as Codex is configured)", form="NAME"),
            Option(
                ("--sandbox",),
                "what commands may access (default: as Codex is configured)",
                values=("read-only", "workspace-write", "danger-full-access"),
            ),
            Option(
                ("--approval-policy",),
                "when Codex asks for permission (default: as Codex is configured)",
                values=("untrusted", "on-request", "never"),
            ),
            Option(("--timeout",), "interrupt the turn after SECONDS", form="SECONDS"),
            Option(("--resume",), "resume this thread, with its settings", form="THREAD"),
            _CODEX,
        ),
        argument=("PROMPT", "the prompt; without it, or with -, it is read from standard input"),
    ),
    Command(
        name="codex threads",
        summary="list threads that can be resumed",
        description="""\
List the threads that Codex stores, the latest first: id, time of the last use, and
first prompt.""",
        examples=(
            ("holdfast codex threads", "list the latest ten"),
            ("holdfast codex threads --cwd . --limit 100", "list those of this directory"),
            ("holdfast codex threads --json | jq -r .id", "print the ids only"),
        ),
        options=(
            Option(("--json",), "print one JSON object per thread instead of a page"),
            Option(("--limit",), "list at most N (default: 10)", form="N"),
            Option(("--cwd",), "list only threads that worked in DIR", form="DIR"),
            _CODEX,
        ),
    ),
)


CONFIG = (
    Command(
        name="config",
        summary="show settings and where each comes from",
        description="""\
Flags override the environment (HOLDFAST_RUNNER, HOLDFAST_MODEL, ...), which overrides
your config.toml. A project may have a .holdfast.toml; it is used once you have
trusted it, and may only lower budgets.""",
        examples=(("holdfast config show", "show all settings"),),
    ),
    Command(
        name="config show",
        summary="show settings and where each comes from",
        description="""\
Show every setting with the value that a session in this project would use. This runs
no program, and ignores project settings that you have not trusted.""",
        examples=(
            ("holdfast config show --origin", "with the origin of each"),
            ("holdfast config show --json", "as JSON"),
        ),
        options=(
            Option(("--origin",), "show where each setting comes from"),
            Option(("--json",), "print one JSON object instead of text"),
            PROJECT,
        ),
    ),
    Command(
        name="login",
        summary="enter the key of a model provider",
        description="""\
Enter the key of a model provider. On a terminal the key is not shown; otherwise it is
read from standard input. It is stored in keys.toml in the configuration directory,
readable only by you; a variable such as OPENAI_API_KEY takes precedence.""",
        examples=(
            ("holdfast login openai", "type or paste the key"),
            ("holdfast login anthropic < key.txt", "read it from a file"),
        ),
        argument=("PROVIDER", "openai, anthropic, ..., or one from your providers.toml"),
    ),
    Command(
        name="trust",
        summary="trust the settings file of this project",
        description="""\
Show the .holdfast.toml of this project, and use it from now on if you agree. If the
file changes, it is ignored until you agree again.""",
        examples=(("holdfast trust", "review the file, then confirm"),),
        options=(Option(("-y", "--yes"), "do not ask"), PROJECT),
    ),
    Command(
        name="consent",
        summary="show or change which providers may see this project",
        description="""\
Show the providers to which agents may send content of this project. You are asked
before the first content is sent to a provider; this command gives consent beforehand
or revokes it. A revocation takes effect at once: nothing more is sent, and the next
agent that needs consent asks again.""",
        examples=(
            ("holdfast consent", "show consents in force"),
            ("holdfast consent give openai", "agree, after reading what is sent"),
            ("holdfast consent revoke codex", "send nothing more to Codex"),
            ("holdfast consent list --json", "as JSON"),
        ),
        options=(
            Option(("-y", "--yes"), "do not ask"),
            Option(("--json",), "print one JSON object per line instead of text"),
            PROJECT,
        ),
        argument=("[ACTION] [PROVIDER]", "list, give or revoke (default: list)"),
        is_many=True,
    ),
)
