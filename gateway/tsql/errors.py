"""What is wrong with a text, with the number T-SQL has for it."""


class TsqlError(Exception):
    """A text cannot be run: `number`, `severity` and `text` of the message, `line` of the text (from 1)."""

    def __init__(self, number: int, text: str, line: int, severity: int = 15, state: int = 1) -> None:
        super().__init__(text)
        self.number = number
        self.severity = severity
        self.state = state
        self.line = line
        self.text = text

    def __str__(self) -> str:
        return f"{self.number}, line {self.line}: {self.text}"


def syntax(near: str, line: int) -> TsqlError:
    """102: what stands at `near` cannot stand there."""
    return TsqlError(102, f"Incorrect syntax near '{near}'.", line)


def keyword_syntax(near: str, line: int) -> TsqlError:
    """156: the keyword `near` cannot stand there."""
    return TsqlError(156, f"Incorrect syntax near the keyword '{near}'.", line)


def refused(what: str, why: str, line: int) -> TsqlError:
    """102: T-SQL has it, ringlog does not; `what` names it."""
    return TsqlError(102, f"'{what}' is not supported: {why}.", line)


def undeclared(name: str, line: int) -> TsqlError:
    """137: no such variable."""
    return TsqlError(137, f'Must declare the scalar variable "{name}".', line)


def nested_too_deeply(line: int) -> TsqlError:
    """191: the text nests deeper than is understood."""
    return TsqlError(191, "Some part of your SQL statement is nested too deeply.", line)
