"""Conversations of clients with the gateway, as data: `test_rpc.toml` has those of test_rpc.py.

Each has a `name` and `steps`, which ct-library takes at each of `versions` (5.0 and 7.4 if it does not say).
A step is one of

* `run`: a batch of text. `call`: a procedure by RPC, `with` its parameters: [@name] type [= value] [output],
  NULL without a value. `admin`: a statement of the administrator. `leave`: the end of a session.

and what its answer has: `rows`, `columns`, `counts`, `statuses`, `outputs` (by name, or in order),
`messages`, `failed`, `error` (a number, or number and severity) with `says`, a part of its text; else there
is none. `at5` and `at7` have what one version differs in. `as` names the session: one of the conversation's
`login` (reader if it does not say), or of a login before a blank ("writer 2"). `times` repeats all steps,
`for` the conversation with each of its texts for `{}`. `writes = false`: no ring and no log may change;
`before` and `after` are statements of the administrator. `begin` and `end` of the file are batches of its
first session, before and after each conversation. NULL is the text "NULL".
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest
from case_tables import cases, plain

from servers import Login
from tds_clients import Admin, Answer, Clients, CtClient, Param

Unchanged = Callable[[], AbstractContextManager[None]]
VERSIONS = ("5.0", "7.4")
LISTS = ("rows", "columns", "counts", "statuses", "failed")


def param(text: str) -> Param:
    found = re.fullmatch(r"(?:(@\w+) )?([a-z]+(?::\d+)?)(?: = (.*?))?( output)?", text)
    assert found is not None, text
    return Param(found[2], found[3], found[1] or "", out=found[4] is not None)


def filled(value: Any, text: str) -> Any:
    """A value with this text for each `{}`, at any depth."""
    match value:
        case str():
            return value.replace("{}", text) if text else value
        case list():
            return [filled(one, text) for one in value]
        case dict():
            return {name: filled(one, text) for name, one in value.items()}
    return value


def compare(answer: Answer, wanted: Mapping[str, Any]) -> None:
    """Compares an answer with the parts of it that a step gives."""
    for key in LISTS:
        assert getattr(answer, key) == plain(wanted.get(key, getattr(answer, key))), (key, answer)
    match wanted.get("outputs"):
        case list() as given:
            assert [*answer.outputs.values()] == plain(given), answer
        case dict() as given:
            assert answer.outputs == plain(given), answer
    if "messages" in wanted:
        assert [message.text for message in answer.messages] == wanted["messages"]
    if "error" in wanted:
        number = wanted["error"]
        expected = number if isinstance(number, list) else [number, answer.error.severity]
        assert list(answer.error[:2]) == expected, answer
        assert wanted.get("says", "") in answer.error.text
    else:
        assert answer.errors == [], answer


def talks(file: str, versions: tuple[str, ...] = VERSIONS, table: str = "case") -> pytest.MarkDecorator:
    """The conversations of a file, at each of their versions."""
    found = [
        pytest.param(
            version, filled(case, text), id=" ".join(filter(None, (f"{case['name']}-{version}", text)))
        )
        for case in cases(file, table)
        for text in case.get("for", [""])
        for version in case.get("versions", versions)
    ]
    return pytest.mark.parametrize(("version", "talk"), found)


def hold(
    talk: Mapping[str, Any],
    version: str,
    clients: Clients,
    admin: Admin,
    logins: Mapping[str, Login] | None = None,
    login: str = "reader",
    database: str = "",
    begin: Sequence[str] = (),
    end: Sequence[str] = (),
    nothing_written: Unchanged | None = None,
) -> None:
    """Takes all steps of a conversation. `logins` are further ones; sessions begin in `database`."""
    logins = {"reader": clients.server.reader, "writer": clients.server.writer, **(logins or {})}
    sessions: dict[str, tuple[CtClient, ExitStack]] = {}
    for statement in talk.get("before", ()):
        admin.execute(statement.encode())

    def session(name: str) -> CtClient:
        if name not in sessions:
            stack = opened.enter_context(ExitStack())
            user = logins.get(name.split()[0] if name else "", logins[talk.get("login", login)])
            client = stack.enter_context(clients.ct(user, version))
            if database:
                assert client.language(f"use {database}").errors == []
            sessions[name] = client, stack
        return sessions[name][0]

    try:
        with ExitStack() as opened:
            if not talk.get("writes", True):
                assert nothing_written is not None
                opened.enter_context(nothing_written())
            if end:
                first = session("")
                opened.callback(lambda: [first.language(text) for text in end])
            steps = [*({"run": text} for text in begin), *([*talk["steps"]] * talk.get("times", 1))]
            for step in steps:
                step = step | step.get("at5" if version == "5.0" else "at7", {})
                if "admin" in step:
                    found = admin.execute(step["admin"].encode())
                    if "rows" in step:
                        rows = [["NULL" if cell is None else str(cell) for cell in row] for row in found]
                        assert rows == step["rows"], step
                elif "leave" in step:
                    sessions.pop(step["leave"])[1].close()
                else:
                    client = session(step.get("as", ""))
                    params = [*map(param, step.get("with", []))]
                    compare(
                        client.language(step["run"]) if "run" in step else client.call(step["call"], params),
                        step,
                    )
    finally:
        for statement in talk.get("after", ()):
            admin.execute(statement.encode())
