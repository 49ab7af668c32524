"""Find the process that a person named."""

from __future__ import annotations

from holdfast.cli.commands import Request
from holdfast.cli.core.process_name import meant
from holdfast.cli.exec_dial import Server
from holdfast.cli.failures import UsageWrong
from holdfast.exec import Operator
from holdfast.exec.failures import ProcessUnknown
from holdfast.exec.wire import OperatorProcess
from holdfast.rpc import Transport
from holdfast.rpc.failures import SocketRefused


def unnamed(request: Request) -> UsageWrong:
    """What is wrong where no process was named."""
    problem = "say which PROCESS; holdfast ps lists them"
    return UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")


async def reached(request: Request, server: Server) -> Transport:
    """A connection to ask for a process; where no local server runs, there is no such process."""
    try:
        return await server.dial_kept()
    except SocketRefused as refused:
        if server.state is None or request.argument is None:
            raise
        raise ProcessUnknown(process=request.argument) from refused


async def looked_up(request: Request, operator: Operator) -> OperatorProcess:
    """The one process that is meant; none and many are failures that say so."""
    word = request.argument
    if not word:
        raise unnamed(request)
    known = {
        (each.session_id, each.process.process_id): each for each in await operator.processes()
    }
    found = meant(word, known)
    if not found:
        raise ProcessUnknown(process=word)
    if len(found) > 1:
        names = ", ".join(f"{session}/{name}" for session, name in found)
        problem = f"{word} may be any of {names}"
        raise UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")
    return known[found[0]]
