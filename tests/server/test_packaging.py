"""What setup.cfg ships is what the folders hold."""

import configparser
from pathlib import Path

ROOT = Path(__file__).parents[2]


def listed(section: str, option: str) -> list[str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser[section][option].split("\n")[1:]


def test_every_package_of_the_mapped_folders_is_listed() -> None:
    folders = dict(line.split(" = ") for line in listed("options", "package_dir"))
    packages = set()
    for package, folder in folders.items():
        for file in (ROOT / folder).rglob("__init__.py"):
            packages.add(".".join([package, *file.parent.relative_to(ROOT / folder).parts]))
    assert packages == set(listed("options", "packages"))
