"""Work that dies before one of its steps, or around one."""

from collections.abc import Callable, Iterable, Iterator

import pytest


class Deaths:
    """Before which call of its steps the work dies: `left` counts them; 0: it lives."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, steps: Iterable[tuple[object, str]]) -> None:
        self.left = 0
        for target, name in steps:
            monkeypatch.setattr(target, name, self._killing(getattr(target, name)))

    def _killing(self, work: Callable[..., object]) -> Callable[..., object]:
        def step(*values: object, **named: object) -> object:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return work(*values, **named)

        return step


def killed_around(
    monkeypatch: pytest.MonkeyPatch, steps: Iterable[tuple[object, str]], run: Callable[[], object]
) -> Iterator[str]:
    """Runs the work for each of its steps twice: it dies before the step, and after it. Yields the step after
    each death."""
    for target, name in steps:
        for after in (False, True):
            work = getattr(target, name)

            def killed(
                *values: object, work: Callable[..., object] = work, after: bool = after, **named: object
            ) -> object:
                if after:
                    work(*values, **named)
                raise KeyboardInterrupt

            with monkeypatch.context() as patched:
                patched.setattr(target, name, killed)
                with pytest.raises(KeyboardInterrupt):
                    run()
            yield name
