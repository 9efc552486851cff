"""The commands of `ringlog`. Each is imported only when it is called: most need packages that the others do
not."""

import gc
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from ringlog.commands.options import logging_command

_COMMANDS = {
    "status": (
        "commands.status:status",
        "Whether the server runs, and the state of its tables, writers and disk.",
    ),
    "signals": ("commands.signals:signals", "Find signals by words, in any order."),
    "signal": ("commands.signal:signal_app", "Signals of tables of samples come and go."),
    "latest": ("commands.signals:latest", "Print the newest values of signals."),
    "export": (
        "commands.export:export",
        "Write samples or trends of signals to a file: CSV, Parquet, HDF5, MATLAB or Excel.",
    ),
    "plot": ("commands.export:plot", "Plot trends of signals on the terminal, or to a picture."),
    "serve": ("commands.serve:serve", "Run the server: PostgreSQL, the facility's tables, the TDS gateway."),
    "web": ("commands.serve:web", "Serve HTTP for a PostgreSQL on another machine."),
    "load": (
        "loader.command:load",
        "Write: one process per table takes rows from a source and calls put_<table>.",
    ),
    "reload": ("loader.command:reload", "Let running writers go by their facility file as it is now."),
    "init": ("commands.facility:init", "Install a facility, or what its file has gained since."),
    "facility": ("commands.facility:facility_app", "Facility files."),
    "user": ("commands.user:user", "Logins."),
    "dsn": ("commands.dsn:dsn", "Print the administrator's connection string."),
    "cert": ("commands.cert:cert", "Make a certificate for TLS, signed by its own key."),
    "doctor": ("commands.doctor:doctor", "Find settings of this machine that endanger data or speed."),
    "report": ("commands.report:report_app", "Reports on the rows."),
    "verify": (
        "commands.verify:verify",
        "Check all of it: rings, logs, registry, indexes, pages, summaries, archive.",
    ),
    "maintain": (
        "commands.maintain:maintain",
        "Make the log's coming weeks, set aside those past retention.",
    ),
    "refill": ("commands.maintain:refill", "Make rows of a damaged ring again from its log."),
    "summarise": ("commands.maintain:summarise_again", "Make the summaries of a table again from its rows."),
    "weeks": ("commands.weeks:weeks_app", "Weeks past retention that are set aside."),
    "archive": ("commands.archive:archive_app", "The archive: old weeks of the logs in Parquet files."),
    "recall": ("commands.archive:recall_weeks", "Copy weeks of a table from the archive back into the log."),
    "backup": ("commands.backup:backup", "Copy all servers while they run."),
    "restore": (
        "commands.restore:restore",
        "Make a new data directory with the database as of a given time.",
    ),
    "upgrade": ("commands.upgrade:upgrade", "Bring the cluster of an older PostgreSQL to this version's."),
    "service": ("commands.service:service_app", "ringlog serve and load as services of systemd."),
    "ha": ("commands.ha:ha_app", "High availability: several machines, of which one may fail."),
    "node": ("commands.node:node_app", "Servers that tables lie on."),
    "adopt": ("commands.adopt:adopt", "Read an old server's catalogue, and write what becomes of it."),
    "migrate": ("commands.migrate:migrate_app", "Take over the old rows of another server or of files."),
    "mirror": (
        "commands.mirror:mirror",
        "Send requests to an old and a new server, and compare the answers.",
    ),
    "mirror-switch": ("commands.mirror:mirror_switch", "Select the server that answers clients of a mirror."),
    "demo": ("commands.demo:demo", "The main job for a minute: writers, readers, and a check of every row."),
    "loadtest": ("loadtest.command:app", "Experiments of five papers, repeated."),
    "bench": ("ringlog_lab.bench.command:bench", "Measure the gateway beside PostgreSQL called directly."),
    "plan": (
        "ringlog_lab.ess.plan:plan",
        "What a machine needs for waveforms and rows, from what was measured.",
    ),
}
"""The module of each, below ringlog, the name of its function or Typer there, and a line for the help, so
that the help imports no command."""

_LOGGING = ("load", "mirror")
"""The commands with --log-level and --log-format."""

_LAB = ("bench", "plan")
"""The commands of another distribution, with the whole names of their modules."""


class Commands(TyperGroup):
    """All of them, by their names."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*_COMMANDS]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in _COMMANDS.items()])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            # of which one may be meant
            self.commands = dict.fromkeys(_COMMANDS, TyperCommand(None))
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = _imported(cmd_name)
        return self.commands[cmd_name]


def _imported(name: str) -> Any:
    module, _, attribute = _COMMANDS[name][0].partition(":")
    # what an import makes stays: to look for garbage in it again and again takes a fifth of the time
    gc.disable()
    # plain text: rich takes a tenth of a second, and cuts names of options where a line is short
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    if name in _LAB:
        import_module("ringlog.loadtest.lab").add(alone, name, f"{module}:{attribute}")
        command: Any = get_command(alone)
    else:
        found = getattr(import_module(f"ringlog.{module}"), attribute)
        if isinstance(found, typer.Typer):
            found.rich_markup_mode = None
            command = get_group(found)
        else:
            alone.command(name)(logging_command(found) if name in _LOGGING else found)
            command = get_command(alone)
    gc.freeze()
    gc.enable()
    command.name = name
    return command
