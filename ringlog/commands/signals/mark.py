"""The commands of `ringlog mark`: notes at times of the readings."""

import json
from typing import Annotated, Any

import typer

from ringlog.clients.reading import opened
from ringlog.commands.signals.export import End, Start, Url, reported

mark_app = typer.Typer(no_args_is_help=True, help="Write, correct, withdraw and list notes at times.")

_LOCAL = "http://127.0.0.1:8080"
_TIME = "2026-11-20T14:00 (UTC), …T15:00+01:00, now or now-90m."
Number = Annotated[int, typer.Argument(metavar="NUMBER", help="Number of the mark.")]
At = Annotated[str | None, typer.Option("--at", metavar="TIME", help=f"Its time: {_TIME}")]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", show_default=False, help="Its end, of a span.")
]
Signals = Annotated[
    list[str] | None,
    typer.Option("--signal", metavar="SIGNAL", show_default="all", help="A signal; may be repeated."),
]


@mark_app.command("add")
def add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What happened.")],
    at: At = "now",
    until: Until = None,
    signals: Signals = None,
    server: Url = _LOCAL,
) -> None:
    """Write a mark, as the login of --server, which `ringlog user add NAME --recorder` has added."""
    made = _sent(server, "marks", time=at, until=until, text=text, signals=signals)
    print(f"mark {made['mark']}")


@mark_app.command("correct")
def correct(
    number: Number,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", show_default="as before", help="What happened.")
    ] = None,
    at: At = None,
    until: Until = None,
    signals: Signals = None,
    server: Url = _LOCAL,
) -> None:
    """Correct what is given; the version before stays in the history."""
    _sent(server, f"marks/{number}", time=at, until=until, text=text, signals=signals)


@mark_app.command("withdraw")
def withdraw(
    number: Number,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", show_default=False, help="Why.")
    ] = None,
    server: Url = _LOCAL,
) -> None:
    """Withdraw a mark: it is no longer shown, and stays in the history."""
    _sent(server, f"marks/{number}", withdraw=True, text=reason)


@mark_app.command("list")
def list_marks(
    start: Start = "now-1d", end: End = "now", signals: Signals = None, server: Url = _LOCAL
) -> None:
    """List the marks that touch a time."""
    asked = [("from", start), ("to", end), *(("signal", name) for name in signals or ())]
    for each in _answered(server, "marks", asked):
        print(f"{each['mark']}  {_when(each)}  {each['login']}  {each['text']}")


@mark_app.command("history")
def history(number: Number, server: Url = _LOCAL) -> None:
    """List every version of a mark: when it was written, by whom, its time and text."""
    for each in _answered(server, f"marks/{number}", []):
        text = f"withdrawn: {each['text']}" if each["withdrawn"] else each["text"]
        print(f"{each['made']}  {each['login']}  {_when(each)}  {text}")


def _when(mark: dict[str, Any]) -> str:
    return str(mark["time"]) if mark["until"] is None else f"{mark['time']} to {mark['until']}"


def _answered(server: str, path: str, asked: list[tuple[str, str]]) -> list[dict[str, Any]]:
    with reported(), opened(path, asked, server, None) as answer:
        return list(json.load(answer))


def _sent(server: str, path: str, **content: Any) -> dict[str, Any]:
    given = json.dumps({name: value for name, value in content.items() if value is not None}).encode()
    headers = {"Content-Type": "application/json"}
    with reported(), opened(path, [], server, None, headers=headers, body=given) as answer:
        return dict(json.load(answer))
