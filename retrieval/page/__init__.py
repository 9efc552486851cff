"""The page at /: trends of all signals in a browser. All its files come from this server."""

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringlog.retrieval.serving.refused import Refused

_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


def routes() -> list[Route]:
    return [Route("/", index), Route("/page/{name:path}", part)]


async def index(request: Request) -> Response:
    return _file("index.html")


async def part(request: Request) -> Response:
    return _file(request.path_params["name"])


def _file(name: str) -> Response:
    """A file of this folder, or of its folder charts. Raises Refused (404)."""
    folder = files(__name__)
    kind = name.rpartition(".")[2]
    known = {each.name for each in folder.iterdir()}
    known |= {f"charts/{each.name}" for each in folder.joinpath("charts").iterdir()}
    if kind not in _TYPES or name not in known:
        raise Refused(404, f"the page has no file {name[:60]!r}")
    headers = {"Cache-Control": "no-cache"}
    return Response(folder.joinpath(name).read_bytes(), media_type=_TYPES[kind], headers=headers)
