"""Optional parts: which of setup.cfg's extras provides a missing package."""

import importlib.util
import re

_REQUIREMENT = re.compile(r"(?P<package>[\w.-]+).*;.*extra == ['\"](?P<extra>[\w-]+)['\"]")


def demand(*packages: str) -> None:
    """Looks for them, so that a missing one is reported before long work begins. Raises ModuleNotFoundError.

    They are not imported: the server's own process would keep tens of megabytes that others use.
    """
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)


def hint(error: ModuleNotFoundError) -> str | None:
    """The extra to install for a missing package; None when the package is of no extra."""
    package = (error.name or "").partition(".")[0]
    if package == "ringlog_lab":
        return "ringlog-lab is not installed: run `make lab` in ringlog's sources"
    import importlib.metadata

    requirements = importlib.metadata.requires("ringlog") or []
    found = [match for text in requirements if (match := _REQUIREMENT.match(text))]
    extras = [
        match["extra"]
        for match in found
        if match["extra"] != "test" and match["package"].lower().replace("-", "_") == package
    ]
    if not extras:
        return None
    choices = " or ".join(f"pip install 'ringlog[{extra}]'" for extra in extras)
    return f"{package} is not installed: {choices}"
