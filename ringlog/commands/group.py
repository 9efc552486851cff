"""The commands of `ringlog`. Each is imported only when it is called: most need packages that the others do
not."""

import gc
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from ringlog.commands.options import logging_command

_WHERE = {
    "user": "commands.user:user",
    "facility": "commands.facility:facility_app",
    "report": "commands.report:report_app",
    "archive": "commands.archive:archive_app",
    "weeks": "commands.weeks:weeks_app",
    "service": "commands.service:service_app",
    "ha": "commands.ha:ha_app",
    "node": "commands.node:node_app",
    "loadtest": "loadtest.command:app",
    "init": "commands.facility:init",
    "maintain": "commands.maintain:maintain",
    "refill": "commands.maintain:refill",
    "summarise": "commands.maintain:summarise_again",
    "dsn": "commands.dsn:dsn",
    "status": "commands.report:status",
    "serve": "commands.serve:serve",
    "web": "commands.serve:web",
    "recall": "commands.archive:recall_weeks",
    "load": "loader.command:load",
    "reload": "loader.command:reload",
    "adopt": "commands.adopt:adopt",
    "mirror": "commands.mirror:mirror",
    "mirror-switch": "commands.mirror:mirror_switch",
    "demo": "commands.demo:demo",
    "bench": "ringlog_lab.bench.command:bench",
    "cert": "commands.cert:cert",
    "export": "commands.export:export",
    "plot": "commands.export:plot",
    "plan": "ringlog_lab.ess.plan:plan",
    "backup": "commands.backup:backup",
    "restore": "commands.restore:restore",
    "verify": "commands.verify:verify",
    "upgrade": "commands.upgrade:upgrade",
    "doctor": "commands.doctor:doctor",
}
"""The module of each, below ringlog, and what it is there: a function, or a Typer of further commands."""

_LOGGING = ("load", "mirror")
"""The commands with --log-level and --log-format."""

_LAB = ("bench", "plan")
"""The commands of another distribution, with the whole names of their modules."""


class Commands(TyperGroup):
    """All of them, by their names."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*_WHERE]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _WHERE:
            # of which one may be meant
            self.commands = dict.fromkeys(_WHERE, TyperCommand(None))
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = _imported(cmd_name)
        return self.commands[cmd_name]


def _imported(name: str) -> Any:
    module, _, attribute = _WHERE[name].partition(":")
    # what an import makes stays: to look for garbage in it again and again takes a fifth of the time
    gc.disable()
    alone = typer.Typer(add_completion=False)
    if name in _LAB:
        import_module("ringlog.loadtest.lab").add(alone, name, f"{module}:{attribute}")
        command: Any = get_command(alone)
    else:
        found = getattr(import_module(f"ringlog.{module}"), attribute)
        if isinstance(found, typer.Typer):
            command = get_group(found)
        else:
            alone.command(name)(logging_command(found) if name in _LOGGING else found)
            command = get_command(alone)
    gc.freeze()
    gc.enable()
    command.name = name
    return command
