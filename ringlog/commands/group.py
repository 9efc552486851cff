"""The commands of `ringlog`. Each is imported only when it is called: most need packages that the others do
not."""

import gc
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from ringlog.commands.options import logging_command

_COMMANDS = {
    "status": (
        "commands.status:status",
        "Print whether the server runs, and the state of its tables, writers and disk.",
    ),
    "signals": ("commands.signals.signals:signals", "Find signals by words, in any order."),
    "signal": (
        "commands.signals.signal:signal_app",
        "Add, pause, rename and retire signals of tables of samples.",
    ),
    "latest": ("commands.signals.signals:latest", "Print the newest values of signals."),
    "why": ("commands.signals.why:why", "Say why a signal has no reading, and which record shows it."),
    "export": (
        "commands.signals.export:export",
        "Write samples or trends of signals to a file: CSV, Parquet, HDF5, MATLAB or Excel.",
    ),
    "capture": (
        "commands.signals.capture:capture_app",
        "List captures, the rows kept around events, and write one to a file.",
    ),
    "mark": ("commands.signals.mark:mark_app", "Write, correct, withdraw and list notes at times."),
    "plot": ("commands.signals.plot:plot", "Plot trends of signals on the terminal, or to a picture."),
    "serve": ("commands.serve:serve", "Run the server: PostgreSQL, the facility's tables, the TDS gateway."),
    "web": ("commands.serve:web", "Serve HTTP for a PostgreSQL on another machine."),
    "load": (
        "loader.command:load",
        "Run the writers: one process per table takes rows from a source and calls put_<table>.",
    ),
    "reload": ("loader.command:reload", "Make running writers read their changed facility file."),
    "init": ("commands.facility:init", "Install a facility, or the additions to its file."),
    "facility": ("commands.facility:facility_app", "Check a facility file, and list its changes."),
    "user": ("commands.user:user", "Add, change, limit and remove logins."),
    "dsn": ("commands.dsn:dsn", "Print the administrator's connection string."),
    "cert": ("commands.machines.cert:cert", "Make a certificate for TLS, signed by its own key."),
    "doctor": (
        "commands.machines.doctor:doctor",
        "Find settings of this machine that endanger data or speed.",
    ),
    "report": ("commands.stored.report:report_app", "Account for all rows, and list losses."),
    "verify": (
        "commands.stored.verify:verify",
        "Check everything that is stored: rings, logs, registry, indexes, pages, summaries, archive.",
    ),
    "maintain": (
        "commands.stored.maintain:maintain",
        "Make the log's coming weeks, and set aside those past retention.",
    ),
    "refill": ("commands.stored.maintain:refill", "Make rows of a damaged ring again from its log."),
    "summarise": (
        "commands.stored.maintain:summarise_table",
        "Make the summaries of a table again from its rows.",
    ),
    "weeks": ("commands.stored.weeks:weeks_app", "List and restore weeks past retention that are set aside."),
    "archive": (
        "commands.stored.archive:archive_app",
        "Check and manage the archive: old weeks of the logs in Parquet files.",
    ),
    "recall": (
        "commands.stored.archive:recall_weeks",
        "Copy weeks of a table from the archive back into the log.",
    ),
    "backup": ("commands.stored.backup:backup", "Copy all servers while they run."),
    "restore": (
        "commands.stored.restore:restore",
        "Make a new data directory with the database as of a given time.",
    ),
    "upgrade": (
        "commands.stored.upgrade:upgrade",
        "Upgrade the cluster of an older PostgreSQL to this version's.",
    ),
    "service": (
        "commands.machines.service:service_app",
        "Run ringlog serve or ringlog load as a service of systemd.",
    ),
    "ha": ("commands.machines.ha:ha_app", "Set up and watch two machines, of which one may fail."),
    "node": ("commands.machines.node:node_app", "List several servers, and move tables between them."),
    "adopt": (
        "commands.migration.adopt:adopt",
        "Read an old server's catalogue, and write a facility file, T-SQL and a report.",
    ),
    "assess": (
        "commands.migration.assess:assess",
        "Print which scripts of T-SQL ringlog runs, and why not the others.",
    ),
    "migrate": (
        "commands.migration.migrate:migrate_app",
        "Copy old rows of another server, or of files, into the archive.",
    ),
    "mirror": (
        "commands.migration.mirror:mirror",
        "Send requests to an old and a new server, and compare the answers.",
    ),
    "mirror-switch": (
        "commands.migration.mirror:mirror_switch",
        "Select the server that answers clients of a mirror.",
    ),
    "demo": (
        "commands.demo:demo",
        "Run a server with writers and readers for a minute, and check every row.",
    ),
    "loadtest": ("loadtest.command:app", "Repeat the experiments of five papers."),
    "bench": ("ringlog_lab.bench.command:bench", "Compare the gateway with direct calls of PostgreSQL."),
    "plan": ("ringlog_lab.ess.plan:plan", "Compute the machines for waveforms and rows from measured costs."),
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
        is_lab = find_spec("ringlog_lab") is not None
        return [name for name in _COMMANDS if is_lab or name not in _LAB]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            # for the suggestion of a similar name
            self.commands = dict.fromkeys(_COMMANDS, TyperCommand(None))
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = _imported(cmd_name)
        return self.commands[cmd_name]


def _imported(name: str) -> Any:
    module, _, attribute = _COMMANDS[name][0].partition(":")
    # imported objects stay: garbage collection among them would take a fifth of the time
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
