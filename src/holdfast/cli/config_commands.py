"""What can be asked about settings."""

from __future__ import annotations

from holdfast.cli.commands import PROJECT, Command, Option

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
